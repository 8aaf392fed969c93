package forecast

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/calib"
	"perflab/internal/sim"
	"perflab/internal/stat"
)

// HoldOutAuto holds runs out by workload, or by model where an accelerator has
// seen more models than workloads.
const HoldOutAuto = "auto"

// holdOutKeys are what runs may be held out by.
var holdOutKeys = map[string]func(calib.Observation) string{
	"workload": calib.ByWorkload,
	"model":    calib.ByModel,
	"study":    calib.ByStudy,
}

// IsHoldOut reports whether runs can be held out by something of that name.
func IsHoldOut(name string) bool { return name == HoldOutAuto || holdOutKeys[name] != nil }

// FitOptions are how a calibration is made.
type FitOptions struct {
	HoldOut string   // what runs are held out by for the errors: HoldOutAuto, workload, model or study
	Sources []string // what the runs were read from
	Seed    uint64   // of lengths that are known on average only

	Each calib.Each                       // of the replays
	Log  func(format string, args ...any) // is told what begins; nil: nobody
}

// Fit is all that a calibration found; its JSON is what --format json prints.
type Fit struct {
	Simulated   bool              `json:"simulated,omitempty"`
	Calibration calib.Calibration `json:"calibration"`
	Parameters  []calib.Parameter `json:"parameters"`
	InSample    []calib.Residual  `json:"in_sample"`
	HoldOut     string            `json:"hold_out"`
	HeldOut     []calib.Residual  `json:"held_out"`
	Omitted     []Omission        `json:"left_out"`

	observations []calib.Observation
}

// ErrNoRuns ends a calibration to which no run can contribute.
var ErrNoRuns = errors.New("no run can be used")

// Calibrate fits the constants to the observations, and again without each
// workload, model or study. Observations whose configuration is in doubt are
// moved to those that are omitted.
func Calibrate(o *Observer, opts FitOptions) (*Fit, error) {
	o.omitAmbiguous()
	if len(o.Observations) == 0 {
		return nil, ErrNoRuns
	}
	log := opts.Log
	if log == nil {
		log = func(string, ...any) {}
	}
	f := &Fit{Simulated: o.Simulated, HoldOut: opts.HoldOut, Omitted: append([]Omission{}, o.Omitted...), observations: o.Observations}
	options := calib.FitOptions{Seed: opts.Seed, Each: opts.Each}
	log("fit %s", f.runs("run"))
	fitted, err := calib.Fit(f.observations, options)
	if err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	f.Parameters, f.InSample = fitted.Parameters, fitted.Residuals
	log("hold out by %s", f.HoldOut)
	key := holdOutKeys[f.HoldOut]
	if key == nil {
		key = calib.DefaultHoldOut(f.observations)
	}
	folds, err := calib.HoldOut(f.observations, key, options)
	if err != nil {
		return nil, fmt.Errorf("hold out by %s: %w", f.HoldOut, err)
	}
	f.HeldOut = calib.HeldResiduals(folds)
	f.Calibration = fitted.Calibration(f.source(opts.Sources), f.observations, f.HeldOut)
	if f.Simulated {
		f.Calibration.Note = append(f.Calibration.Note, "SIMULATED: fitted to runs of a simulator; nothing in here is of hardware.")
	}
	return f, nil
}

// Correct is a calibration corrected by the observations, which are runs of one site.
func (o *Observer) Correct(c calib.Calibration, each calib.Each) (calib.Calibration, error) {
	o.omitAmbiguous()
	if len(o.Observations) == 0 {
		return c, fmt.Errorf("correct predictions by runs: %w", ErrNoRuns)
	}
	with, err := c.With(o.Observations, calib.FitOptions{Each: each})
	if err != nil {
		return c, fmt.Errorf("correct predictions by runs: %w", err)
	}
	return *with, nil
}

// omitAmbiguous leaves out what no constant should be fitted to.
func (o *Observer) omitAmbiguous() {
	o.Observations = slices.DeleteFunc(o.Observations, func(x calib.Observation) bool {
		if x.Ambiguous() {
			o.Omitf(x.ID, "it is %s", x.Apart)
		}
		return x.Ambiguous()
	})
}

// runs counts the runs.
func (f *Fit) runs(noun string) string {
	if n := len(f.observations); n != 1 {
		return fmt.Sprintf("%d %ss", n, noun)
	}
	return "1 " + noun
}

// source tells in one sentence what was fitted.
func (f *Fit) source(files []string) string {
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	noun := "run"
	if f.Simulated {
		noun = "SIMULATED run"
	}
	return fmt.Sprintf("%s of %s, held out by %s.", f.runs(noun), strings.Join(names, ", "), f.HeldOutBy())
}

// HeldOutBy says what runs were held out by.
func (f *Fit) HeldOutBy() string {
	if f.HoldOut == HoldOutAuto {
		return "workload, or model where more of them were seen"
	}
	return f.HoldOut
}

// Constant is a fitted constant with what it means.
type Constant struct {
	calib.Parameter
	Unit, Meaning string
	Silent        bool // the runs tell nothing of it
}

// Constants are those of the fit, by name.
func (f *Fit) Constants() []Constant {
	var out []Constant
	for _, p := range slices.SortedStableFunc(slices.Values(f.Parameters), func(x, y calib.Parameter) int { return strings.Compare(x.Name, y.Name) }) {
		about, _ := sim.Priors().About(p.Name)
		out = append(out, Constant{p, about.Unit, about.Meaning, silent(&p)})
	}
	return out
}

// silent says that the runs tell nothing of a constant: its spread is still the
// prior's, and it lies within half of that.
func silent(p *calib.Parameter) bool {
	return p.Spread >= 0.95*p.PriorSpread && math.Abs(math.Log(p.Value/p.Prior)) < p.PriorSpread/2
}

// ErrorTable is how far predictions were off, run by run, as shares of what was
// measured.
type ErrorTable struct {
	Metrics []string // that an error is known of
	Groups  []ErrorGroup
}

// ErrorGroup is the runs that are scored together, with quantiles of the sizes
// of their errors.
type ErrorGroup struct {
	Apart  bool // runs that are scored by themselves
	Runs   []ErrorRow
	Median map[string]float64 // by metric
	P90    map[string]float64
}

// ErrorRow is a run's errors by metric.
type ErrorRow struct {
	Run      string // without the directory that all runs share
	Setup    string // model, accelerators and engine
	Workload string
	Errors   map[string]float64
}

// InSampleErrors are those of the fitted runs: no measure of accuracy.
func (f *Fit) InSampleErrors() ErrorTable { return f.errors(f.InSample) }

// HeldOutErrors are those of each run predicted by a fit of the others.
func (f *Fit) HeldOutErrors() ErrorTable { return f.errors(f.HeldOut) }

func (f *Fit) errors(residuals []calib.Residual) ErrorTable {
	byRun := map[string]map[string]float64{}
	var t ErrorTable
	for _, r := range residuals {
		if byRun[r.ID] == nil {
			byRun[r.ID] = map[string]float64{}
		}
		byRun[r.ID][r.Metric] = r.Off()
	}
	for _, m := range calib.Scored {
		if slices.ContainsFunc(residuals, func(r calib.Residual) bool { return r.Metric == m }) {
			t.Metrics = append(t.Metrics, m)
		}
	}
	var ids []string
	for _, o := range f.observations {
		ids = append(ids, o.ID)
	}
	shared := SharedDir(ids)
	for _, apart := range []bool{false, true} {
		g := ErrorGroup{Apart: apart}
		for _, o := range f.observations {
			if (o.Apart != "") == apart && byRun[o.ID] != nil {
				setup := fmt.Sprintf("%s, %d x %s, %s", o.Config.Model.Name, o.Config.GPUs, o.GPU, o.Config.Engine)
				g.Runs = append(g.Runs, ErrorRow{strings.TrimPrefix(o.ID, shared), setup, o.Workload, byRun[o.ID]})
			}
		}
		if len(g.Runs) > 0 {
			g.Median, g.P90 = g.sizes(0.5), g.sizes(0.9)
			t.Groups = append(t.Groups, g)
		}
	}
	return t
}

// sizes is a quantile of the sizes of errors, by metric.
func (g *ErrorGroup) sizes(q float64) map[string]float64 {
	all := map[string][]float64{}
	for _, r := range g.Runs {
		for m, v := range r.Errors {
			all[m] = append(all[m], math.Abs(v))
		}
	}
	out := map[string]float64{}
	for m, x := range all {
		slices.Sort(x)
		out[m] = stat.Quantile(x, q)
	}
	return out
}

// SharedDir is the directory that all places lie in, with its separator; "" of
// one alone.
func SharedDir(places []string) string {
	if len(places) < 2 {
		return ""
	}
	dir := places[0]
	for _, p := range places {
		for dir != "" && !strings.HasPrefix(p, dir) {
			dir = dir[:len(dir)-1]
		}
	}
	return dir[:strings.LastIndexAny(dir, `/\`)+1]
}
