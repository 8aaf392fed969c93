package result

import (
	"slices"
	"strings"
	"testing"
)

// TestEveryFactIsWarnedOf: whatever two sides differ in besides the one fact
// compared is a warning, and nothing is where they agree.
func TestEveryFactIsWarnedOf(t *testing.T) {
	side := func(name string, change func(*Header, *Summary)) Side {
		m := Measured{Name: name, Header: Header{
			Version: "1", Model: "org/model", Backend: "openai-chat", Workload: "sharegpt", Requests: 100, Rate: 8, Limit: 16,
			Command: "vllm serve org/model", Clock: ClockKernel, Cache: CacheUnique, Fingerprint: "aa", Tokenizer: "exact",
			Imported: &Imported{Client: "vllm bench serve", Labels: Labels{
				LabelEngine: "vllm", LabelEngineVersion: "v1", LabelHardware: "H100", LabelGPUs: "1",
			}},
		}, Summary: Summary{Figures: map[string]float64{
			"completed": 100, "total_input_tokens": 1000, "total_output_tokens": 2000, "success_rate": 1, "mean_ttft_ms": 50,
		}}}
		change(&m.Header, &m.Summary)
		return one(m)
	}
	same := func(*Header, *Summary) {}
	changes := map[string]func(*Header, *Summary){
		KeyFingerprint:  func(h *Header, _ *Summary) { h.Fingerprint = "bb" },
		"cache":         func(h *Header, _ *Summary) { h.Cache = CacheWarm },
		"tokenizer":     func(h *Header, _ *Summary) { h.Tokenizer = "approximate" },
		"backend":       func(h *Header, _ *Summary) { h.Backend = "openai" },
		"clock":         func(h *Header, _ *Summary) { h.Clock = ClockMonotonic },
		"client":        func(h *Header, _ *Summary) { h.Imported.Client = "guidellm" },
		"answered_by":   func(h *Header, _ *Summary) { h.Simulated = true },
		keyModel:        func(h *Header, _ *Summary) { h.Model, h.Command = "org/other", "vllm serve org/other" },
		keyEngine:       func(h *Header, _ *Summary) { h.Imported.Labels[LabelEngine] = "sglang" },
		keyEngineVer:    func(h *Header, _ *Summary) { h.Imported.Labels[LabelEngineVersion] = "v2" },
		"hardware":      func(h *Header, _ *Summary) { h.Imported.Labels[LabelHardware] = "A100" },
		"gpus":          func(h *Header, _ *Summary) { h.Imported.Labels[LabelGPUs] = "8" },
		"workload":      func(h *Header, _ *Summary) { h.Workload = "random" },
		"requests":      func(h *Header, _ *Summary) { h.Requests = 200 },
		"rate":          func(h *Header, _ *Summary) { h.Rate = 4 },
		"limit":         func(h *Header, _ *Summary) { h.Limit = 32 },
		keyCommand:      func(h *Header, _ *Summary) { h.Command += " --max-num-seqs 8" },
		keyInputTokens:  func(_ *Header, s *Summary) { s.Figures["total_input_tokens"] = 1200 },
		keyOutputTokens: func(_ *Header, s *Summary) { s.Figures["total_output_tokens"] = 1900 },
		keySuccess:      func(_ *Header, s *Summary) { s.Figures["success_rate"] = 0.9 },
	}
	other := func(key string, change func(*Header, *Summary)) Side { // differs in the fact compared too
		return side("b", func(h *Header, s *Summary) { changes[key](h, s); change(h, s) })
	}
	if c := compare(t, CompareOptions{By: keyModel}, side("a", same), other(keyModel, same)); len(c.Warnings) != 0 {
		t.Errorf("sides that differ in the fact compared alone: %q", c.Warnings)
	}
	for _, l := range Likenesses() {
		change, ok := changes[l.Key]
		if !ok {
			t.Errorf("%s has no case here", l.Key)
			continue
		}
		by := keyModel
		if l.Key == keyModel {
			by = keyEngine
		}
		said := func(text string) bool {
			return l.Differ != "" && strings.Contains(text, l.Differ) || strings.Contains(strings.ToLower(text), "differ in "+strings.ToLower(l.Label)) ||
				strings.Contains(text, ". "+l.Label+": ")
		}
		if c := compare(t, CompareOptions{By: by}, side("a", same), other(by, change)); !slices.ContainsFunc(c.Warnings, said) {
			t.Errorf("%s: no warning among %q", l.Key, c.Warnings)
		}
		if !l.Setup {
			continue
		}
		if c := compare(t, CompareOptions{By: l.Key}, side("a", same), side("b", change)); slices.ContainsFunc(c.Warnings, said) {
			t.Errorf("%s is what is compared, and warned of: %q", l.Key, c.Warnings)
		}
	}
}
