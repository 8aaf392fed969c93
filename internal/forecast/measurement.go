package forecast

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/arch"
	"perflab/internal/calib"
	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// Setup is what is known of what a run was measured on, besides what its
// header says.
type Setup struct {
	Study    string             // or what else it is a part of
	Command  string             // of one replica
	Engines  []outcome.Software // with their versions, of a study
	Hardware string             // as a text
	GPUs     int                // of one replica; 0: as many as the command takes
	Replicas int
}

// completed is the setup with what a run's header says of what is open.
func (s Setup) completed(h result.Header) Setup {
	s.Command = cmp.Or(s.Command, h.Command)
	s.Hardware = cmp.Or(s.Hardware, h.Label(result.LabelHardware))
	if s.GPUs == 0 {
		gpus, _ := strconv.Atoi(h.Label(result.LabelGPUs))
		nodes, _ := strconv.Atoi(h.Label(result.LabelNodes))
		s.GPUs = cmp.Or(gpus, nodes)
	}
	if s.Replicas == 0 && h.Imported == nil {
		s.Replicas = len(h.Targets)
	}
	return s
}

// Measurement is a run as it was measured, by perflab or by another client.
type Measurement struct {
	Place   string // file:line, or a directory
	Setup   Setup
	Header  result.Header
	Summary result.Summary
	Calls   []result.Call

	dropped map[string]string // figures that are not used, with the reason
	note    string
}

// version is that of the engine that served the run, "" where nobody says it.
func (m *Measurement) version() string {
	if cmd, err := engine.ParseText(m.Setup.Command); err == nil {
		for _, e := range m.Setup.Engines {
			if e.Name == cmd.Engine {
				return e.Version
			}
		}
	}
	return m.Header.Label(result.LabelEngineVersion)
}

func (m *Measurement) drop(metric, why string) {
	if m.dropped == nil {
		m.dropped = map[string]string{}
	}
	if m.dropped[metric] == "" {
		m.dropped[metric] = why
	}
}

// dropFamily drops the figures of a family.
func (m *Measurement) dropFamily(family, why string) {
	for name := range m.Summary.Figures {
		if metric, err := result.Lookup(name); err == nil && metric.Family == family {
			m.drop(name, why)
		}
	}
}

// unfit says why no constant may be fitted to the run.
func (m *Measurement) unfit(simulated bool) error {
	s, h := &m.Summary, &m.Header
	switch {
	case h.Predicted || s.Predicted:
		return errors.New("it was predicted: nothing was measured, and a fit would only give back the constants of the prediction")
	case (h.Simulated || s.Simulated) && !simulated:
		return field.Errorf("", "it is SIMULATED: no hardware was measured ([simulated] takes it nevertheless, for trials of the method)")
	case s.Partial:
		return errors.New("it was stopped before its end")
	case s.Verdict.Status == result.Voided:
		i := slices.IndexFunc(s.Verdict.Checks, func(c result.Check) bool { return c.Status == result.Voided })
		return fmt.Errorf("its figures are void: %s", s.Verdict.Checks[max(i, 0)].Text)
	}
	if err := allAnswered(s.Figures); err != nil {
		return err
	}
	if i := slices.IndexFunc(m.Calls, func(c result.Call) bool { return c.Session > 0 }); i >= 0 {
		return errors.New("it holds conversations, whose turns wait for answers: they cannot be replayed from their calls")
	}
	cached := s.Figures["total_cached_tokens"]
	if fromCache(s.Figures) {
		return fmt.Errorf("%.0f %% of its prompts came from the prefix cache: which parts prompts share is not recorded", 100*cached/s.Figures["total_input_tokens"])
	}
	if h.Sharing && cached == 0 {
		return errors.New("its prompts share prefixes on purpose, and the server did not say what it found in its cache")
	}
	return nil
}

// allAnswered is an error where requests of a run failed.
func allAnswered(figures map[string]float64) error {
	if n := figures["failed"]; n > 0 {
		return fmt.Errorf("%.0f requests failed: what the others met is not what was sent", n)
	}
	return nil
}

// fromCache reports whether more of a run's prompts came from the prefix cache than by chance.
func fromCache(figures map[string]float64) bool {
	return figures["total_cached_tokens"] > 0.01*figures["total_input_tokens"]
}

// workload names the load within its study: what is held out together.
func (m *Measurement) workload() string {
	h := &m.Header
	name := cmp.Or(h.Workload, h.Label(result.LabelDataset), "workload")
	if h.Imported != nil {
		in, out, n := m.Summary.Figures["total_input_tokens"], m.Summary.Figures["total_output_tokens"], m.Summary.Figures["completed"]
		if n > 0 {
			name += fmt.Sprintf(" %.0f x %.0f/%.0f", n, in/n, out/n)
		}
	}
	if h.Rate > 0 && !math.IsInf(h.Rate, 0) {
		name += fmt.Sprintf(" at %g/s", h.Rate)
	}
	if h.Limit > 0 {
		name += fmt.Sprintf(", %d in flight", h.Limit)
	}
	return name
}

// serving is the run's serving command, or else the one that was given. A document
// that shows flags alone is completed by engine and model.
func (m *Measurement) serving(otherwise string) (string, error) {
	c := strings.TrimSpace(m.Setup.Command)
	if !strings.HasPrefix(c, "-") && c != "" {
		return c, nil
	}
	if otherwise != "" {
		return otherwise, nil
	}
	if c == "" {
		return "", field.Errorf("", "its serving command is not recorded: give it by [command]")
	}
	h := &m.Header
	start := map[string]string{"vllm": "vllm serve ", "sglang": "python3 -m sglang.launch_server --model-path ", "trtllm": "trtllm-serve "}[h.Label(result.LabelEngine)]
	if start == "" || h.Model == "" {
		return "", field.Errorf("", "the text has flags of an engine and no command, nor both engine and model: give the command by [command]")
	}
	for _, t := range append([]string{h.Label(result.LabelRole)}, h.Imported.Section...) {
		low := strings.ToLower(t)
		if _, err := arch.LookupModel(h.Model + "-FP8"); err == nil && (strings.Contains(low, "quantiz") || strings.Contains(low, "quantis") || strings.Contains(low, "optimized")) {
			return "", field.Errorf("", "the text has flags of an engine and no command, and under %q the weights may not be those of %s: give the command by [command]", t, h.Model)
		}
	}
	m.note = "The text has flags alone: the model is that of the document."
	// The flags of a document are words as they stand: no shell took their quotes.
	return start + h.Model + " " + quoteWords(c), nil
}

// quoteWords quotes words for shellwords.Split.
func quoteWords(line string) string {
	words := strings.Fields(line)
	for i, w := range words {
		if strings.ContainsAny(w, `'"{}$&|;<>\`) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// accelerator is the short name of the run's hardware, or else the one that was
// given.
func (m *Measurement) accelerator(otherwise string) (string, error) {
	found := arch.AcceleratorsIn(m.Setup.Hardware)
	if len(found) == 1 {
		return found[0].Name, nil
	}
	var names []string
	for _, a := range found {
		names = append(names, a.Name)
	}
	switch {
	case otherwise != "" && (len(names) == 0 || slices.Contains(names, strings.ToLower(otherwise))):
		return otherwise, nil
	case otherwise != "":
		return "", field.Errorf("", "%q can be %s, and not %s as [gpu] says", m.Setup.Hardware, strings.Join(names, " or "), otherwise)
	case len(names) > 0:
		return "", field.Errorf("", "%q can be %s: say which by [gpu]", m.Setup.Hardware, strings.Join(names, " or "))
	case m.Setup.Hardware != "":
		return "", field.Errorf("", "no accelerator known here is named in %q: give it by [gpu]", m.Setup.Hardware)
	}
	return "", field.Errorf("", "its hardware is not recorded: give it by [gpu]")
}

// comparable are the definitions of other clients that a replay's figures can
// be held against, by family: the rest count other things.
var comparable = map[string][]result.Definition{
	"ttft": {result.FirstMessage, result.FirstText, result.FirstChunk, result.FirstIteration},
	"tpot": {result.DecodePerToken},
	"itl":  {result.MessageGap, result.ChunkGap},
	"e2el": {result.LastMessage, result.StreamEnd},
}

// usable reports whether a replay has a figure by the same definition.
func (m *Measurement) usable(name string) bool {
	metric, err := result.Lookup(name)
	if err != nil {
		return false
	}
	also, latency := comparable[metric.Family]
	if !latency && metric.Unit != "tok/s" && name != "duration" && name != "request_throughput" {
		return false
	}
	d := m.Summary.Definition(name)
	return d == result.Ours || slices.Contains(also, d)
}

// figures are those of the run that a replay has too.
func (m *Measurement) figures() (map[string]float64, error) {
	out, scored := map[string]float64{}, false
	for name, v := range m.Summary.Figures {
		switch {
		case !(v > 0) || math.IsInf(v, 0) || m.dropped[name] != "":
		case !m.usable(name):
			m.drop(name, fmt.Sprintf("it is of another definition (%s)", m.Summary.Definition(name)))
		default:
			out[name] = v
			scored = scored || slices.Contains(calib.Scored, name)
		}
	}
	if !scored {
		return nil, fmt.Errorf("it has none of the figures that a fit looks at: %s", strings.Join(calib.Scored, ", "))
	}
	return out, nil
}

// load is what was sent: every request where the calls are there, else as many
// as the figures count, at the mean lengths.
func (m *Measurement) load() (calib.Load, error) {
	l := calib.Load{Concurrency: m.Header.Limit}
	if r := m.Header.Rate; r > 0 && !math.IsInf(r, 0) {
		l.Rate, l.Arrival = r, m.arrival()
	}
	var err error
	if len(m.Calls) > 0 {
		err = m.exact(&l)
	} else {
		err = m.average(&l)
	}
	if err == nil {
		err = l.Validate()
	}
	return l, err
}

// arrival is how requests of a rate were spaced.
func (m *Measurement) arrival() string {
	var spec struct {
		Workload workload.Spec `json:"workload"`
	}
	if json.Unmarshal(m.Header.Spec, &spec) == nil && spec.Workload.Arrival == "constant" {
		return "constant"
	}
	client := ""
	if m.Header.Imported != nil {
		client = m.Header.Imported.Client + " " + m.Header.Label(result.LabelBenchCommand)
	}
	if strings.Contains(client, "guidellm") && !strings.Contains(client, "poisson") {
		return "constant" // its profile of a rate, unless told otherwise
	}
	return "poisson"
}

// exact takes every request from the calls. Those of another client are due
// when they were sent, as no schedule is recorded.
func (m *Measurement) exact(l *calib.Load) error {
	var in, out float64
	for i := range m.Calls {
		c := &m.Calls[i]
		r := calib.Request{Due: c.Due}
		if m.Header.Imported != nil && l.Concurrency == 0 {
			r.Due = max(c.Due, c.Sent)
		}
		r.Input, _ = c.Input()
		r.Output, _ = c.Output()
		if r.Input < 1 || r.Output < 1 {
			return fmt.Errorf("request %d has %d prompt and %d output tokens: lengths must be known to replay it", c.Index, r.Input, r.Output)
		}
		in, out = in+float64(r.Input), out+float64(r.Output)
		l.Exact = append(l.Exact, r)
	}
	slices.SortStableFunc(l.Exact, func(a, b calib.Request) int { return cmp.Compare(a.Due, b.Due) })
	first := l.Exact[0].Due
	for i := range l.Exact {
		l.Exact[i].Due = max(0, l.Exact[i].Due-first)
	}
	n := len(l.Exact)
	l.Requests, l.Input.Mean, l.Output.Mean = n, in/float64(n), out/float64(n)
	if span := l.Exact[n-1].Due; l.Rate == 0 && l.Concurrency == 0 && span > time.Second && n > 1 {
		l.Rate, l.Arrival = float64(n-1)/span.Seconds(), "poisson" // a trace or a ramp: its mean
	}
	return nil
}

// Spreads of the logarithm of ShareGPT's lengths, prompts and answers. They are
// those that give the published runs' counts of requests in flight.
const (
	chatInput  = 1.45
	chatOutput = 0.9
)

// average takes totals from the figures.
func (m *Measurement) average(l *calib.Load) error {
	f, h := m.Summary.Figures, &m.Header
	n := f["completed"]
	if n < 1 || f["total_input_tokens"] < 1 || f["total_output_tokens"] < 1 {
		return errors.New("it has neither its requests nor their number and tokens in all")
	}
	rate := strings.ToLower(h.Label(result.LabelRate))
	burst := strings.HasPrefix(rate, "inf") || f["max_concurrent_requests"] >= n // all were in flight together
	if h.Imported != nil && l.Rate == 0 && l.Concurrency == 0 && !burst {
		return errors.New("the rate at which its requests were sent is not recorded")
	}
	l.Requests = int(n)
	l.Input.Mean, l.Output.Mean = f["total_input_tokens"]/n, f["total_output_tokens"]/n
	whole := func(x float64) bool { return x == math.Trunc(x) }
	switch data := strings.ToLower(h.Label(result.LabelDataset)); {
	case whole(l.Input.Mean) && whole(l.Output.Mean) || data == "random":
	case data == "sharegpt":
		l.Input.Sigma, l.Input.Max, l.Output.Sigma, l.Output.Max = chatInput, 1024, chatOutput, 1000
		if strings.Contains(h.Imported.Client, "guidellm") {
			l.Input.Max, l.Output.Max = 2048, 1500 // its filter is wider than vllm bench serve's
		}
		m.note = strings.TrimSpace(m.note + " Lengths are drawn with ShareGPT's spread.")
	default:
		m.note = strings.TrimSpace(m.note + " Lengths are not known: all are taken to be the mean.")
	}
	return nil
}
