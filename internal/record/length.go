package record

import (
	"cmp"
	"encoding/json"

	"perflab/internal/workload/blocktrace"
)

// Who counted tokens, if not the engine.
const (
	byTokenizer = "tokenizer"
	byEstimate  = "estimate"
	byEvents    = "events"  // of a stream with text, one token each
	byNothing   = "unknown" // the length stands as 0
)

// lengths writes how long prompt and answer were, and who says so.
func (r *Recorder) lengths(row *blocktrace.Row, s *seen, c *cutter, known bool) {
	cutBy := byEstimate
	if r.options.Tokenizer != nil {
		cutBy = byTokenizer
	}
	if !known || s.lost {
		cutBy = byNothing
	}
	row.BlocksBy, row.TextTokens = cutBy, c.n
	row.Input, row.Output = s.tokens.prompt, s.tokens.answer
	if row.Input == 0 {
		row.Input, row.InputBy = c.n, cutBy
	}
	switch {
	case row.Output > 0:
	case s.stream && s.textEvents > 0:
		row.Output, row.OutputBy = s.textEvents, byEvents
	case s.class == "":
		row.OutputBy = byNothing
	}
}

// describe writes what a request asked for besides its text.
func (b body) describe(row *blocktrace.Row) {
	row.Model, row.Choices = b.Model, b.N
	row.MaxTokens = cmp.Or(b.MaxTokens, b.MaxCompletion, b.MaxOutput, b.Sampling.MaxTokens)
	row.Temperature = cmp.Or(b.Temperature, b.Sampling.Temperature)
	row.TopP = cmp.Or(b.TopP, b.Sampling.TopP)
	row.TopK = cmp.Or(b.TopK, b.Sampling.TopK)
}

// text is the prompt as it was sent, as JSON.
func (b body) text(api string) json.RawMessage {
	parts := b.prompts(api)
	var kept []json.RawMessage
	for _, p := range parts {
		if len(p) > 0 && string(p) != "null" {
			kept = append(kept, p)
		}
	}
	if len(kept) == 1 {
		return kept[0]
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return nil // it was JSON that was read
	}
	return text
}
