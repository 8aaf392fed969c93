package document

import (
	"math"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// subject is a run that a document may speak of, with what the checks of
// claims ask about it again and again.
type subject struct {
	run     *interop.Run
	figures map[string]interop.Figure
	command command.Setup
	words   map[string]bool // of its headings, model and case
	sound   float64         // ms per output token by the latency, where the printed TPOT cannot be; 0: TPOT stands
}

// newSubject reads a run.
func newSubject(r *interop.Run) *subject {
	s := &subject{run: r, figures: map[string]interop.Figure{}, command: command.Read(r.Header.Command), words: map[string]bool{}}
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
func (s *subject) cite(name string) audit.Cited {
	return audit.Cite(s.figures[name])
}

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
