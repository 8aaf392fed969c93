package workload

import (
	"bufio"
	"cmp"
	_ "embed"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"perflab/internal/field"
)

// sonnet makes prompts of lines of verse.
func sonnet() dataset {
	return dataset{
		name: "sonnet", group: groupMadeUp,
		params: []param{
			{key: "sonnet_input_len", help: "prompt tokens at most", standard: 550},
			{key: "sonnet_output_len", help: "output tokens", standard: 150},
			{key: "sonnet_prefix_len", help: "tokens of the prompt that all share", standard: 200},
		},
		fill: func(s *Spec) { s.NumPrompts = cmp.Or(s.NumPrompts, 1000) },
		check: func(_, d Spec, f *faults) {
			if d.SonnetPrefixLen >= d.SonnetInputLen {
				f.add("sonnet_prefix_len", "%d must be below [sonnet_input_len] %d, of which it is a part", d.SonnetPrefixLen, d.SonnetInputLen)
			}
		},
		open:   func(s Spec, p promptBuilder) (source, error) { return arrangeSonnets(strings.NewReader(sonnets), s, p) },
		read:   func(f *os.File, s Spec, p promptBuilder) (source, error) { return arrangeSonnets(f, s, p) },
		slow:   func(s Spec) bool { return s.Tokenizer != "" }, // which measures the prompts one by one
		shares: func(s Spec) bool { return s.SonnetPrefixLen > 0 },
		title: func(s Spec) string {
			if s.Path != "" {
				return ofFile("Sonnet dataset", s)
			}
			return "Sonnet dataset"
		},
	}
}

// sonnetQuestion stands before the lines.
const sonnetQuestion = "Below are lines of a poem. Arrange some of them into a new one:\n"

// arrangeSonnets makes prompts of lines of verse, in the shape of the other
// clients' sonnet dataset: a question and the first lines of the poem, shared
// by all, then lines at random while they fit the input length. Natural text
// of nearly even length, which speculative decoding and routed experts take
// otherwise than random words.
func arrangeSonnets(poem io.Reader, s Spec, p promptBuilder) (source, error) {
	lines, err := verses(poem)
	if err != nil {
		return source{}, err
	}
	count := make([]int, len(lines))
	for i, line := range lines {
		if count[i], err = p.count(line, false); err != nil {
			return source{}, err
		}
		count[i] = max(1, count[i])
	}
	used, err := p.count(sonnetQuestion, false)
	if err != nil {
		return source{}, err
	}
	shared := 0
	for shared < len(lines) && used+count[shared] <= s.SonnetPrefixLen {
		used += count[shared]
		shared++
	}
	if need := used + slices.Min(count); need > s.SonnetInputLen {
		return source{}, field.Errorf("sonnet_input_len", "%d has no room for a line behind the question and the shared lines: give at least %d", s.SonnetInputLen, need)
	}
	prefix := sonnetQuestion + strings.Join(lines[:shared], "")
	// own calls fn with each line of request i alone.
	own := func(i int, fn func(line int)) {
		rng := promptStream(s.Seed, i)
		for n := used; ; {
			line := rng.IntN(len(lines))
			if n += count[line]; n > s.SonnetInputLen {
				return
			}
			fn(line)
		}
	}
	src := source{rows: make([]row, s.NumPrompts)}
	src.prompt = func(i int) string {
		var b strings.Builder
		b.WriteString(prefix)
		own(i, func(line int) { b.WriteString(lines[line]) })
		return b.String()
	}
	for i := range src.rows {
		n := used
		own(i, func(line int) { n += count[line] })
		if p.tok != nil { // lines may join where they meet
			if n, err = p.count(src.prompt(i), false); err != nil {
				return source{}, err
			}
		}
		src.rows[i] = row{input: n, output: s.SonnetOutputLen}
	}
	return src, nil
}

// verses returns the lines of a poem, each with its end; blank ones are left out.
func verses(poem io.Reader) ([]string, error) {
	in := bufio.NewScanner(poem)
	var lines []string
	for in.Scan() {
		if line := strings.TrimSpace(in.Text()); line != "" {
			lines = append(lines, line+"\n")
		}
	}
	if in.Err() == nil && len(lines) == 0 {
		return nil, errors.New("it has no line of text")
	}
	return lines, in.Err()
}

// sonnets are William Shakespeare's sonnets 1, 18, 29, 30, 55, 73, 116 and 130.
//
//go:embed sonnets.txt
var sonnets string
