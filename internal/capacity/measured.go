package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/forecast"
	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/store/scan"
	"perflab/internal/workload"
)

// Index is what is asked for runs: a *store.Store.
type Index interface {
	List(ctx context.Context, q store.Query) (store.Page, error)
}

// Case is a model on hardware with what runs of it gave, as one source measured them.
type Case struct {
	Model     string
	Engine    string
	Hardware  string // in words
	GPU       string // short name of the accelerator; "": the words leave open which it is
	GPUs      int    // 0: not known
	Simulated bool
	Predicted bool
	Client    string // that measured; "": perflab
	Runs      int
	Voided    int // that enter nothing

	Best  store.Entry  // with the highest output throughput: the nearest to saturation that was measured
	AtSLO *store.Entry // with the highest that met the SLOs; nil: none, or none asked for
	Alone *store.Entry // with the lowest mean TPOT
}

// Measured reports whether an engine was measured.
func (c Case) Measured() bool { return !c.Simulated && !c.Predicted }

// Measured gives the cases of the runs that a filter holds for: measured ones first, then the
// highest throughput.
func Measured(ctx context.Context, s Index, filter, slo string) ([]Case, error) {
	slos, err := Ask{SLO: slo}.slos()
	if err != nil {
		return nil, err
	}
	figures := append(metrics(), "total_input_tokens", "total_output_tokens", "completed", "failed")
	for _, x := range slos {
		figures = append(figures, x.Metric)
	}
	cases := map[string]*Case{}
	for offset := 0; ; offset += store.MostPage {
		p, err := s.List(ctx, store.Query{Filter: strings.TrimSpace(filter + " kind=run"), Order: "id", Limit: store.MostPage, Offset: offset, Figures: figures})
		if err != nil {
			return nil, err
		}
		for _, e := range p.Entries {
			take(cases, e, slos)
		}
		if len(p.Entries) < store.MostPage {
			break
		}
	}
	var out []Case
	for _, c := range cases {
		if c.Best.ID != "" {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, func(a, b Case) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(value(b.Best, Throughput), value(a.Best, Throughput)), cmp.Compare(a.Best.ID, b.Best.ID))
	})
	return out, nil
}

// rank puts what was measured first.
func (c Case) rank() int {
	switch {
	case c.Predicted:
		return 3
	case c.Simulated:
		return 2
	case c.Client != "":
		return 1
	}
	return 0
}

// take adds a run to its case.
func take(cases map[string]*Case, e store.Entry, slos []result.SLO) {
	if e.Model == "" || e.State == scan.Running {
		return
	}
	key := fmt.Sprintf("%q %q %q %d %t %t %q", e.Model, e.Engine, e.Hardware, e.GPUs, e.Simulated, e.Predicted, e.Imported)
	c := cases[key]
	if c == nil {
		c = &Case{Model: e.Model, Engine: e.Engine, Hardware: e.Hardware, GPUs: e.GPUs, Simulated: e.Simulated, Predicted: e.Predicted, Client: e.Imported}
		if all := arch.AcceleratorsIn(e.Hardware); len(all) == 1 && all[0].Known() {
			c.GPU = all[0].Name
		}
		cases[key] = c
	}
	c.Runs++
	if e.Verdict == string(result.Voided) {
		c.Voided++
		return
	}
	if v := value(e, Throughput); v > value(c.Best, Throughput) {
		c.Best = e
	}
	if v := value(e, MeanTPOT); v > 0 && (c.Alone == nil || v < value(*c.Alone, MeanTPOT)) {
		c.Alone = &e
	}
	if len(slos) > 0 && met(e, slos) && (c.AtSLO == nil || value(e, Throughput) > value(*c.AtSLO, Throughput)) {
		c.AtSLO = &e
	}
}

// value is a figure, 0 where there is none: no throughput is 0 in a run that answered anything.
func value(e store.Entry, metric string) float64 {
	f, _ := e.Figure(metric)
	return f.Value
}

// met holds the figures of a run against SLOs. What it does not have meets none.
func met(e store.Entry, slos []result.SLO) bool {
	s := result.Summary{Figures: map[string]float64{}}
	for name, f := range e.Figures {
		s.Figures[name] = f.Value
	}
	for _, slo := range slos {
		if ok, _ := slo.Judge(s); !ok {
			return false
		}
	}
	return true
}

// Check is a run with what is predicted for it.
type Check struct {
	Run     string // ID
	Row     forecast.Row
	Outside []string
	Off     map[string]float64 // by metric: the prediction's distance from the measurement, a share of it
	Refused string             // why the engine would not start by the catalogue, though it did
}

// ErrUnknown says why nothing can be predicted for a run.
var ErrUnknown = errors.New("nothing can be predicted for this run")

// Hold predicts a run from its serving command, its hardware and its load, of which the mean
// lengths are taken, and says how far that is from what it gave.
func Hold(ctx context.Context, e store.Entry) (Check, error) {
	out := Check{Run: e.ID, Off: map[string]float64{}}
	a, cmd, err := askOf(e)
	if err != nil {
		return out, err
	}
	n := int(min(max(float64(e.Requests), leastRequests), mostRequests))
	spec := workload.Spec{Dataset: "random", Seed: 1, NumPrompts: n, RandomInputLen: a.Input, RandomOutputLen: a.Output, MaxConcurrency: e.Limit, IgnoreEOS: true}
	if e.Rate > 0 {
		spec.Rate = workload.Rate(e.Rate)
	}
	l, err := load(spec)
	if err != nil {
		return out, err
	}
	t, err := answer(ctx, a, forecast.Command{Line: e.Command, Command: cmd}, nil, []forecast.Load{l}, drawn)
	if err != nil {
		return out, err
	}
	if t.Configurations[0].Refused != "" {
		out.Refused = t.Configurations[0].Refused
		return out, nil
	}
	out.Row, out.Outside = t.Rows[0], t.Rows[0].Outside
	for _, m := range metrics() {
		if was := value(e, m); was > 0 {
			if p, ok := out.Row.Figures[m]; ok && !math.IsNaN(p.Value) {
				out.Off[m] = p.Value/was - 1
			}
		}
	}
	return out, nil
}

// askOf is the question that a run answers.
func askOf(e store.Entry) (Ask, engine.Command, error) {
	none := engine.Command{}
	if e.Command == "" {
		return Ask{}, none, fmt.Errorf("%w: its serving command is not known", ErrUnknown)
	}
	cmd, err := engine.ParseText(e.Command)
	if err != nil {
		return Ask{}, none, fmt.Errorf("%w: its command cannot be read: %w", ErrUnknown, err)
	}
	all := arch.AcceleratorsIn(e.Hardware)
	if len(all) != 1 || !all[0].Known() {
		return Ask{}, none, fmt.Errorf("%w: its hardware (%s) is not one accelerator of the catalogue", ErrUnknown, cmp.Or(e.Hardware, "not named"))
	}
	if _, err := arch.LookupModel(cmp.Or(cmd.Model, e.Model)); err != nil {
		return Ask{}, none, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	completed := value(e, "completed")
	in, out := value(e, "total_input_tokens"), value(e, "total_output_tokens")
	if completed == 0 || in == 0 || out == 0 {
		return Ask{}, none, fmt.Errorf("%w: it does not say how long its requests were", ErrUnknown)
	}
	return Ask{Model: cmp.Or(cmd.Model, e.Model), GPU: all[0].Name, GPUs: max(1, e.GPUs, cmd.World()), Engine: cmd.Engine,
		Input: max(1, int(math.Round(in/completed))), Output: max(1, int(math.Round(out/completed)))}, cmd, nil
}

// Key names the question: equal where the answer is.
func (a Ask) Key() string {
	return strings.Join([]string{a.Model, a.Config, strings.ToLower(a.GPU), strconv.Itoa(a.GPUs), a.Engine, strconv.Itoa(a.TP), strconv.Itoa(a.Input), strconv.Itoa(a.Output), a.SLO}, "\x00")
}
