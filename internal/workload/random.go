package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"perflab/internal/reuse"
	"perflab/internal/stat"
	"perflab/internal/workload/scenario"
)

// random makes prompts of random words or, with random_ids, of random token ids.
func random() dataset {
	return dataset{
		name: "random", group: groupMadeUp,
		params: []param{
			{key: "random_input_len", help: "prompt tokens (default 1024)", positive: true},
			{key: "random_output_len", help: "output tokens (default 128)", positive: true},
			{key: "random_range_ratio", help: "lengths vary by this share in both directions"},
			{key: "random_prefix_len", help: "tokens shared by all prompts, before the random ones"},
			{key: "scenario", help: "lengths as D(100,100), N(480,240)/(300,150), U(50,100)/(200,250), E(1024) to embed or R(1024,100) to rank documents against a query"},
			{key: "random_batch_size", help: "texts of each request of [scenario] E, documents of each of R (default 1)", limit: maxBatch, positive: true},
			{key: "random_rng", help: "vllm sends the prompts that vllm bench serve makes from the same seed (needs [tokenizer])"},
			{key: "random_ids", help: "send token ids in place of text, for /v1/completions (needs [tokenizer])"},
			madeUpImages,
		},
		fill: fillRandom, check: checkRandom, open: openRandom,
		isMadeUp: withoutFile,
		ofWords:  func(s Spec) bool { return s.RandomRNG == "" && !s.RandomIDs },
		shares:   func(s Spec) bool { return s.RandomPrefixLen > 0 },
		title:    titleRandom, lengths: describeRandom,
	}
}

// fillRandom writes the defaults of the random dataset. Texts that get no
// answer have no end to ignore.
func fillRandom(s *Spec) {
	s.NumPrompts = cmp.Or(s.NumPrompts, 1000)
	if s.Scenario == "" {
		s.RandomInputLen = cmp.Or(s.RandomInputLen, 1024)
		s.RandomOutputLen = cmp.Or(s.RandomOutputLen, 128)
	}
	if sc, err := scenario.Parse(s.Scenario); err == nil && sc.Documents() {
		s.RandomBatchSize = cmp.Or(s.RandomBatchSize, 1)
		return
	}
	s.IgnoreEOS = true
}

// checkRandom names what cannot go together in the random dataset.
func checkRandom(s, d Spec, f *faults) {
	if !(s.RandomRangeRatio >= 0 && s.RandomRangeRatio < 1) {
		f.add("random_range_ratio", "%g must be at least 0 and below 1", s.RandomRangeRatio)
	}
	if s.RandomRNG != "" && s.RandomRNG != "vllm" {
		f.oneOf("random_rng", s.RandomRNG, "vllm")
		return
	}
	if s.Tokenizer == "" {
		if s.RandomRNG == "vllm" {
			f.add("random_rng", "vllm needs [tokenizer]: vLLM's prompts are made of the ids of its model's tokenizer.json")
		} else if s.RandomIDs {
			f.add("random_ids", "needs [tokenizer]: the ids are of the model's tokenizer.json")
		}
	} else if s.Tokenizer == ServerTokenizer && (s.RandomRNG != "" || s.RandomIDs) {
		f.add("tokenizer", "server does not say which ids there are: [random_rng] vllm and [random_ids] need the model's tokenizer.json")
	}
	if s.Scenario == "" {
		if s.RandomBatchSize != 0 {
			f.add("random_batch_size", "applies to [scenario] E(...) and R(...), whose requests have several texts")
		}
		return
	}
	for _, x := range []struct {
		path string
		set  bool
	}{
		{"random_input_len", s.RandomInputLen != 0},
		{"random_output_len", s.RandomOutputLen != 0},
		{"random_range_ratio", s.RandomRangeRatio != 0},
		{"random_rng", s.RandomRNG != ""},
	} {
		if x.set {
			f.add(x.path, "does not apply with [scenario], which says the lengths")
		}
	}
	sc, err := scenario.Parse(s.Scenario)
	switch {
	case err != nil:
		f.join(err)
	case !sc.Documents() && s.RandomBatchSize != 0:
		f.add("random_batch_size", "applies to [scenario] E(...) and R(...), not %s", s.Scenario)
	case sc.Documents() && s.IgnoreEOS:
		f.add("ignore_eos", "does not apply with [scenario] %s, whose requests get no answer", s.Scenario)
	case sc.Documents() && s.RandomPrefixLen != 0:
		f.add("random_prefix_len", "does not apply with [scenario] %s, whose texts share nothing", s.Scenario)
	case sc.Documents() && s.RandomIDs:
		f.add("random_ids", "does not apply with [scenario] %s, whose requests are texts", s.Scenario)
	}
}

func titleRandom(s Spec) string {
	title := "Random dataset"
	if s.RandomRNG == "vllm" {
		title += " (as vLLM draws it)"
	}
	if s.RandomIDs {
		title += " of token ids"
	}
	return title
}

func describeRandom(s Spec) string {
	if s.Scenario != "" {
		return ""
	}
	text := between(s.RandomInputLen, s.RandomRangeRatio) + " input tokens, " + between(s.RandomOutputLen, s.RandomRangeRatio) + " output tokens"
	if s.RandomPrefixLen > 0 {
		return fmt.Sprintf("%d shared and %s", s.RandomPrefixLen, text)
	}
	return text
}

func between(length int, ratio float64) string {
	lo, hi := lengthRange(length, ratio)
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// openRandom makes prompts of random words: a prefix that all share, then
// words that no other prompt has in that order. Unlike the consecutive token
// ids of other clients the words are common English ones, each one token, so
// the length survives any server's tokenizer nearly unchanged.
func openRandom(s Spec, p promptBuilder) (source, error) {
	if s.RandomRNG == "vllm" {
		return openVLLMRandom(s, p)
	}
	var sc scenario.Scenario
	if s.Scenario != "" {
		var err error
		if sc, err = scenario.Parse(s.Scenario); err != nil {
			return source{}, err
		}
	}
	src := randomLengths(s, sc)
	if s.RandomPrefixLen > 0 {
		src.shared = func(int) []reuse.Piece {
			return []reuse.Piece{{ID: reuse.Name("prefix", 0), Tokens: s.RandomPrefixLen}}
		}
	}
	if s.RandomIDs {
		return randomIDs(s, p, src)
	}
	var b strings.Builder
	p.writeWords(&b, stat.Stream(s.Seed, "random prefix"), s.RandomPrefixLen)
	prefix := b.String()
	own := func(i int) int { return src.row(i).input - s.RandomPrefixLen }
	if sc.Documents() {
		own = func(int) int { return sc.Prompt() }
		if n := sc.Beside(s.RandomBatchSize); n > 0 {
			src.fill = func(i int, r *Request) { r.Documents = p.documents(s, i, n, sc.Text()) }
		}
	}
	src.prompt = func(i int) string {
		n := own(i)
		var b strings.Builder
		b.Grow(len(prefix) + bytesFor(n))
		b.WriteString(prefix)
		p.writeWords(&b, promptStream(s.Seed, i), n)
		return trimSpace(&b)
	}
	return src, nil
}

// randomLengths draws the lengths of all requests, by the scenario if its kind
// is set.
func randomLengths(s Spec, sc scenario.Scenario) source {
	in := stat.Stream(s.Seed, "random input length")
	out := stat.Stream(s.Seed, "random output length")
	src := source{rows: make([]row, s.NumPrompts)}
	for i := range src.rows {
		var r row
		if sc.Drawn() {
			l := sc.Draw(in, out, s.RandomBatchSize)
			r = row{input: l.Input, output: l.Output, documents: l.Documents}
		} else {
			r.input = around(in, s.RandomInputLen, s.RandomRangeRatio)
			r.output = around(out, s.RandomOutputLen, s.RandomRangeRatio)
		}
		r.input += s.RandomPrefixLen
		src.rows[i] = r
	}
	return src
}

// documents returns the texts that stand beside the prompt of request i, each
// of n words of its own.
func (p promptBuilder) documents(s Spec, i, count, n int) []string {
	rng := stat.Stream(s.Seed, "documents "+strconv.Itoa(i))
	out := make([]string, count)
	for d := range out {
		out[d] = p.text(rng, n)
	}
	return out
}

// randomIDs makes prompts of token ids drawn evenly from the vocabulary, with
// no text whose tokens a server could count otherwise.
func randomIDs(s Spec, p promptBuilder, src source) (source, error) {
	allowed, err := p.ordinary("random_ids", "")
	if err != nil {
		return source{}, err
	}
	fill := func(dst []int32, rng *rand.Rand, n int) []int32 {
		for range n {
			dst = append(dst, allowed[rng.IntN(len(allowed))])
		}
		return dst
	}
	prefix := fill(nil, stat.Stream(s.Seed, "random prefix"), s.RandomPrefixLen)
	return src.ofIDs(func(i int) []int32 {
		n := src.rows[i].input
		ids := append(make([]int32, 0, n), prefix...)
		return fill(ids, promptStream(s.Seed, i), n-len(prefix))
	}), nil
}

// lengthRange returns the bounds [floor(L(1-r)), ceil(L(1+r))], at least 1.
func lengthRange(length int, ratio float64) (lo, hi int) {
	l := float64(length)
	return max(1, int(math.Floor(l*(1-ratio)))), max(1, int(math.Ceil(l*(1+ratio))))
}

// around draws a length uniformly from its range.
func around(rng *rand.Rand, length int, ratio float64) int {
	lo, hi := lengthRange(length, ratio)
	return lo + rng.IntN(hi-lo+1)
}
