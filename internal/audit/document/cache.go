package document

import (
	"fmt"
	"slices"

	"perflab/internal/audit"
)

// What shows that a prompt came from a prefix cache.
const (
	cachedSteps  = 4.0 // decode steps that a first token takes at most where no prompt is computed
	fewTogether  = 4   // prompts at once from which the last first token tells how long each takes
	cachedFactor = 2.5 // times as long as the prompt alone that each of several takes: more than batching explains
)

// prefixCached reports whether the TTFT of one prompt alone is that of a prefix
// cache, and how long each of several prompts at once took, by the first token
// of the last of them.
func (g configuration) prefixCached(one *citedRun) (each float64, ok bool) {
	ttft, step := one.value("mean_ttft_ms"), one.value("mean_tpot_ms")
	if one.requests() != 1 || !(ttft < cachedSteps*step) {
		return 0, false
	}
	for _, r := range g.runs {
		if last := r.value("p99_ttft_ms") / r.requests(); r.requests() >= fewTogether && last > 0 && (each == 0 || last < each) {
			each = last
		}
	}
	return each, each > cachedFactor*ttft
}

// cachedTTFTs finds prose that rests on a TTFT which the prefix cache explains.
func cachedTTFTs(d *document) []audit.Finding {
	var out []audit.Finding
	for _, l := range d.statements {
		if l.kind == inProse {
			out = append(append(out, cachedTTFT(d, l)...), unlikeCached(d, l)...)
		}
	}
	return out
}

// cachedTTFT reports prose that cites a TTFT which the prefix cache explains.
func cachedTTFT(d *document, l statement) []audit.Finding {
	var out []audit.Finding
	for _, t := range l.citations {
		if t.named.kind != "ttft" {
			continue
		}
		for _, g := range d.configurations {
			for _, r := range g.runs {
				if !slices.Contains(t.runs, r) || !g.spokenOf(l, t) {
					continue
				}
				if each, ok := g.prefixCached(r); ok {
					out = append(out, audit.Finding{Type: "claim-on-cached-ttft", Severity: audit.Warning, Place: d.place(l.line),
						Figures: []audit.Cited{t.cited(), r.cite("mean_ttft_ms"), r.cite("mean_tpot_ms")}, Expected: fmt.Sprintf("%.0f ms", each),
						Text: fmt.Sprintf("TTFT of %s is %.1f decode steps, and prompts sent together took %.0f ms each: this prompt was in the prefix cache already", t.Text, r.value("mean_ttft_ms")/r.value("mean_tpot_ms"), each)})
				}
			}
		}
	}
	return out
}

// unlikeCached reports prose that calls the TTFT of one prompt high, of a model that
// had no prompt in its cache, in a document whose others had.
func unlikeCached(d *document, l statement) []audit.Finding {
	var warmed *citedRun
	for _, g := range d.configurations {
		for _, r := range g.runs {
			if _, ok := g.prefixCached(r); ok && warmed == nil {
				warmed = r
			}
		}
	}
	if warmed == nil {
		return nil
	}
	for _, t := range l.citations {
		if t.named.kind != "ttft" || len(t.runs) != 1 || t.runs[0].requests() != 1 || !calledHigh(l.text, t) {
			continue
		}
		r := t.runs[0]
		if slices.ContainsFunc(d.configurations, func(g configuration) bool { _, ok := g.prefixCached(r); return ok && slices.Contains(g.runs, r) }) {
			continue
		}
		return []audit.Finding{{Type: "claim-on-cached-ttft", Severity: audit.Warning, Place: d.place(l.line), Figures: []audit.Cited{t.cited(), warmed.cite("mean_ttft_ms")},
			Text: fmt.Sprintf("TTFT of %s is called high, but those it is compared with are hits in the prefix cache (%s ms at line %d)", t.Text, warmed.cite("mean_ttft_ms").Text, warmed.cite("mean_ttft_ms").Line)}}
	}
	return nil
}

// comparedAt is how many bytes before a figure a word that compares it stands.
const comparedAt = 24

// calledHigh reports whether the words before a figure compare it upwards.
func calledHigh(text string, t citation) bool {
	plain, _ := unquote(text)
	words := wordsOf(plain[max(0, min(t.Start, len(plain))-comparedAt):min(t.Start, len(plain))])
	return len(words) > 0 && slices.Contains([]string{"higher", "slower", "worse", "high"}, words[len(words)-1].text)
}
