package tune

import "slices"

// refinedAround is how many of the best are refined.
const refinedAround = 3

// option is a configuration that may be launched next.
type option struct {
	from      *trial // what it is a change of; nil for a candidate
	change    Change
	config    Config
	requested bool       // a bottleneck asks for it
	candidate *contender // where it is one
}

// refine spends what is left of the search on small changes of the best, each time
// on the one by which a launch is expected to gain most, and on candidates that
// were not launched where they promise more.
func (s *raceState) refine() {
	s.begin(RefineStage)
	for s.searching() > 0 {
		o := s.nextOption()
		switch {
		case o == nil:
			return
		case o.from == nil:
			s.launch(o.candidate, RefineStage, 0)
		default:
			s.mend(s.launchChange(o.from, o.change, RefineStage, 0), 0)
		}
	}
}

// nextOption is the option to launch; nil where none is worth it.
func (s *raceState) nextOption() *option {
	options := s.nearby()
	configs := make([]Config, len(options))
	for i, o := range options {
		configs[i] = o.config
	}
	at, gain := s.best(configs, func(i int) bool { return options[i].requested })
	switch {
	case len(options) == 0:
		s.stopReason = &Finding{Kind: NothingLeft}
		return nil
	case gain < s.worthwhile():
		s.stopReason = &Finding{Kind: NoneWorth, N: len(options), Value: &gain}
		return nil
	}
	return &options[at]
}

// nearby are what may be launched next: what the bottlenecks of the best ask for,
// steps around them, what helped one of them applied to the others, and candidates.
func (s *raceState) nearby() []option {
	var out []option
	have := map[string]bool{}
	add := func(o option) {
		k := o.config.key()
		if have[k] || s.launched(o.config) || s.failedGuard(o.config) || s.search.Refuse(o.config) != "" {
			return
		}
		have[k] = true
		out = append(out, o)
	}
	best := s.distinct()
	for _, st := range best {
		for _, m := range st.trial.end.Moves {
			add(option{from: st.trial, change: m, config: m.Apply(st.trial.Config), requested: true})
		}
	}
	for _, st := range best {
		config := st.trial.Config
		for _, k := range slices.Concat(s.search.Steps(config), s.helpful(), s.swaps(config)) {
			add(option{from: st.trial, change: k, config: k.Apply(config)})
		}
	}
	for _, c := range s.candidates {
		if c.runnable() {
			add(option{config: c.Config, candidate: c})
		}
	}
	return out
}

// swaps change one choice of a configuration to what a candidate of its engine has
// there: with the settings that were found since, another layout may be the better one.
func (s *raceState) swaps(config Config) []Change {
	var out []Change
	for _, axis := range s.axes {
		if axis.Ordered || axis.Name == engineParameter {
			continue
		}
		seen := map[string]bool{config[axis.Name]: true}
		for _, c := range s.candidates {
			v := c.Config[axis.Name]
			if !c.runnable() || c.Config[engineParameter] != config[engineParameter] || seen[v] {
				continue
			}
			seen[v] = true
			out = append(out, Change{Label: setting(axis.Name, v), Set: Config{axis.Name: v}})
		}
	}
	return out
}

// setting is a parameter's value for a reader.
func setting(name, v string) string {
	if v == "" {
		return "default " + name
	}
	return name + " " + v
}

// helpful are the changes that made something better.
func (s *raceState) helpful() []Change {
	var out []Change
	for _, t := range s.trials {
		if t.Stage != RefineStage && t.Stage != RepairStage || !t.measured() {
			continue
		}
		for _, from := range s.trials[:t.Trial-1] {
			change, ok := difference(from, t)
			if ok && t.log > from.log && !slices.ContainsFunc(out, func(k Change) bool { return k.Label == change.Label }) {
				out = append(out, change)
			}
		}
	}
	return out
}

// difference is the change of one parameter that led from a trial to another.
func difference(a, b *trial) (Change, bool) {
	k := Change{Set: Config{}}
	if !a.measured() || a.Share != b.Share || a.Pass != b.Pass {
		return k, false
	}
	for name, v := range b.Config {
		if a.Config[name] != v {
			k.Set[name] = v
		}
	}
	for name := range a.Config {
		if _, ok := b.Config[name]; !ok {
			k.Set[name] = ""
		}
	}
	if len(k.Set) != 1 || k.Set[engineParameter] != "" {
		return k, false
	}
	for name, v := range k.Set {
		k.Label = setting(name, v)
	}
	return k, true
}
