package result

import (
	"fmt"
	"slices"
	"strings"
)

// packedFrom is from how many tokens on a sample of ITL is said to carry several.
// Below it a gap is less than 5 % longer than the time that a token takes, as
// where a stray pair of chunks was read together.
const packedFrom = 1.05

// aloneShare is how much of the tokens of a read a chunk must carry for these to have come
// in chunks of several tokens, and not in several chunks.
const aloneShare = 0.95

// packing is how many tokens a sample of ITL carries, and in what they came.
type packing struct {
	tokens float64
	in     string // "chunk" of the server's, or "read" of the client's
}

// String says it as the end of a label: "per chunk of 8.0 tokens"; "" for one token.
func (p packing) String() string {
	if p.in == "" {
		return ""
	}
	return fmt.Sprintf("per %s of %s tokens", p.in, p.amount())
}

// amount writes the tokens in three or four digits: two decimals where one would hide
// them, and thousands short, so that the rule around a title stays.
func (p packing) amount() string {
	switch {
	case p.tokens == 1:
		return "1"
	case p.tokens < 2:
		return fmt.Sprintf("%.2f", p.tokens)
	case p.tokens >= 10_000:
		return fmt.Sprintf("%.0fk", p.tokens/1000)
	case p.tokens >= 100:
		return fmt.Sprintf("%.0f", p.tokens)
	}
	return fmt.Sprintf("%.1f", p.tokens)
}

// packing returns what the samples of the summary's ITL carry; zero for one token, and
// where that is not known or the definition takes gaps by token.
func (s *Summary) packing() packing {
	chunk, known := s.Figures["tokens_per_chunk"]
	p := packing{s.Figures["tokens_per_read"], "read"}
	switch s.Definition(familyITL) {
	case Ours:
		if chunk >= aloneShare*p.tokens {
			p.in = "chunk"
		}
	case MessageGap, ChunkGap:
		p = packing{chunk, "chunk"}
	default:
		known = false
	}
	if !known || p.tokens < packedFrom {
		return packing{}
	}
	return p
}

// PerEvent says of how many tokens the gaps of the summary's ITL are, "per chunk of
// 8.0 tokens"; "" where each is of one.
func (s *Summary) PerEvent() string { return s.packing().String() }

// Label returns the label of a figure of one or more summaries. Of an ITL whose gaps
// are of several tokens it says so: "Mean ITL (ms), per chunk of 8.0 tokens".
func Label(m Metric, all ...*Summary) string {
	if m.Family != familyITL {
		return m.Label
	}
	var found []packing
	packed := false
	for _, s := range all {
		if _, has := s.Figures[m.Name]; !has {
			continue
		}
		p := s.packing()
		if p.in == "" {
			p.tokens = 1
		}
		packed = packed || p.in != ""
		switch i := slices.IndexFunc(found, func(o packing) bool { return o.amount() == p.amount() }); {
		case i < 0:
			found = append(found, p)
		case found[i].in != p.in:
			found[i].in = "read" // which is true of chunks as well
		}
	}
	switch {
	case !packed:
		return m.Label
	case len(found) == 1:
		return m.Label + ", " + found[0].String()
	}
	var amounts []string
	for _, p := range found {
		amounts = append(amounts, p.amount())
	}
	last := len(amounts) - 1
	return fmt.Sprintf("%s, per read of %s or %s tokens", m.Label, strings.Join(amounts[:last], ", "), amounts[last])
}
