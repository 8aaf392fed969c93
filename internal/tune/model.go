package tune

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"perflab/internal/stat"
	"perflab/internal/tune/blame"
	"perflab/internal/tune/surrogate"
)

// model is what configurations are thought to be: predictions, corrected by what
// was measured. See package surrogate.
type model struct {
	*guarded
	foreteller
	axes    []Dimension
	choices []int             // those in which configurations that may be launched differ, by their place
	traits  []blame.Parameter // those beside the engine

	// What was concluded from so many trials, ends and launches of the baseline: what follows
	// from them alone is asked for again and again.
	at      [3]int
	fitted  *surrogate.Model
	ranked  []standing
	blamed  blame.Faults
	against *surrogate.Rival // the leader

	foretold *prediction // of the baseline
	assumed  *float64    // for the baseline, where nothing is foretold of it: see base0
	learned  *Learned    // what corrected the predictions; nil: nothing did
}

// prediction is what is known of a configuration before any launch.
type prediction struct {
	figures  map[string]float64 // merged; nil: nothing
	log      float64            // of the objective; not a number: nothing
	borrowed bool               // of other engines: see borrow
	point    surrogate.Point
	traits   *blame.Config
}

// own reports whether the objective is predicted of the very configuration.
func (p *prediction) own() bool { return !p.borrowed && !math.IsNaN(p.log) }

// axes are the space's dimensions, and what the baseline or a candidate sets besides.
// In what candidates differ is a choice, whether or not it is a number.
func axes(g SearchSpace, s Space) []Dimension {
	out := slices.Clone(g.Domain)
	for i, d := range out {
		values := map[string]bool{}
		for _, k := range g.Candidates {
			if k.Refused == "" && k.Prior == "" {
				values[k.Config[d.Name]] = true
			}
		}
		out[i].Ordered = d.Ordered && len(values) < 2
	}
	add := func(c Config) {
		for _, name := range slices.Sorted(maps.Keys(c)) {
			if !slices.ContainsFunc(out, func(d Dimension) bool { return d.Name == name }) {
				out = append(out, Dimension{Name: name})
			}
		}
	}
	add(s.Baseline)
	for _, k := range g.Candidates {
		add(k.Config)
	}
	return out
}

// varying are the axes in which candidates differ, or which may be set to more than one value.
func (m *model) varying() []int {
	var out []int
	for i, axis := range m.axes {
		differs := func(k Candidate) bool {
			return k.Refused == "" && k.Config[axis.Name] != m.search.Candidates[0].Config[axis.Name]
		}
		if len(axis.Values) > 1 || slices.ContainsFunc(m.search.Candidates, differs) {
			out = append(out, i)
		}
	}
	return out
}

// Parameters whose meaning matters here: predictions err alike for what runs the same
// program, every checkpoint has its launch, and a share of memory that is not needed changes nothing.
const (
	engineParameter = "engine"
	modelParameter  = "model"
	memoryParameter = "gpu_memory_utilization"
)

// key identifies a configuration. A search asks for it at every look at a configuration: it allocates nothing but
// the key itself.
func (c Config) key() string {
	var array [16]string
	var buffer [512]byte
	names, b := array[:0], buffer[:0]
	for name, value := range c {
		if value != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b = strconv.AppendQuote(b, name)
		b = strconv.AppendQuote(append(b, '='), c[name])
	}
	return string(b)
}

// predict predicts a configuration, once.
func (m *model) predict(config Config) *prediction {
	k := config.key()
	if f, ok := m.predictions[k]; ok {
		return f
	}
	f := &prediction{log: math.NaN(), point: m.locate(config), traits: blame.Of(m.traits, config[engineParameter], k, config)}
	m.predictions[k] = f
	if m.predictor == nil {
		return f
	}
	if f.figures = m.foretell(config); f.figures != nil {
		m.foretells[config[engineParameter]] = true
	} else if !m.foretellsOf(config[engineParameter]) {
		f.figures = m.borrow(config)
		f.borrowed = f.figures != nil
	}
	f.log = m.logOf(f.figures)
	return f
}

// made are configurations with each of some changes.
func made(from Config, changes []Change) []Config {
	var out []Config
	for _, k := range changes {
		out = append(out, k.Apply(from))
	}
	return out
}

// ofBase is what is predicted of the baseline.
func (m *model) ofBase() *prediction {
	if m.foretold == nil {
		m.foretold = m.predict(m.baseConfig())
	}
	return m.foretold
}

// base0 is the logarithm of what is predicted of the baseline. Where nothing is, it is what agrees best
// with the launches of what is predicted, and before any the prediction that is asked for first.
func (m *model) base0(first float64) float64 {
	if f := m.ofBase(); !math.IsNaN(f.log) {
		return f.log
	}
	if m.assumed == nil {
		m.assumed = &first
	}
	return *m.assumed
}

// assume has base0 agree with what was launched.
func (m *model) assume() {
	if !math.IsNaN(m.ofBase().log) {
		return
	}
	base := m.agreed(func(t *trial, of *prediction) float64 { return of.log - (t.log - m.reference(t.Share)) })
	if !math.IsNaN(base) {
		m.assumed = &base
	}
}

// agreed is what would have been predicted of the baseline had the predictions of what was
// launched been right, by a figure's logarithm; not a number where no launch tells.
func (m *model) agreed(less func(t *trial, of *prediction) float64) float64 {
	var all []float64
	for _, t := range m.trials {
		if t.Pass != 0 || !t.measured() {
			continue
		}
		if x := less(t, m.predict(t.Config)); !math.IsNaN(x) {
			all = append(all, x)
		}
	}
	return stat.Mean(all)
}

// predictedToMeet reports whether a configuration is predicted to meet the bounds,
// as far as they are limits.
func (m *model) predictedToMeet(config Config) bool {
	f := m.predict(config)
	for _, b := range m.bounds.SLOs {
		if _, ok := f.figures[b.Metric]; ok && !b.Holds(f.figures) {
			return false
		}
	}
	return true
}

// point is a configuration as the surrogate of the objective sees it.
func (m *model) point(config Config) surrogate.Point {
	f := m.predict(config)
	p := f.point
	if !math.IsNaN(f.log) {
		p.X, p.Known = f.log-m.base0(f.log), true
	}
	return p
}

// locate is where a configuration lies among the others: its values of every
// parameter that any may set.
func (m *model) locate(config Config) surrogate.Point {
	p := surrogate.Point{Engine: config[engineParameter], At: make([]surrogate.Coordinate, len(m.axes))}
	for i, axis := range m.axes {
		p.At[i] = surrogate.Coordinate{Value: config[axis.Name], Ordered: axis.Ordered, Log: math.NaN()}
		if x, err := strconv.ParseFloat(config[axis.Name], 64); err == nil && x > 0 {
			p.At[i].Log = math.Log2(x)
		}
	}
	return p
}

// choiceDistance counts the choices beside the engine in which two configurations
// differ.
func (m *model) choiceDistance(a, b Config) (n int) {
	for _, axis := range m.axes {
		if !axis.Ordered && axis.Name != engineParameter && a[axis.Name] != b[axis.Name] {
			n++
		}
	}
	return n
}

// sameChoices reports whether two configurations differ in numbers alone.
func (m *model) sameChoices(a, b Config) bool {
	return a[engineParameter] == b[engineParameter] && m.choiceDistance(a, b) == 0
}

// fit is what the objective is thought to be, by all launches of the search.
func (m *model) fit() *surrogate.Model {
	if at := [3]int{len(m.trials), m.ended(), len(m.base)}; at != m.at {
		m.at, m.fitted, m.ranked, m.against = at, nil, nil, nil
	}
	if m.fitted != nil {
		return m.fitted
	}
	m.blamed = m.faults()
	m.assume()
	points := m.measurements(func(t *trial) bool { return t.Pass == 0 })
	m.fitted = surrogate.New(points, m.choices)
	if m.underWay() == 0 {
		return m.fitted
	}
	// What is under way is taken to be measured as it is believed to be: then what is like it
	// has less to tell.
	for _, t := range m.trials {
		if t.open {
			p := m.point(t.Config)
			p.Y, _ = m.fitted.At(p)
			points = append(points, p)
		}
	}
	m.fitted = surrogate.New(points, m.choices)
	return m.fitted
}

// measurements are those of some launches, and of earlier studies: what the surrogate goes by.
func (m *model) measurements(of func(*trial) bool) []surrogate.Point {
	within := m.within()
	var points []surrogate.Point
	for _, t := range m.trials {
		ref := m.reference(t.Share)
		if !of(t) || !t.measured() || math.IsNaN(ref) {
			continue
		}
		p := m.point(t.Config)
		p.Y, p.Noise = t.log-ref, within*within
		points = append(points, p)
	}
	return append(points, m.earlier()...)
}

// earlier are the measurements of earlier studies as far as this one's metric is among
// their figures.
func (m *model) earlier() []surrogate.Point {
	var out []surrogate.Point
	for i, e := range m.options.Earlier {
		begun, shift := len(out), 0.0
		for _, k := range e.Measured {
			y := m.objective.log(k.Figures[m.objective.Metric])
			if math.IsNaN(y) {
				continue
			}
			p := m.point(k.Config)
			p.Study, p.Unlike, p.Y = i+1, 1-e.Likeness, y
			shift += p.X - p.Y
			out = append(out, p)
		}
		for j := range out[begun:] { // its scale is its own
			out[begun+j].Y += shift / float64(len(out)-begun)
		}
	}
	return out
}

// fits is how well the predictions met the measurements, by engine; nothing where none of the
// baseline makes ratios of them.
func (m *model) fits() []PredictionFit {
	if !m.ofBase().own() {
		return nil
	}
	by, seen := map[string][]surrogate.Point{}, map[string]bool{}
	for _, t := range m.trials {
		p, ref := m.point(t.Config), m.reference(t.Share)
		k := t.Config.key()
		if t.Pass != 0 || !t.measured() || !m.predict(t.Config).own() || math.IsNaN(ref) || seen[k] || t.Stage == BaselineStage {
			continue
		}
		seen[k], p.Y = true, t.log-ref
		by[t.Config[engineParameter]] = append(by[t.Config[engineParameter]], p)
	}
	var out []PredictionFit
	for _, engine := range slices.Sorted(maps.Keys(by)) {
		l := surrogate.LineOf(by[engine])
		out = append(out, PredictionFit{Engine: engine, N: len(by[engine]), Bias: l.Bias, Scale: l.Scale, Error: l.Error})
	}
	return out
}

// standing is a measured configuration of the search: what was measured and what it
// is thought to be.
type standing struct {
	trial *trial // its last launch, under the largest share of the load
	mean  float64
	score Score // of that launch, or of all of them where there are more
}

// standings are all measured configurations of the search, the best first:
// what meets the bounds, then what is thought best. A single lucky launch does not
// lead where predictions and neighbours say otherwise.
func (m *model) standings() []standing {
	fit := m.fit()
	if m.ranked != nil {
		return slices.Clone(m.ranked)
	}
	last := map[string]*trial{}
	var keys []string
	for _, t := range m.trials {
		k := t.Config.key()
		if t.Pass != 0 || !t.measured() {
			continue
		}
		if last[k] == nil {
			keys = append(keys, k)
		}
		if last[k] == nil || t.load() >= last[k].load() {
			last[k] = t
		}
	}
	out := make([]standing, len(keys))
	for i, k := range keys {
		t := last[k]
		mean, _ := fit.At(m.point(t.Config))
		out[i] = standing{t, mean, m.scoreOf(t)}
	}
	slices.SortStableFunc(out, func(a, b standing) int {
		return cmp.Or(-cmp.Compare(a.score.class, b.score.class), cmp.Compare(a.score.miss, b.score.miss), -cmp.Compare(a.mean, b.mean))
	})
	m.ranked = out
	return slices.Clone(out)
}

// leader is what leads the search; nil while nothing is measured.
func (m *model) leader() *standing {
	if s := m.standings(); len(s) > 0 {
		return &s[0]
	}
	return nil
}

// baseLogs are the logarithms of a figure of the baseline, by its launches.
func (m *model) baseLogs(metric string) []float64 {
	var out []float64
	for _, t := range m.base {
		if v := logPositive(t.merged[metric]); t.measured() && !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

// rival is the leader, as others are held against it.
func (m *model) rival() *surrogate.Rival {
	lead := m.leader()
	if m.against == nil {
		m.against = m.fit().Against(m.point(lead.trial.Config))
	}
	return m.against
}

// sureMiss is by how much a single launch must miss a bound to be out: more than the noise of a percentile.
const sureMiss = 0.2

// worse says why a measured configuration is out: shown to be worse than what
// leads, at 95 %, or surely missing a bound. It is nil for what may go on.
func (m *model) worse(t *trial) *Finding {
	lead := m.leader()
	if lead == nil || maps.Equal(lead.trial.Config, t.Config) {
		return nil
	}
	if s := m.scoreOf(t); s.class == missing && s.miss > sureMiss && lead.score.class == meeting {
		return &Finding{Kind: MissesSurely, Cause: m.note(t)}
	}
	// Of both against each other, not each against the baseline.
	sd, df, _ := m.spread()
	a, b := m.launches(t.Config, t.Share), m.launches(lead.trial.Config, t.Share)
	half := stat.StudentQuantile(0.975, df) * m.standardError(sd, len(a), len(b))
	if diff := meanLog(a) - meanLog(b); diff+half < 0 {
		return &Finding{Kind: ShownWorse, Against: lead.trial.name, Value: new(math.Exp(diff + half))}
	}
	return nil
}
