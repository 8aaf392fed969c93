package earlier

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

// How alike a study is to another is the product of what each difference leaves of it. The
// factors are rough: a search that they mislead unlearns it by its own launches.
const (
	unlikeModel    = 0.8  // another model of the same kind, besides its size
	unlikeSize     = 0.85 // a doubling of the parameters that compute a token
	mostSize       = 3    // doublings, beyond which nothing is learned
	unlikeVersion  = 0.9  // of an engine
	unlikeEngines  = 0.7  // none in common
	unlikeDevice   = 0.7  // another accelerator of the same platform
	unlikePlatform = 0.4
	unknownDevice  = 0.5
	unlikeCount    = 0.8 // a doubling of the devices
	unlikeLength   = 0.9 // a doubling of the prompts, or of the answers
	unlikeLoad     = 0.9 // a doubling of the rate, or of the requests in flight
	unlikeArrival  = 0.6 // requests come by another rule
	unlikeDataset  = 0.9
	unknownLoad    = 0.7
	unlikeReal     = 0.7 // real engines, of a study that simulates them
)

// weighing is a likeness while it is made.
type weighing struct {
	factor float64
	words  []string
}

// differ takes a difference into account.
func (w *weighing) differ(factor float64, format string, args ...any) {
	w.factor *= factor
	w.words = append(w.words, fmt.Sprintf(format, args...))
}

// likeness is that of results under one load, of one model on one machine.
func (t Target) likeness(all []Result) (factor float64, differences []string) {
	w := &weighing{factor: 1}
	first := all[0]
	t.modelLike(w, first.Config[modelKey])
	t.hardwareLike(w, first.GPU, first.GPUs)
	t.loadLike(w, first.Load)
	t.enginesLike(w, all)
	return w.factor, w.words
}

func (t Target) modelLike(w *weighing, name string) {
	if t.sameModel(name, t.Model) {
		return
	}
	theirs, err := t.Lookup(name)
	ours, err2 := t.Lookup(t.Model)
	switch {
	case err != nil || err2 != nil:
		w.differ(0, "another model, %s against %s, and perflab does not know how alike they are", short(name), short(t.Model))
	case kind(theirs) != kind(ours):
		w.differ(0, "another kind of model: %s (%s) against %s (%s)", short(name), kind(theirs), short(t.Model), kind(ours))
	default:
		apart := doublings(float64(theirs.Active()), float64(ours.Active()))
		if apart > mostSize {
			w.differ(0, "a model of another size: %s against %s", short(name), short(t.Model))
			return
		}
		w.differ(unlikeModel*math.Pow(unlikeSize, apart), "another model: %s against %s", short(name), short(t.Model))
	}
}

// sameModel reports whether two checkpoints are of one model, in whatever format.
func (t Target) sameModel(a, b string) bool {
	if strings.EqualFold(short(a), short(b)) {
		return true
	}
	m, err := t.Lookup(a)
	n, err2 := t.Lookup(b)
	if err != nil || err2 != nil {
		return false
	}
	return m.Layers == n.Layers && m.Hidden == n.Hidden && m.Heads == n.Heads && m.Vocab == n.Vocab && m.Params() == n.Params()
}

// checkpoint is what this study calls a checkpoint: its own of the same format, or the name as
// it is where it has none.
func (t Target) checkpoint(name string) string {
	theirs, err := t.Lookup(name)
	for _, own := range t.Models {
		ours, err2 := t.Lookup(own)
		if strings.EqualFold(short(own), short(name)) || err == nil && err2 == nil && ours.Format == theirs.Format {
			return own
		}
	}
	return name
}

// kind is what decides which layouts and limits suit a model.
func kind(m arch.Model) string {
	parts := []string{"dense"}
	if m.MoE != nil {
		parts[0] = "mixture of experts"
	}
	if m.MLA != nil {
		parts = append(parts, "latent attention")
	}
	if m.Linear != nil {
		parts = append(parts, "linear attention")
	}
	return strings.Join(parts, ", ")
}

func short(model string) string { return path.Base(model) }

// doublings are those between two numbers, however the one becomes the other.
func doublings(a, b float64) float64 { return math.Abs(math.Log2(a / b)) }

func (t Target) hardwareLike(w *weighing, name string, gpus int) {
	theirs, err := arch.LookupAccelerator(name)
	switch {
	case name == "" || err != nil:
		w.differ(unknownDevice, "its hardware is not known")
	case theirs.Name == t.GPU.Name:
	case (theirs.Platform == arch.CPU) != (t.GPU.Platform == arch.CPU):
		w.differ(0, "other hardware: %s against %s", theirs.Title, t.GPU.Title)
		return
	case theirs.Platform != t.GPU.Platform:
		w.differ(unlikePlatform, "other hardware: %s against %s", theirs.Title, t.GPU.Title)
	default:
		w.differ(unlikeDevice, "other hardware: %s against %s", theirs.Title, t.GPU.Title)
	}
	if gpus > 0 && gpus != t.GPUs {
		w.differ(math.Pow(unlikeCount, doublings(float64(gpus), float64(t.GPUs))), "%s against %d", devices(gpus), t.GPUs)
	}
}

func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}

func (t Target) loadLike(w *weighing, l Load) {
	o := t.Load
	switch known := l.Input > 0 && o.Input > 0; {
	case !known:
		w.differ(unknownLoad, "how long its requests are is not known")
	case math.Abs(l.Input-o.Input) > sameLength*max(l.Input, o.Input) || math.Abs(l.Output-o.Output) > sameLength*max(l.Output, o.Output):
		apart := doublings(l.Input, o.Input)
		if l.Output > 0 && o.Output > 0 {
			apart += doublings(l.Output, o.Output)
		}
		w.differ(math.Pow(unlikeLength, apart), "another load: %.0f/%.0f tokens against %.0f/%.0f", l.Input, l.Output, o.Input, o.Output)
	}
	if l.Dataset != "" && o.Dataset != "" && l.Dataset != o.Dataset {
		w.differ(unlikeDataset, "another dataset: %s against %s", l.Dataset, o.Dataset)
	}
	switch same := l.rule() == o.rule(); {
	case !same:
		w.differ(unlikeArrival, "another load: %s against %s", l.arrivals(), o.arrivals())
	case l.Searched != "": // whatever it was found to be
	case l.Rate != o.Rate || l.Limit != o.Limit:
		apart := 0.0
		if l.Rate > 0 {
			apart += doublings(l.Rate, o.Rate)
		}
		if l.Limit > 0 {
			apart += doublings(float64(l.Limit), float64(o.Limit))
		}
		w.differ(math.Pow(unlikeLoad, apart), "another load: %s against %s", l.arrivals(), o.arrivals())
	}
}

// rule is by what requests come, whatever the numbers.
func (l Load) rule() string {
	return fmt.Sprint(l.Searched, l.Traced, l.Rate > 0, l.Limit > 0)
}

// arrivals says how requests come.
func (l Load) arrivals() string {
	var parts []string
	switch {
	case l.Searched != "":
		return "the highest " + l.Searched + " that is found"
	case l.Rate > 0:
		parts = append(parts, fmt.Sprintf("%.4g requests/s", l.Rate))
	case l.Traced:
		parts = append(parts, "the times of a trace")
	}
	if l.Limit > 0 {
		parts = append(parts, fmt.Sprintf("%d in flight", l.Limit))
	}
	if len(parts) == 0 {
		return "all at once"
	}
	return strings.Join(parts, ", ")
}

func (t Target) enginesLike(w *weighing, all []Result) {
	common := false
	var seen []string
	for _, r := range all {
		name := r.Config[engineKey]
		ours, tried := t.Engines[name]
		common = common || tried
		if !tried || r.Version == "" || ours == "" || r.Version == ours || slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		title := name
		if e, err := engine.ByName(name); err == nil {
			title = e.Title
		}
		w.differ(unlikeVersion, "another version of %s: %s against %s", title, r.Version, ours)
	}
	if !common {
		w.differ(unlikeEngines, "no engine in common")
	}
}
