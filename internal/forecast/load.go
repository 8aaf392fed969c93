package forecast

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/calib"
	"perflab/internal/field"
	"perflab/internal/token"
	"perflab/internal/workload"
)

// Load is one load that configurations are asked to serve.
type Load struct {
	name  string
	spec  workload.Spec
	line  string // the workload in a few words
	calib calib.Load
}

// NewLoad reads a workload into what package calib replays, with the tokenizer
// that measures its lengths (nil: package token's approximation). Synthetic
// prompts that share nothing are lengths alone.
func NewLoad(w *workload.Workload, tok workload.Tokenizer) (Load, error) {
	s, t := w.Spec(), w.Totals()
	if t.Output > calib.MostTokens {
		return Load{}, field.Errorf("", "%d requests have %d output tokens, and a prediction keeps the instant of each: %d are the limit, give fewer by [num_prompts] (a steady load keeps its figures)", t.Requests, t.Output, calib.MostTokens)
	}
	alike := s.SharesPrefixes() || !slices.Contains([]string{"random", "azure", "burstgpt"}, s.Dataset)
	c := calib.Load{Requests: w.Len(), Rate: w.Offered(), Arrival: s.Arrival, Concurrency: s.MaxConcurrency}
	c.Shuffle = s.Arrival != "trace" && !s.DisableShuffle
	for r := range w.All() {
		tokens, err := promptTokens(r, tok)
		if err != nil {
			return Load{}, err
		}
		x := calib.Request{Due: r.Due, Input: len(tokens), Output: r.Output}
		if alike {
			x.Prompt = tokens
		}
		c.Exact = append(c.Exact, x)
	}
	n := max(1, t.Requests)
	l := Load{name: "burst", spec: s, calib: c}
	l.line = fmt.Sprintf("%s, %d requests, %d tokens in and %d out on average", s.Dataset, t.Requests, t.Input/n, t.Output/n)
	if by := w.MeasuredBy(); by != "" {
		l.line += ", counted by " + by
	}
	if c.Rate > 0 {
		l.name = fmt.Sprintf("%.4g/s", c.Rate)
	}
	if s.MaxConcurrency > 0 {
		l.name = strings.TrimPrefix(l.name+", "+fmt.Sprintf("%d at once", s.MaxConcurrency), "burst, ")
	}
	return l, nil
}

// promptTokens are the tokens of all that a request sends, by the workload's
// own tokenizer where it has one.
func promptTokens(r workload.Request, tok workload.Tokenizer) ([]uint32, error) {
	var out []uint32
	for _, id := range r.IDs {
		out = append(out, uint32(id))
	}
	if out != nil {
		return out, nil
	}
	texts := []string{r.System}
	for _, m := range r.History {
		texts = append(texts, m.Content)
	}
	for _, text := range append(texts, r.Prompt) {
		if tok == nil {
			out = token.Append(out, text)
			continue
		}
		ids, err := tok.Encode(text, false)
		if err != nil {
			return nil, fmt.Errorf("count the tokens of request %d: %w", r.Index, err)
		}
		for _, id := range ids {
			out = append(out, uint32(id))
		}
	}
	return out, nil
}
