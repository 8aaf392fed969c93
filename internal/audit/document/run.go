package document

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// citedRun is a run that a document may speak of, with what the checks of
// claims ask about it again and again.
type citedRun struct {
	run         *interop.Run
	figures     map[string]interop.Figure
	command     command.Setup
	words       map[string]bool // of its headings, model and case
	latencyTPOT float64         // ms per output token by the latency, where the printed TPOT cannot be; 0: TPOT stands
	firstInTPOT bool            // the printed TPOT has the first token in it
}

// newCitedRun reads a run.
func newCitedRun(r *interop.Run) *citedRun {
	s := &citedRun{run: r, figures: map[string]interop.Figure{}, command: command.Read(r.Header.Command), words: map[string]bool{}}
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
	s.latencyTPOT, s.firstInTPOT = s.contradictedTPOT(), audit.FirstInTPOT(r)
	return s
}

// value returns a figure, NaN where the run has none.
func (r *citedRun) value(name string) float64 {
	if f, ok := r.figures[name]; ok {
		return f.Value
	}
	return math.NaN()
}

// outputPerRequest are the output tokens of a request on the mean.
func (r *citedRun) outputPerRequest() float64 {
	return r.value("total_output_tokens") / r.value("completed")
}

// msPerToken is (latency - TTFT) / (n - 1), the ms per token that the means give.
func (r *citedRun) msPerToken() float64 {
	return (r.value("mean_e2el_ms") - r.value("mean_ttft_ms")) / (r.outputPerRequest() - 1)
}

// What tells a printed TPOT that is no decode time, beside the ms per token that
// the latency gives.
const (
	fewTokens   = 8       // of an answer: below, one late message makes the difference
	tpotShare   = 0.5     // a TPOT below this part of it
	medianShare = 1 / 3.0 // and a median below this part of the TPOT: most samples are next to nothing
	sameLengths = 0.02    // how far mean prompts of the same requests are apart where some failed
)

// contradictedTPOT returns the ms per token by the latency of a run whose TPOT cannot
// be a decode time: less than half of it, while most of its samples are next
// to nothing. Requests of varied length explain neither.
func (r *citedRun) contradictedTPOT() float64 {
	tpot, median, itl, decode := r.value("mean_tpot_ms"), r.value("median_tpot_ms"), r.value("median_itl_ms"), r.msPerToken()
	if slices.ContainsFunc(r.run.Unmeasured, func(f interop.Figure) bool { return f.Name == "median_itl_ms" || f.Name == "mean_itl_ms" }) {
		itl = 0 // it was printed so
	}
	if decode > 0 && r.outputPerRequest() > fewTokens && tpot < tpotShare*decode && (itl == 0 || median < medianShare*tpot) {
		return decode
	}
	return 0
}

// promptShare is the share of the tokens that are prompt.
func (r *citedRun) promptShare() float64 {
	in, out := r.value("total_input_tokens"), r.value("total_output_tokens")
	return in / (in + out)
}

// sameWork reports whether two runs were sent the same prompts, as far as the
// figures tell. Failed requests leave the totals, so it compares lengths.
func (r *citedRun) sameWork(o *citedRun) bool {
	a, b := r.value("total_input_tokens")/r.value("completed"), o.value("total_input_tokens")/o.value("completed")
	return math.Abs(a-b) <= sameLengths*b && r.run.Header.Rate == o.run.Header.Rate &&
		rateOf(r.run) == rateOf(o.run)
}

// copies reports whether two runs are one run printed twice.
func (r *citedRun) copies(o *citedRun) bool {
	if len(r.figures) != len(o.figures) {
		return false
	}
	for name, f := range r.figures {
		if g, ok := o.figures[name]; !ok || g.Text != f.Text {
			return false
		}
	}
	return true
}

// requests is how many requests it sent at a time, by what the block says.
func (r *citedRun) requests() float64 { return r.value("completed") }

// cite is a figure of the run for a finding.
func (r *citedRun) cite(name string) audit.Cited {
	return audit.Cite(r.figures[name])
}

// named reports whether a text's name of a model or configuration is of this
// run: all words of it stand in its headings. A name of one common word does
// not count.
func (r *citedRun) named(name string) bool {
	words := wordsOf(name)
	digits := 0
	for _, w := range words {
		if !r.words[w.text] {
			return false
		}
		if strings.ContainsAny(w.text, "0123456789") {
			digits++
		}
	}
	return len(words) >= 2 && digits > 0
}

// model is the model of a run, where it is known.
func (r *citedRun) model() (arch.Model, bool) {
	m, err := arch.LookupModel(r.run.Header.Model)
	return m, err == nil
}

// rateOf is the request rate of a run as its document has it. Where none is
// told it is that of the clients: all at once.
func rateOf(r *interop.Run) string {
	return cmp.Or(r.Header.Label(result.LabelRate), "inf")
}

// sameCase reports whether two runs stand under the same words: a caption
// within a fence may name the flag that differs.
func sameCase(a, b *citedRun) bool {
	return strings.EqualFold(a.run.Header.Label("case"), b.run.Header.Label("case")) && slices.Equal(a.run.Place.Section, b.run.Place.Section)
}

// usualNoise is the spread of single runs that a document gives no reason to
// put lower.
const usualNoise = 0.02

// Bounds of what is compared with each other, so that work grows with the size
// of a document and not with its square.
const (
	lookback = 64  // earlier steps that one step is compared with
	manyRuns = 200 // runs above which pairs of them are not looked through: no document that a person wrote has as many
)
