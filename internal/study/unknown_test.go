package study

import (
	"strings"
	"testing"
)

// TestUnknownFlags: a flag that perflab does not know is an error, unless the study says
// that its engine is newer, or the engine can be asked, which a check of the file does not.
func TestUnknownFlags(t *testing.T) {
	const simulated, process = "kind: simulated", "kind: process"
	for _, tt := range []struct {
		name, runtime, engines string
		wrong, unasked, remark string
	}{
		{"a slip in a prediction", "", "flags: [--enforce-eagr]", "vLLM has no flag --enforce-eagr in any version that perflab knows, up to 0.", "", ""},
		{"the nearest is named", "", "flags: [--enforce-eagr]", ": did you mean --enforce-eager?", "", ""},
		{"nothing is near", "", "flags: [--zzzzzzzzzzzzz]", "up to 0.33", "", ""},
		{"newer, predicted", "", "version: 99.0, flags: [--new-thing, x]", "", "", "perflab does not know what these flags of vLLM do: --new-thing"},
		{"newer, the beginning of a known one", "", "version: 99.0, flags: [--tensor-parallel, 2]", "--tensor-parallel in any version", "", ""},
		{"newer, simulated", simulated, "version: 99.0, flags: [--new-thing]", "vLLM has no flag --new-thing", "", ""},
		{"started, nothing said", process, "flags: [--new-thing=x, --max-num-seqs, 8]", "", "if yours is newer, say so with engines.vllm.version", "perflab does not know what these flags of vLLM do: --new-thing"},
		{"started, newer", process, "version: 99.0, flags: [--new-thing]", "", "", "perflab does not know what these flags of vLLM do: --new-thing"},
		{"started, a known version", process, "version: 0.12.0, flags: [--new-thing]", "", "t.yaml:11:43: vLLM has no flag --new-thing", "--new-thing"},
		{"started, newer, a beginning", process, "version: 99.0, flags: [--tensor-parallel, 2]", "", ": did you mean --tensor-parallel-size?", "--tensor-parallel"},
		{"known", process, "flags: [--max-num-seqs, 8]", "", "", ""},
	} {
		text := strings.Replace(good, "runtime:", "engines: {vllm: {"+tt.engines+"}}\nruntime:", 1)
		if tt.runtime != "" {
			text = strings.Replace(text, "kind: predicted", tt.runtime, 1)
		}
		s, err := Parse("t.yaml", []byte(text))
		if tt.wrong != "" || err != nil {
			if tt.wrong == "" || err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.wrong)
			}
			continue
		}
		if err := s.Unasked(); tt.unasked == "" && err != nil || tt.unasked != "" && (err == nil || !strings.Contains(err.Error(), tt.unasked)) {
			t.Errorf("%s: check says %v, want %q", tt.name, err, tt.unasked)
		}
		if got := strings.Join(s.Remarks(), " "); (tt.remark == "") != (got == "") || !strings.Contains(got, tt.remark) {
			t.Errorf("%s: remarks %q, want %q", tt.name, got, tt.remark)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"--enforce-eager", "--port", "--tensor-parallel-size", "-tp"}
	for name, want := range map[string]string{
		"--enforce-eagr": ": did you mean --enforce-eager?", "--tensor-parallel": ": did you mean --tensor-parallel-size?", "--prt": ": did you mean --port?",
		"--something-else-entirely": "",
	} {
		if got := Suggest(name, known); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := Suggest("--x", nil); got != "" {
		t.Errorf("%q of no names", got)
	}
}
