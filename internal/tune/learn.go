package tune

import "math"

// farOff is the factor by which a prediction of the baseline must be off for a launch to correct
// the predictor: farther than nine in ten predictions are. What one configuration is off by less
// says more about it than about others, and correcting them by it made searches worse.
const farOff = 1.5

// learn has the predictor learn of a launch of the baseline, where it can and has not yet, and
// predicts anew. A part of the load is another load than what is predicted.
func (m *model) learn(t *trial) {
	p, ok := m.predictor.(Learner)
	if !ok || m.learned != nil || !t.measured() || t.Share != 0 || !m.foretellsBase() {
		return
	}
	l := &Learned{Trial: t.Trial, Measured: m.objective.unlog(t.raw), Predicted: m.foretold.figures[m.objective.Metric]}
	if math.Abs(math.Log(l.Measured/l.Predicted)) < math.Log(farOff) || !p.Learn(m.baseConfig(), t.end.Figures) {
		return
	}
	m.forget()
	m.learned, l.Corrected = l, m.predict(m.baseConfig()).figures[m.objective.Metric]
}

// forget drops all predictions, and what was concluded from them.
func (m *model) forget() {
	m.predictions, m.foretells = map[string]*prediction{}, map[string]bool{}
	m.foretold, m.assumed, m.fitted, m.ranked, m.against = nil, nil, nil, nil, nil
}
