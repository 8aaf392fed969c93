package hardware

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/arch"
	"perflab/internal/capacity"
	"perflab/internal/doctor"
	"perflab/internal/engine"
	"perflab/internal/forecast"
	"perflab/internal/store"
	"perflab/internal/web/page"
)

// usual is what a question begins with.
var usual = capacity.Ask{GPU: "h100-sxm", GPUs: 1, Engine: "vllm", Input: 1024, Output: 256}

// names are those of the state in an address.
var names = []string{"q", "model", "config", "gpu", "gpus", "engine", "tp", "input", "output", "slo"}

// parse reads an address. An error is of a number that is none; the rest is read all the same.
func parse(q url.Values) (asked, error) {
	a := asked{Q: strings.TrimSpace(q.Get("q")), Ask: usual}
	text := func(name string, into *string) {
		if v := strings.TrimSpace(q.Get(name)); v != "" {
			*into = v
		}
	}
	var wrong error
	number := func(name string, into *int) {
		v := strings.TrimSpace(q.Get(name))
		if v == "" {
			return
		}
		n, err := strconv.Atoi(v)
		if err != nil && wrong == nil {
			wrong = page.Bad(name + ": " + strconv.Quote(v) + " is no whole number")
			return
		}
		*into = n
	}
	text("model", &a.Ask.Model)
	text("config", &a.Ask.Config)
	text("gpu", &a.Ask.GPU)
	text("engine", &a.Ask.Engine)
	text("slo", &a.Ask.SLO)
	number("gpus", &a.Ask.GPUs)
	number("tp", &a.Ask.TP)
	number("input", &a.Ask.Input)
	number("output", &a.Ask.Output)
	a.Given = a.Ask.Model != ""
	return a, wrong
}

// query is the address of the state, without what is usual.
func (a asked) query() url.Values {
	q := url.Values{}
	set := func(name, value, usual string) {
		if value != usual {
			q.Set(name, value)
		}
	}
	set("q", a.Q, "")
	set("model", a.Ask.Model, "")
	set("config", a.Ask.Config, "")
	set("gpu", a.Ask.GPU, usual.GPU)
	set("gpus", strconv.Itoa(a.Ask.GPUs), strconv.Itoa(usual.GPUs))
	set("engine", a.Ask.Engine, usual.Engine)
	set("tp", strconv.Itoa(a.Ask.TP), "0")
	set("input", strconv.Itoa(a.Ask.Input), strconv.Itoa(usual.Input))
	set("output", strconv.Itoa(a.Ask.Output), strconv.Itoa(usual.Output))
	set("slo", a.Ask.SLO, "")
	return q
}

// tidy is the address with what is not usual alone; ok says that it was so. One with an error stays.
func (a asked) tidy(u *url.URL) (to string, ok bool) {
	q := u.Query()
	was := q.Encode()
	if _, err := parse(q); err != nil {
		return "", true
	}
	for _, name := range names {
		q.Del(name)
	}
	maps.Copy(q, a.query())
	switch {
	case q.Encode() == was:
		return "", true
	case len(q) == 0:
		return u.Path, false
	}
	return u.Path + "?" + q.Encode(), false
}

// view is what the page shows.
type view struct {
	State   asked
	TP      string
	Wrong   string
	Models  []string
	GPUs    []arch.Accelerator
	Engines []*engine.Engine
	Waiting []string // what is not there yet
	Events  string

	Looking bool
	Looked  time.Time
	Fault   string // of the look
	Devices []device
	Seen    []seen

	Asking   bool
	Options  []option
	Same     []row // measured, of the model on the accelerator that is asked
	NoAnswer string
	SLO      bool

	Rows  []row
	Empty bool // no run at all
}

// device is one of this machine.
type device struct {
	doctor.Accelerator
	Ask string
}

// Free is its free memory.
func (d device) Free() string {
	if d.FreeGiB == nil {
		return page.None
	}
	return fmt.Sprintf("%.0f GiB", *d.FreeGiB)
}

// seen is hardware of runs.
type seen struct {
	Text, GPU string
	Models    []string
	Runs      int
	Measured  bool
}

// row is a case.
type row struct {
	capacity.Case
	Word    string // measured, SIMULATED, PREDICTED
	Figure  string // of the throughput, with its interval
	Raw     string
	AtSLO   string
	SLOHref string
	TTFT    string
	TPOT    string
	Load    string
	Href    string
	Name    string
	Held    string // "predicted 4,650 tok/s (+11 %)"
	Holding bool
	Why     string // nothing is predicted, or what is new to the calibration
	Ask     string
}

// option is a way to use the GPUs.
type option struct {
	Title      string
	Refused    string
	Throughput string
	Raw        string
	AtSLO      string
	Concurrent string // requests in flight there
	TTFT, TPOT string // alone
	SLOTTFT    string
	Weights    string
	KV         string
	KVTokens   string
	Bottleneck string
	Unsure     []string
	Command    string
	Notes      []string
}

func viewOf(a asked, n needs) *view {
	v := &view{State: a, Engines: engine.All(), SLO: a.Ask.SLO != "", Asking: a.Given}
	if a.Ask.TP > 0 {
		v.TP = strconv.Itoa(a.Ask.TP)
	}
	for _, m := range arch.Models() {
		v.Models = append(v.Models, m.Name)
	}
	for _, g := range arch.Accelerators() {
		if g.Known() {
			v.GPUs = append(v.GPUs, g)
		}
	}
	if n.wrong != nil {
		v.Wrong, v.SLO = n.wrong.Error(), false
	}
	if v.Looking = !n.here.over(); v.Looking {
		v.Waiting = append(v.Waiting, "a look at this machine")
	} else {
		v.devices(n.here)
	}
	v.answer(n)
	for _, c := range n.cases {
		r := v.row(c, n.checks[c.Best.ID])
		v.Rows = append(v.Rows, r)
		if a.Given && sameModel(c.Model, a.Ask.Model) && strings.EqualFold(c.GPU, a.Ask.GPU) {
			v.Same = append(v.Same, r)
		}
	}
	v.Seen = seenIn(n.cases)
	v.Empty = len(n.cases) == 0 && a.Q == ""
	return v
}

// sameModel compares models by their bare names, as the catalogue does.
func sameModel(a, b string) bool {
	bare := func(s string) string { return strings.ToLower(s[strings.LastIndex(s, "/")+1:]) }
	return bare(a) == bare(b)
}

// devices takes a look that has ended.
func (v *view) devices(look *job) {
	if !look.over() {
		return
	}
	if look.err != nil {
		v.Fault = look.err.Error()
	}
	found, _ := look.value.([]doctor.Accelerator) // nil where it failed
	v.Devices = nil
	for _, d := range found {
		x := device{Accelerator: d}
		if len(d.Known) == 1 {
			ask := v.State.Ask
			ask.GPU, ask.GPUs = d.Known[0], len(found)
			ask.Model = cmp.Or(ask.Model, "Qwen/Qwen3-8B")
			x.Ask = link(ask)
		}
		v.Devices = append(v.Devices, x)
	}
}

// answer takes what was predicted, where it is there.
func (v *view) answer(n needs) {
	switch {
	case n.answer == nil:
		return
	case !n.answer.over():
		v.Waiting = append(v.Waiting, "the prediction")
		return
	case n.answer.err != nil:
		v.NoAnswer = n.answer.err.Error()
		return
	}
	a, _ := n.answer.value.(capacity.Answer) // what Predict gives
	for _, o := range a.Options {
		v.Options = append(v.Options, optionOf(o))
	}
}

func optionOf(o capacity.Option) option {
	out := option{Command: o.Command, Refused: o.Refused, Notes: o.Notes, Unsure: slices.Clone(o.Outside)}
	out.Title = cmp.Or(o.Label, "as asked")
	if o.Refused != "" {
		return out
	}
	out.Title = fmt.Sprintf("%s of %s", page.Plural(o.Replicas, "replica"), page.Plural(o.Each, "GPU"))
	if s := o.Saturated; s != nil {
		e := s.Figures[capacity.Throughput]
		out.Throughput, out.Raw = estimate(e, "tok/s"), strconv.FormatFloat(e.Value, 'f', 0, 64)
		if s.KV != nil {
			out.KVTokens = grouped(float64(s.KV.Tokens))
		}
		if s.Bottleneck != nil {
			out.Bottleneck = s.Bottleneck.Text
		}
		if s.Failed != "" {
			out.Unsure = append(out.Unsure, s.Failed)
		}
	}
	if r := o.AtSLO; r != nil {
		out.AtSLO = estimate(r.Figures[capacity.Throughput], "tok/s")
		out.SLOTTFT = estimate(r.Figures[capacity.P99TTFT], "ms")
		out.Concurrent = "all at once"
		if r.Concurrency > 0 {
			out.Concurrent = page.Plural(r.Concurrency, "request") + " in flight"
		}
		if strings.Contains(r.SLO, "unsure") {
			out.Unsure = append(out.Unsure, "whether the SLO is met: the range of a figure holds its limit")
		}
	}
	if r := o.Alone; r != nil {
		out.TTFT, out.TPOT = estimate(r.Figures[capacity.MeanTTFT], "ms"), estimate(r.Figures[capacity.MeanTPOT], "ms")
	}
	if m := o.Memory; m != nil {
		out.Weights, out.KV = gib(m.Weights), gib(m.KV)
	}
	return out
}

func gib(n int64) string { return strconv.FormatFloat(float64(n)/(1<<30), 'f', 1, 64) + " GiB" }

// estimate writes a predicted figure with its range.
func estimate(e forecast.Estimate, unit string) string {
	text := amount(e.Value)
	if e.Low != nil && e.High != nil {
		text += " [" + amount(*e.Low) + ", " + amount(*e.High) + "]"
	}
	return text + " " + unit
}

// amount writes a figure to three digits or to the whole.
func amount(x float64) string {
	switch {
	case x >= 1000:
		return grouped(x)
	case x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// grouped writes 12345 as 12,345.
func grouped(x float64) string {
	s := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// row is a case as the table shows it.
func (v *view) row(c capacity.Case, check *job) row {
	r := row{Case: c, Word: "measured", Href: "/run/" + c.Best.ID, Name: c.Best.Called(), Figure: figure(c.Best, capacity.Throughput, "tok/s"), Load: c.Best.Load}
	switch {
	case c.Predicted:
		r.Word = "PREDICTED"
	case c.Simulated:
		r.Word = "SIMULATED"
	}
	f, _ := c.Best.Figure(capacity.Throughput) // it is the best by it
	r.Raw = strconv.FormatFloat(f.Value, 'g', -1, 64)
	r.TTFT, r.TPOT = figure(c.Best, capacity.MeanTTFT, "ms"), figure(c.Best, capacity.MeanTPOT, "ms")
	if c.AtSLO != nil {
		r.AtSLO, r.SLOHref = figure(*c.AtSLO, capacity.Throughput, "tok/s"), "/run/"+c.AtSLO.ID
	}
	r.Ask = v.askFor(c)
	v.held(&r, check)
	return r
}

// held says what was predicted for the run of a row.
func (v *view) held(r *row, check *job) {
	switch {
	case r.Predicted:
		return
	case check == nil && r.GPU == "":
		r.Why = "which accelerator it was is not known"
	case check == nil && r.Best.Command == "":
		r.Why = "its serving command is not known"
	case check == nil:
		r.Why = "not asked: the first rows are"
	case !check.over():
		r.Holding = true
		v.Waiting = append(v.Waiting, "a prediction of "+r.Name)
	case check.err != nil:
		r.Why = check.err.Error()
	default:
		c, _ := check.value.(capacity.Check) // what Hold gives
		if c.Refused != "" {
			r.Why = "by the catalogue the engine would not start: " + c.Refused
			return
		}
		e, ok := c.Row.Figures[capacity.Throughput]
		if !ok {
			r.Why = "no throughput was predicted"
			return
		}
		r.Held = "predicted " + estimate(e, "tok/s")
		if off, ok := c.Off[capacity.Throughput]; ok {
			r.Held += " (" + page.Percent(off) + ")"
		}
		var more []string
		for _, x := range []struct{ metric, label string }{{capacity.MeanTTFT, "TTFT"}, {capacity.MeanTPOT, "TPOT"}} {
			if off, ok := c.Off[x.metric]; ok {
				more = append(more, x.label+" "+page.Percent(off))
			}
		}
		if len(more) > 0 {
			r.Held += "; " + strings.Join(more, ", ")
		}
		if len(c.Outside) > 0 {
			r.Why = "new to the calibration: " + strings.Join(c.Outside, "; ")
		}
	}
}

// figure writes a figure of a run with its interval.
func figure(e store.Entry, metric, unit string) string {
	f, ok := e.Figure(metric)
	if !ok {
		return page.None
	}
	text := amount(f.Value)
	if f.Low != nil && f.High != nil {
		text += " [" + amount(*f.Low) + ", " + amount(*f.High) + "]"
	}
	return text + " " + unit
}

// askFor is the question that a case suggests; "" where the catalogue does not have it.
func (v *view) askFor(c capacity.Case) string {
	if c.GPU == "" || !slices.ContainsFunc(v.Models, func(m string) bool { return sameModel(m, c.Model) }) {
		return ""
	}
	a := v.State.Ask
	a.Model, a.Config, a.GPU, a.GPUs, a.TP = c.Model, "", c.GPU, max(1, c.GPUs), 0
	if _, err := engine.ByName(c.Engine); err == nil {
		a.Engine = c.Engine
	}
	return link(a)
}

// seenIn is the hardware of runs.
func seenIn(cases []capacity.Case) (all []seen) {
	for _, c := range cases {
		if c.Hardware == "" {
			continue
		}
		i := slices.IndexFunc(all, func(s seen) bool { return s.Text == c.Hardware })
		if i < 0 {
			i = len(all)
			all = append(all, seen{Text: c.Hardware, GPU: c.GPU})
		}
		all[i].Runs += c.Runs
		all[i].Measured = all[i].Measured || c.Measured()
		if !slices.Contains(all[i].Models, c.Model) {
			all[i].Models = append(all[i].Models, c.Model)
		}
	}
	return all
}
