package tune

import "slices"

// Believed is what a race thinks by its launches: the mean and the standard deviation of the logarithm of
// a configuration's ratio to the baseline, noise apart; and the mean of what leads. False: nothing leads.
func (r *Race) Believed(config Config) (mean, sd, lead float64, ok bool) {
	s := r.state
	if s.leader() == nil {
		return 0, 0, 0, false
	}
	mean, sd = s.fit().At(s.point(config))
	return mean, sd, s.leader().mean, true
}

// Runs is the chance that a configuration runs, by the launches so far; false where none was refused.
func (r *Race) Runs(c Config) (chance float64, ok bool) {
	m := r.state.model
	return m.runChance(c), slices.ContainsFunc(m.trials, func(t *trial) bool { return t.end.Status == Refused })
}
