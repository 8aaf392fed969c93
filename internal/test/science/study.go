package science

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/tune"
	"perflab/internal/tune/draw"
	"perflab/internal/tune/staged"
)

// Entrant is a strategy to compare.
type Entrant struct {
	Name  string
	Start func(w *World, b tune.Budget) (tune.Strategy, error)
}

// Entrants are the strategies. All are given the same space, guide and budget, and
// the race alone the predictor: the others have no use for one. The blind race has
// none, as the truth of a landscape is nearer to its predictor than a real engine is
// to the simulator. The steps of a staged search are the staged one's alone.
func Entrants() []Entrant {
	drawing := func(start func(tune.SearchSpace, tune.Space, tune.Objective, tune.Budget, uint64) (*draw.Search, error)) func(*World, tune.Budget) (tune.Strategy, error) {
		return func(w *World, b tune.Budget) (tune.Strategy, error) {
			return start(w.space, w.plain(), w.Objective, b, w.Seed)
		}
	}
	return []Entrant{
		{"race", func(w *World, b tune.Budget) (tune.Strategy, error) {
			return tune.NewRace(w.space, newPupil(w), w.plain(), w.Objective, b, tune.RaceOptions{})
		}},
		{"race, blind", func(w *World, b tune.Budget) (tune.Strategy, error) {
			return tune.NewRace(w.space, nil, w.plain(), w.Objective, b, tune.RaceOptions{})
		}},
		{"staged", func(w *World, b tune.Budget) (tune.Strategy, error) {
			s := w.plain()
			s.Stages = w.stages()
			return staged.New(s, w.Objective, b)
		}},
		{"tpe", drawing(draw.NewTPE)},
		{"random", drawing(draw.NewRandom)},
		{"grid", drawing(draw.NewGrid)},
	}
}

// Untaught is the race whose predictor learns nothing of the baseline's first launch: what that
// is worth is seen beside it.
func Untaught() Entrant {
	return Entrant{"untaught", func(w *World, b tune.Budget) (tune.Strategy, error) {
		return tune.NewRace(w.space, w, w.plain(), w.Objective, b, tune.RaceOptions{})
	}}
}

func (w *World) plain() tune.Space { return tune.Space{Baseline: w.Baseline, Primary: workload} }

// Launch is one launch of a study, beside the truth.
type Launch struct {
	tune.Proposal
	Observed tune.Observation
	Regret   float64
}

// End is what became of a study.
type End struct {
	Course   []Launch
	Launches int
	Pick     tune.Config // what is recommended, the baseline where nothing is
	Regret   float64     // of it
	Reached  float64     // of the best that was launched, by the truth
	Changed  bool        // something else than the baseline is recommended
	Idle     int         // its settings that could be left out for less than idleLoss
	Claimed  bool        // and it is said to be better
	Gain     *float64    // of it over the baseline, in truth; nil: one of them has no figure
	Stated   *tune.Span  // of Gain, as the study states it; nil: it states none
	ShownAt  int         // launches after which the claim was shown by a comparison; 0: by none
	Short    string      // why it ended without its work done; "": it did not
	Story    string      // of what was lost, for whoever wants to know why
	Seconds  float64
}

// Covered reports whether the true gain lies in the interval that a study states, where
// it states one.
func (end *End) Covered() (yes, stated bool) {
	if end.Stated == nil || end.Gain == nil {
		return false, false
	}
	return end.Stated.Low <= *end.Gain && *end.Gain <= end.Stated.High, true
}

// Study runs a strategy of so many launches to its end. Where nothing is recommended the
// baseline stays in use, and its regret counts.
func (w *World) Study(e Entrant, launches int) (End, error) {
	s, err := e.Start(w, tune.Budget{Trials: launches})
	if err != nil {
		return End{}, fmt.Errorf("%s on %s: %w", e.Name, w.Name, err)
	}
	end := End{Reached: 1}
	for {
		p, ok := s.Ask()
		if !ok {
			break
		}
		if len(end.Course) == launches {
			return End{}, fmt.Errorf("%s on %s: asks for a launch beyond its budget of %d", e.Name, w.Name, launches)
		}
		o := w.Evaluate(p, launches)
		l := Launch{p, o, w.Regret(p.Config)}
		end.Course = append(end.Course, l)
		end.Seconds += o.Seconds
		end.Reached = min(end.Reached, l.Regret)
		s.Tell(o)
	}
	end.conclude(w, s.Result(), launches)
	return end, nil
}

// conclude says what became of a study of so many launches.
func (end *End) conclude(w *World, r tune.Result, launches int) {
	end.Pick, end.Launches = w.Baseline, len(end.Course)
	switch {
	case r.Winner > 0 && r.Winner <= len(end.Course):
		end.Pick = end.Course[r.Winner-1].Config
	case r.Winner == 0:
		end.Short = "nothing is recommended"
	default:
		end.Short = "recommends a trial that it never asked for"
	}
	last := len(end.Course) - 1
	if end.Short == "" && last >= 0 && end.Course[last].Observed.Status != tune.Measured && 2*len(end.Course) < launches {
		end.Short = "ended at a launch that was refused or broke"
	}
	end.Regret = w.Regret(end.Pick)
	end.Changed = key(end.Pick) != key(w.Baseline)
	end.Idle = w.idle(end.Pick)
	before, _ := w.Truth(w.Baseline)
	after, _ := w.Truth(end.Pick)
	end.Gain = w.Objective.Gain(before, after)
	end.ShownAt = end.shownAt(w.Baseline, r)
	end.Claimed = end.Changed && (end.ShownAt > 0 || r.Evidence == nil || len(r.Evidence.Comparisons) == 0)
	if end.Changed {
		end.Stated = r.Interval
	}
	end.Story = end.story(w)
}

// idleLoss is the share of the objective under which a setting brings nothing.
const idleLoss = 0.005

// idle counts the settings of a configuration that could as well be the baseline's, one at a
// time, for less than idleLoss.
func (w *World) idle(pick tune.Config) int {
	n := 0
	for name, v := range pick {
		if name == "engine" || name == "model" || v == w.Baseline[name] {
			continue
		}
		less := maps.Clone(pick)
		delete(less, name)
		if v := w.Baseline[name]; v != "" {
			less[name] = v
		}
		if w.Regret(less) < w.Regret(pick)+idleLoss {
			n++
		}
	}
	return n
}

// shownAt is the launch that completed the first comparison by which something is better
// than the baseline. A strategy without comparisons has no such launch: it says that
// something is better by recommending it.
func (end *End) shownAt(baseline tune.Config, r tune.Result) int {
	at := 0
	if r.Evidence == nil {
		return 0
	}
	for _, c := range r.Evidence.Comparisons {
		if c.Verdict != tune.Better || len(c.Trials) == 0 || len(c.Others) == 0 || key(end.Course[c.Others[0]-1].Config) != key(baseline) {
			continue
		}
		if n := max(slices.Max(c.Trials), slices.Max(c.Others)); at == 0 || n < at {
			at = n
		}
	}
	return at
}

// parameters are those that a landscape lists values of.
func (w *World) parameters() []string {
	names := []string{"engine", "model"}
	for _, name := range sortedNames(w.Narrow) {
		if len(w.Narrow[name]) > 1 {
			names = append(names, name)
		}
	}
	return names
}

// story says what is best, what is recommended, and how near to the best the study came:
// how often it launched each setting of it, and in how many the launch differed that came
// nearest.
func (end *End) story(w *World) string {
	names := w.parameters()
	nearest, times := len(names), map[string]int{}
	for _, l := range end.Course {
		apart := 0
		for _, name := range names {
			if l.Config[name] == w.best[name] {
				times[name]++
			} else {
				apart++
			}
		}
		nearest = min(nearest, apart)
	}
	var text strings.Builder
	text.WriteString("best")
	for _, name := range names {
		text.WriteString(fmt.Sprintf(" %s=%s(%d)", name, cmp.Or(w.best[name], "default"), times[name]))
	}
	text.WriteString("; recommended")
	for _, name := range names {
		if end.Pick[name] != w.best[name] {
			text.WriteString(fmt.Sprintf(" %s=%s", name, cmp.Or(end.Pick[name], "default")))
		}
	}
	return fmt.Sprintf("%s; %d launches, the nearest %d settings off, the best of them loses %.1f %%", text.String(), len(end.Course), nearest, 100*end.Reached)
}
