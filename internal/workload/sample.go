package workload

import (
	"fmt"
	"iter"

	"perflab/internal/stat"
)

// taken is what a row of a file is sent as, or why it is left out.
type taken struct {
	prompt, system string
	row            row
	reason         string // as in dropCounts; "": it is sent
}

// sampleAsVLLM makes the requests of src of a file's rows, in their order, until
// there are as many as the spec asks for, or all where it asks for none. Missing
// ones are drawn from those, as `vllm bench serve` (Python) draws them from the
// same seed. No row is looked at beyond the last that is needed.
func sampleAsVLLM[T any](s Spec, src source, rows iter.Seq2[T, error], take func(T) (taken, error)) (source, error) {
	var all []taken
	for x, err := range rows {
		if err != nil {
			return source{}, err
		}
		if len(all) == s.NumPrompts && s.NumPrompts > 0 {
			break
		}
		src.read++
		t, err := take(x)
		if err != nil {
			return source{}, err
		}
		if t.reason != "" {
			src.drops[t.reason]++
			continue
		}
		all = append(all, t)
	}
	if n := len(all); n > 0 && !s.NoOversample {
		rng := stat.NewPython(s.Seed)
		for range s.NumPrompts - n {
			all = append(all, all[rng.Below(n)])
		}
	}
	src.rows = make([]row, len(all))
	for i, t := range all {
		src.rows[i] = t.row
		if t.system != "" {
			src.chat = "a dataset with system prompts"
		}
	}
	src.prompt = func(i int) string { return all[i].prompt }
	if src.chat != "" {
		src.fill = func(i int, r *Request) { r.System = all[i].system }
	}
	return src, nil
}

// pythonOrder yields the indexes below n as Python's random.shuffle leaves them, from
// the spec's seed, or in the file's order.
func pythonOrder(s Spec, n int) iter.Seq2[int, error] {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if !s.DisableShuffle {
		stat.NewPython(s.Seed).Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return listed(order)
}

// listed yields the elements of a list, none of them an error.
func listed[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, x := range list {
			if !yield(x, nil) {
				return
			}
		}
	}
}

// answerLength is the output of a row: the spec's where it has one, else the
// length of the row's own answer.
func (p promptBuilder) answerLength(answer string, fixed int, special bool) (int, error) {
	if fixed > 0 {
		return fixed, nil
	}
	return p.count(answer, special)
}

// atRow names the row of an error, from 1; nil is none.
func atRow(i int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("row %d: %w", i+1, err)
}
