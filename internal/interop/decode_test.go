package interop

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"perflab/internal/result"
)

const pasted = "# Case\n\n============ Serving Benchmark Result ============\nSuccessful requests:                     7\n" +
	"Mean TTFT (ms):                          12.50\n==================================================\n"

func inUTF16(s string, order binary.AppendByteOrder) string {
	b := order.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// TestPasted: a block reads alike however it came out of a terminal or an
// editor, with the lines that its reader sees.
func TestPasted(t *testing.T) {
	var coloured, bar, prefixed strings.Builder
	for line := range strings.Lines(pasted) {
		prefixed.WriteString("(client pid=12) " + line)
		coloured.WriteString("\x1b[1;32m\x1b]8;;http://x\x1b\\" + strings.TrimSuffix(line, "\n") + "\x1b[0m\x1b[K\n")
	}
	bar.WriteString("  0%|  | 0/7\r100%|##| 7/7\r" + pasted)
	for name, text := range map[string]string{
		"plain": pasted, "mark": "\xef\xbb\xbf" + pasted, "CRLF": strings.ReplaceAll(pasted, "\n", "\r\n"), "CR CRLF": strings.ReplaceAll(pasted, "\n", "\r\r\n"),
		"CR": strings.ReplaceAll(pasted, "\n", "\r"), "colours": coloured.String(), "progress bar": bar.String(), "prefix": prefixed.String(),
		"full width": strings.NewReplacer(":", "：", "(", "（", ")", "）").Replace(pasted),
		"UTF-16LE":   inUTF16(pasted, binary.LittleEndian), "UTF-16BE": inUTF16(pasted, binary.BigEndian),
	} {
		f := Read("a.md", []byte(text))
		if len(f.Runs) != 1 || len(f.Faults) != 0 {
			t.Errorf("%s: %d runs, faults %v", name, len(f.Runs), f.Faults)
			continue
		}
		ttft, _ := f.Runs[0].Figure("mean_ttft_ms")
		if ttft.Value != 12.5 || ttft.Line != 5 || f.Runs[0].Place.Line != 3 {
			t.Errorf("%s: %+v of line %d", name, ttft, f.Runs[0].Place.Line)
		}
	}
}

// TestPastedBadly: what cannot be read of a paste is told with its line.
func TestPastedBadly(t *testing.T) {
	var wrapped strings.Builder
	for line := range strings.Lines(pasted) {
		for line = strings.TrimSuffix(line, "\n"); len(line) > 40; line = line[40:] {
			wrapped.WriteString(line[:40] + "\n")
		}
		wrapped.WriteString(line + "\n")
	}
	for _, c := range []struct{ text, at, want string }{
		{wrapped.String(), "a.md:3: ", "wrapped lines is to be unwrapped"},
		{wrapped.String(), "a.md:5: ", `"Successful requests" has no number`},
		{strings.Replace(pasted, "Case", "Caf\xe9", 1), "a.md:1: ", "not UTF-8"},
	} {
		found := false
		f := Read("a.md", []byte(c.text))
		for _, fault := range f.Faults {
			found = found || strings.HasPrefix(fault.String(), c.at) && strings.Contains(fault.Text, c.want)
		}
		if !found {
			t.Errorf("no fault %s%s: %v", c.at, c.want, f.Faults)
		}
	}
}

// TestDefaultsOfCommand: a command of vllm bench serve that names no rate sends
// all at once, without a limit; a command that ramps up does not.
func TestDefaultsOfCommand(t *testing.T) {
	block := "\n\n```\n============ Serving Benchmark Result ============\nSuccessful requests: 1000\nMean TTFT (ms): 5.00\n====\n```\n"
	for _, c := range []struct{ command, rate, limit, model string }{
		{"vllm bench serve --model acme/tiny-7b --port 8000", "inf", "none", "acme/tiny-7b"},
		{"python3 benchmarks/benchmark_serving.py --model acme/tiny-7b --num-prompts 1000", "inf", "none", "acme/tiny-7b"},
		{"vllm bench serve --model acme/tiny-7b --request-rate 4 --max-concurrency 64", "4", "64", "acme/tiny-7b"},
		{"vllm bench serve --model acme/tiny-7b --num-prompts 1000 --ramp-up-strategy linear", "", "none", "acme/tiny-7b"},
		{"vllm bench serve --model acme/tiny-7b --num-prompts 10", "", "", ""}, // is not of this block
		{"guidellm benchmark --target http://x --max-requests 1000", "", "", ""},
	} {
		f := Read("a.md", []byte("# T\n\n```bash\n"+c.command+"\n```"+block))
		if len(f.Runs) != 1 {
			t.Fatalf("%s: %v", c.command, f.Faults)
		}
		h := f.Runs[0].Header
		if h.Label(result.LabelRate) != c.rate || h.Label(result.LabelLimit) != c.limit || h.Model != c.model {
			t.Errorf("%s: rate %q, limit %q, model %q", c.command, h.Label(result.LabelRate), h.Label(result.LabelLimit), h.Model)
		}
	}
}
