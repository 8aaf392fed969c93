package tune

// learn has the predictor learn, once, of a launch of the baseline that is far off, and predicts
// anew. A part of the load is another load than what is predicted.
func (m *model) learn(t *trial) {
	p, ok := m.predictor.(Learner)
	if !ok || m.learned != nil || !t.measured() || t.Share != 0 || !m.ofBase().own() {
		return
	}
	l := &Learned{Trial: t.Trial, Measured: m.objective.unlog(t.raw), Predicted: m.ofBase().figures[m.objective.Metric]}
	const farOff = 1.5 // nine predictions in ten are nearer: what they are off by says more of the baseline than of others
	if off := l.Measured / l.Predicted; max(off, 1/off) < farOff || !p.Learn(m.baseConfig(), t.end.Figures) {
		return
	}
	m.forget()
	m.learned, l.Corrected = l, m.ofBase().figures[m.objective.Metric]
}

// forget drops all predictions, and what was concluded from them.
func (m *model) forget() {
	m.predictions, m.foretells = map[string]*prediction{}, map[string]bool{}
	m.foretold, m.assumed, m.fitted, m.ranked, m.against = nil, nil, nil, nil, nil
}
