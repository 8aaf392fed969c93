package audit

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/interop"
	"perflab/internal/result"
)

// subject is a run that a document may speak of, with what the checks of
// claims ask about it again and again.
type subject struct {
	run     *interop.Run
	figures map[string]interop.Figure
	command command
	words   map[string]bool // of its headings, model and case
	sound   float64         // ms per output token by the latency, where the printed TPOT cannot be; 0: TPOT stands
}

// newSubject reads a run.
func newSubject(r *interop.Run) *subject {
	s := &subject{run: r, figures: map[string]interop.Figure{}, command: parseCommand(r.Header.Command), words: map[string]bool{}}
	for _, f := range r.Figures {
		if _, there := s.figures[f.Name]; !there {
			s.figures[f.Name] = f
		}
	}
	for _, text := range slices.Concat(r.Place.Section, []string{r.Header.Model, r.Header.Label(result.LabelCase), r.Header.Label(result.LabelEngine)}) {
		for _, w := range wordsOf(text) {
			s.words[w.text] = true
		}
	}
	s.sound = s.soundTPOT()
	return s
}

// value returns a figure, NaN where the run has none.
func (s *subject) value(name string) float64 {
	if f, ok := s.figures[name]; ok {
		return f.Value
	}
	return math.NaN()
}

// tokens are the output tokens of a request on the mean.
func (s *subject) tokens() float64 { return s.value("total_output_tokens") / s.value("completed") }

// decode is (latency - TTFT) / (n - 1), the ms per token that the means give.
func (s *subject) decode() float64 {
	return (s.value("mean_e2el_ms") - s.value("mean_ttft_ms")) / (s.tokens() - 1)
}

// soundTPOT returns the ms per token by the latency of a run whose TPOT cannot
// be a decode time: less than half of it, while most of its samples are next
// to nothing. Requests of varied length explain neither.
func (s *subject) soundTPOT() float64 {
	tpot, median, itl, decode := s.value("mean_tpot_ms"), s.value("median_tpot_ms"), s.value("median_itl_ms"), s.decode()
	if decode > 0 && s.tokens() > 8 && tpot < decode/2 && (itl == 0 || median < tpot/3) {
		return decode
	}
	return 0
}

// stalled reports whether a few requests waited very long for their first
// token, which makes a mean of them.
func (s *subject) stalled() bool {
	return len(stall(figuresOf(s.run))) > 0
}

// prompts is the share of the tokens that are prompt.
func (s *subject) prompts() float64 {
	in, out := s.value("total_input_tokens"), s.value("total_output_tokens")
	return in / (in + out)
}

// sameWork reports whether two runs were sent the same prompts, as far as the
// figures tell. Failed requests leave the totals, so it compares lengths.
func (s *subject) sameWork(o *subject) bool {
	a, b := s.value("total_input_tokens")/s.value("completed"), o.value("total_input_tokens")/o.value("completed")
	return math.Abs(a-b) <= 0.02*b && s.run.Header.Rate == o.run.Header.Rate &&
		rateOf(s.run) == rateOf(o.run)
}

// copies reports whether two runs are one run printed twice.
func (s *subject) copies(o *subject) bool {
	if len(s.figures) != len(o.figures) {
		return false
	}
	for name, f := range s.figures {
		if g, ok := o.figures[name]; !ok || g.Text != f.Text {
			return false
		}
	}
	return true
}

// load is how many requests it sent at a time, by what the block says.
func (s *subject) load() float64 { return s.value("completed") }

// cite is a figure of the run for a finding.
func (s *subject) cite(name string) Cited {
	f := s.figures[name]
	return Cited{Label: f.Label, Text: f.Text, Line: f.Line}
}

// command is a serving command by its flags.
type command struct {
	engine string            // "vllm", "sglang", "trtllm", "" where only flags are known
	model  string            // "" where the command has none
	flags  map[string]string // by one name for all spellings; "" for a switch
}

// spellings are the flags that count for the number of GPUs, by other names.
func spellings() map[string]string {
	return map[string]string{
		"tensor-parallel-size": "tp", "tp-size": "tp", "pipeline-parallel-size": "pp", "pp-size": "pp",
		"data-parallel-size": "dp", "dp-size": "dp", "expert-parallel-size": "ep", "ep-size": "ep", "max-seq-len": "max-model-len",
		"context-length": "max-model-len", "model-path": "model",
	}
}

// indifferent are flags that say nothing of performance: who may connect, and
// how answers are taken apart.
func indifferent(flag string) bool {
	switch flag {
	case "host", "port", "reasoning-parser", "tool-call-parser", "chat-template", "enable-auto-tool-choice", "served-model-name",
		"trust-remote-code", "tokenizer-mode", "model", "max-model-len-note":
		return true
	}
	return false
}

// parseCommand reads a command line without knowing its engine's flags.
func parseCommand(line string) command {
	c := command{flags: map[string]string{}}
	short := spellings()
	open := ""
	for w := range strings.FieldsSeq(strings.ReplaceAll(line, "\\\n", " ")) {
		w = strings.Trim(w, `'"“”\`)
		switch {
		case w == "":
		case strings.HasPrefix(w, "-") && len(w) > 1 && !isDigit(w[1]):
			name, value, has := strings.Cut(strings.TrimLeft(w, "-"), "=")
			name = strings.ReplaceAll(name, "_", "-")
			if s, ok := short[name]; ok {
				name = s
			}
			c.flags[name] = value
			if open = name; has {
				open = ""
			}
		case strings.Contains(w, "sglang"):
			c.engine, open = "sglang", ""
		case strings.HasPrefix(w, "trtllm"):
			c.engine, open = "trtllm", "model"
		case w == "vllm":
			c.engine = "vllm"
		case w == "serve" && c.engine == "vllm":
			open = "model"
		case open != "":
			c.flags[open], open = w, ""
		}
	}
	c.model = c.flags["model"]
	delete(c.flags, "model")
	delete(c.flags, "m") // python3 -m
	return c
}

// gpus is the number of GPUs that the command starts an engine on, 0 where it
// does not say. SGLang's data parallelism for attention shares the GPUs of the
// tensor parallelism.
func (c command) gpus() int {
	n := 1
	for _, f := range []string{"tp", "pp", "dp"} {
		text, ok := c.flags[f]
		if !ok {
			continue
		}
		v, err := strconv.Atoi(text)
		if err != nil || v < 1 || v > 1<<12 {
			return 0
		}
		if _, attention := c.flags["enable-dp-attention"]; f != "dp" || !attention {
			n *= v
		}
	}
	return n
}

// differs lists what differs between two commands, besides flags that say
// nothing of performance.
func (c command) differs(o command) []string {
	var out []string
	if c.engine != o.engine && c.engine != "" && o.engine != "" {
		out = append(out, "the engine")
	}
	if a, b := modelKey(c.model), modelKey(o.model); a != b && a != "" && b != "" {
		out = append(out, "the model ("+modelName(o.model)+", "+modelName(c.model)+")")
	}
	if len(out) > 0 && out[0] == "the engine" {
		return out // their flags do not compare
	}
	names := map[string]bool{}
	for n := range maps.Keys(c.flags) {
		names[n] = true
	}
	for n := range maps.Keys(o.flags) {
		names[n] = true
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		a, inA := c.flags[n]
		b, inB := o.flags[n]
		if !indifferent(n) && (inA != inB || a != b) {
			out = append(out, "--"+n)
		}
	}
	return out
}

// shares counts the flags that two commands have in common.
func (c command) shares(o command) int {
	n := 0
	for name, value := range c.flags {
		if v, ok := o.flags[name]; ok && v == value {
			n++
		}
	}
	return n
}

// modelName is a model's name without its owner or folder.
func modelName(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

// modelKey makes models comparable.
func modelKey(s string) string { return strings.ToLower(modelName(s)) }

// names reports whether a text's name of a model or configuration is of this
// run: all words of it stand in its headings. A name of one common word does
// not count.
func (s *subject) names(name string) bool {
	words := wordsOf(name)
	digits := 0
	for _, w := range words {
		if !s.words[w.text] {
			return false
		}
		if strings.ContainsAny(w.text, "0123456789") {
			digits++
		}
	}
	return len(words) >= 2 && digits > 0
}

// shape is the model of a run, where it is known.
func (s *subject) shape() (arch.Model, bool) {
	m, err := arch.LookupModel(s.run.Header.Model)
	return m, err == nil
}
