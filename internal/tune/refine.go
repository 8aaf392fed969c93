package tune

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// around is how many of the best are refined.
const around = 3

// option is a configuration that may be launched next.
type option struct {
	from   *trial // what it is a change of; nil for an arm
	change Change
	config Config
	asked  bool // a bottleneck asks for it
	arm    int  // index of the arm, where it is one
}

// refine spends what is left of the search on small changes of the best, each time
// on the one by which a launch is expected to gain most, and on arms that
// were not launched where they promise more.
func (c *course) refine() bool {
	c.begin(RefineStage)
	for c.searching() > 0 {
		pick := choose(c, c.next)
		if pick.option == nil {
			c.why = pick.why
			return true
		}
		o := pick.option
		if o.from == nil {
			if !c.late(c.arms[o.arm]) {
				return false
			}
			continue
		}
		t, ok := c.try(o.from, o.change, RefineStage, 0)
		if !ok {
			return false
		}
		if t != nil && !c.mend(t, 0) {
			return false
		}
	}
	return true
}

// late launches an arm under all of the load.
func (c *course) late(r *runner) bool {
	t, ok := c.measure(Proposal{Stage: RefineStage, Label: r.Label, Config: r.Config}, r.origin)
	if !ok {
		return false
	}
	r.trials = append(r.trials, t)
	return c.mend(t, 0)
}

// picked is the next option, or why there is none.
type picked struct {
	option *option
	why    string
}

func (c *course) next() picked {
	options := c.pool()
	configs := make([]Config, len(options))
	for i, o := range options {
		configs[i] = o.config
	}
	at, gain := c.best(configs, func(i int) bool { return options[i].asked })
	switch {
	case len(options) == 0:
		return picked{why: "nothing was left to try"}
	case gain < c.worthwhile():
		return picked{why: fmt.Sprintf("the most promising of %s was expected to bring %.2g %%, which no launch is worth", count(len(options), "remaining configuration"), 100*gain)}
	}
	return picked{option: &options[at]}
}

// pool is what may be launched next: what the bottlenecks of the best ask for,
// steps around them, what helped one of them applied to the others, and arms.
func (c *course) pool() []option {
	var out []option
	have := map[string]bool{}
	add := func(o option) {
		k := o.config.key()
		if have[k] || c.seen(o.config) || c.barred(o.config) || c.guide.Refuse(o.config) != "" {
			return
		}
		have[k] = true
		out = append(out, o)
	}
	best := c.distinct()
	for _, s := range best {
		for _, m := range s.trial.end.Moves {
			add(option{from: s.trial, change: m, config: m.Apply(s.trial.Config), asked: true})
		}
	}
	for _, s := range best {
		for _, k := range c.guide.Steps(s.trial.Config) {
			add(option{from: s.trial, change: k, config: k.Apply(s.trial.Config)})
		}
		for _, k := range c.helped() {
			add(option{from: s.trial, change: k, config: k.Apply(s.trial.Config)})
		}
		for _, k := range c.swaps(s.trial.Config) {
			add(option{from: s.trial, change: k, config: k.Apply(s.trial.Config)})
		}
	}
	for i, r := range c.arms {
		if r.runnable() {
			add(option{config: r.Config, arm: i})
		}
	}
	return out
}

// distinct are the best that differ in a choice, since around two that do not, the same
// would be tried; and the best of each engine.
func (c *course) distinct() []standing {
	var out []standing
	for _, s := range c.standings() {
		engine := func(o standing) bool { return o.trial.Config[engineParameter] == s.trial.Config[engineParameter] }
		like := func(o standing) bool { return engine(o) && c.otherwise(o.trial.Config, s.trial.Config) == 0 }
		if len(out) < around && !slices.ContainsFunc(out, like) || !slices.ContainsFunc(out, engine) {
			out = append(out, s)
		}
	}
	return out
}

// swaps change one choice of a configuration to what an arm of its engine has there:
// with the settings that were found since, another layout may be the better one.
func (c *course) swaps(config Config) []Change {
	var out []Change
	for _, axis := range c.axes {
		if axis.Ordered || axis.Name == engineParameter {
			continue
		}
		seen := map[string]bool{config[axis.Name]: true}
		for _, r := range c.arms {
			v := r.Config[axis.Name]
			if !r.runnable() || r.Config[engineParameter] != config[engineParameter] || seen[v] {
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

// helped are the changes that made something better.
func (c *course) helped() []Change {
	var out []Change
	for _, t := range c.trials {
		if t.Stage != RefineStage && t.Stage != RepairStage || !t.measured() {
			continue
		}
		for _, from := range c.trials[:t.Trial-1] {
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

// What a bottleneck asks for is likelier to help than the surrogate, which knows
// no bottleneck, believes: so much better and so much less sure, on logarithms.
const (
	askedGain   = 0.02
	askedSpread = 0.08
)

// best is the configuration by which a launch is expected to gain most, and how
// much, as a share: its expected improvement over what leads, by the chance that it
// runs and meets the bounds. While nothing meets the bounds it is the chance alone
// that decides.
func (c *course) best(configs []Config, asked func(int) bool) (at int, gain float64) {
	m := c.model()
	lead := c.leader()
	at = -1
	limits := c.limits()
	for i, config := range configs {
		mean, sd := m.at(c.point(config))
		if asked != nil && asked(i) {
			mean, sd = mean+askedGain, math.Hypot(sd, askedSpread)
		}
		chance := c.feasible(config)
		for _, l := range limits {
			chance *= l.chance(c, config)
		}
		var worth float64
		switch {
		case lead == nil:
			worth = math.Exp(mean) * chance
		case lead.score.class == meeting:
			worth = expected(mean, sd, lead.mean) * chance
		default:
			worth = (1 + max(0, mean-lead.mean)) * chance
		}
		if at < 0 || worth > gain {
			at, gain = i, worth
		}
	}
	return at, gain
}

// limit is a bound with what is thought of its figure: the chance to meet it.
type limit struct {
	Bound
	model *surrogate
	base  float64 // log of the baseline's predicted figure
	ref   float64 // and of the measured one
}

// limits are the bounds about which something can be thought.
func (c *course) limits() []limit {
	var out []limit
	sd, _, _ := c.spread()
	noise := max(2*sd, 0.05)
	base := c.foresee(Change{}.Apply(c.space.Baseline))
	for _, b := range c.bounds.SLOs {
		l := limit{Bound: b, base: logPositive(base.figures[b.Metric])}
		if !(b.Limit > 0) {
			continue
		}
		var logs []float64
		for _, t := range c.base {
			if v := logPositive(t.merged[b.Metric]); t.measured() && !math.IsNaN(v) {
				logs = append(logs, v)
			}
		}
		if len(logs) == 0 {
			continue
		}
		l.ref = logs[0]
		var points []point
		for _, t := range c.trials {
			v := logPositive(t.merged[b.Metric])
			if t.Pass != 0 || !t.measured() || math.IsNaN(v) {
				continue
			}
			p := l.point(c, t.Config)
			p.y, p.noise = v-l.ref, noise*noise
			points = append(points, p)
		}
		l.model = newSurrogate(points)
		out = append(out, l)
	}
	return out
}

func (l limit) point(c *course, config Config) point {
	p := c.place(config)
	if v := logPositive(c.foresee(config).figures[l.Metric]); !math.IsNaN(v) && !math.IsNaN(l.base) {
		p.x, p.known = v-l.base, true
	}
	return p
}

func (l limit) chance(c *course, config Config) float64 {
	mean, sd := l.model.at(l.point(c, config))
	z := (math.Log(l.Limit) - l.ref - mean) / math.Hypot(sd, 0.03)
	if l.Op == ">=" {
		z = -z
	}
	return below(z)
}

func logPositive(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 1) {
		return math.NaN()
	}
	return math.Log(v)
}

func joined(texts []string) string { return strings.Join(texts, "; ") }
