package workload

import (
	"fmt"
	"math"

	"perflab/internal/field"
	"perflab/internal/stat"
)

// openVLLMRandom makes the prompts of `vllm bench serve --dataset-name random`
// from the same seed, flags and tokenizer: runs of consecutive ids of the
// vocabulary, each decoded to text and brought to its length by encoding it
// again. The random numbers go on from prompt to prompt, so all prompts are
// made at once and kept.
//
// With --random-ids the ids are sent as drawn, which needs no such correction.
//
// Older releases did not correct the shared prefix by itself; this is what
// those of 2026 do. The prompts are those of Python's client: its later
// rewrite in Rust draws other ones from the same flags.
func openVLLMRandom(s Spec, p promptBuilder) (source, error) {
	allowed, size, err := p.vocabulary("random_rng", "vllm ")
	if err != nil {
		return source{}, err
	}
	added, err := p.specials()
	if err != nil {
		return source{}, err
	}
	length := max(0, s.RandomInputLen-added)
	lo := int(math.Floor(float64(length) * (1 - s.RandomRangeRatio)))
	hi := int(math.Ceil(float64(length) * (1 + s.RandomRangeRatio)))
	if s.RandomPrefixLen+lo < 1 {
		return source{}, field.Errorf("random_input_len", "%d leaves prompts without a token, of which the tokenizer adds %d itself: choose a longer one or a [random_prefix_len]",
			s.RandomInputLen, added)
	}
	outLo, outHi := lengthRange(s.RandomOutputLen, s.RandomRangeRatio)

	v := vllmSampler{builder: p, rng: stat.NewNumPy(s.Seed), size: size}
	in := v.rng.Integers(lo, hi+1, s.NumPrompts)
	out := v.rng.Integers(outLo, outHi+1, s.NumPrompts)
	offset := v.rng.Integers(0, v.size, s.NumPrompts)
	src := source{rows: make([]row, s.NumPrompts)}
	for i := range src.rows {
		src.rows[i] = row{input: s.RandomPrefixLen + in[i], output: out[i]}
	}
	prefix := make([]int32, 0, s.RandomPrefixLen)
	for _, at := range v.rng.Integers(0, len(allowed), s.RandomPrefixLen) {
		prefix = append(prefix, allowed[at])
	}
	ids := func(i int) []int32 {
		all := append(make([]int32, 0, len(prefix)+in[i]), prefix...)
		for j := range in[i] {
			all = append(all, allowed[(offset[i]+i+j)%len(allowed)])
		}
		return all
	}
	if s.RandomIDs {
		return src.ofIDs(ids), nil
	}
	if len(prefix) > 0 {
		if _, prefix, err = v.fit(prefix, s.RandomPrefixLen); err != nil {
			return source{}, err
		}
	}
	rows, prompts := make([]row, len(src.rows)), make([]string, len(src.rows))
	for i := range rows {
		var got []int32
		if prompts[i], got, err = v.fit(ids(i), src.rows[i].input); err != nil {
			return source{}, err
		}
		rows[i] = row{input: len(got), output: src.rows[i].output}
	}
	return source{rows: rows, prompt: func(i int) string { return prompts[i] }}, nil
}

// vllmSampler is the state of vLLM's sampling.
type vllmSampler struct {
	builder promptBuilder
	rng     *stat.NumPy
	size    int // of the vocabulary
}

// fit decodes ids and encodes the text again until it has n tokens: longer
// ones are cut, shorter ones get random ids behind them, ten times at most.
// What it returns may then still be longer or shorter.
func (v vllmSampler) fit(ids []int32, n int) (text string, got []int32, err error) {
	tok := v.builder.tok
	for tries := 10; ; tries-- {
		if text, err = tok.Decode(ids); err != nil {
			return "", nil, fmt.Errorf("decode %d ids by %s: %w", len(ids), tok.Name(), err)
		}
		if ids, err = tok.Encode(text, false); err != nil {
			return "", nil, fmt.Errorf("encode a prompt by %s: %w", tok.Name(), err)
		}
		if len(ids) == n || tries == 0 {
			return text, ids, nil
		}
		if len(ids) > n {
			ids = ids[:n]
			continue
		}
		for _, id := range v.rng.Integers(0, v.size, n-len(ids)) {
			ids = append(ids, int32(id))
		}
	}
}
