package compare

import (
	"slices"
	"strings"
	"testing"

	"perflab/internal/result"
)

// TestEveryFactIsWarnedOf: whatever two sides differ in besides the one fact
// compared is a warning, and nothing is where they agree.
func TestEveryFactIsWarnedOf(t *testing.T) {
	side := func(name string, change func(*result.Header, *result.Summary)) Side {
		m := Run{Name: name, Header: result.Header{
			Version: "1", Model: "org/model", Backend: "openai-chat", Workload: "sharegpt", Requests: 100, Rate: 8, Limit: 16,
			Command: "vllm serve org/model", Clock: result.ClockKernel, Cache: result.CacheUnique, Fingerprint: "aa", Tokenizer: "exact",
			Imported: &result.Imported{Client: "vllm bench serve", Labels: result.Labels{
				result.LabelEngine: "vllm", result.LabelEngineVersion: "v1", result.LabelHardware: "H100", result.LabelGPUs: "1",
			}},
		}, Summary: result.Summary{Figures: map[string]float64{
			"completed": 100, "total_input_tokens": 1000, "total_output_tokens": 2000, "success_rate": 1, "mean_ttft_ms": 50,
			"mean_itl_ms": 20, "tokens_per_chunk": 1, "tokens_per_read": 1,
		}}}
		change(&m.Header, &m.Summary)
		return one(m)
	}
	same := func(*result.Header, *result.Summary) {}
	changes := map[string]func(*result.Header, *result.Summary){
		KeyFingerprint:  func(h *result.Header, _ *result.Summary) { h.Fingerprint = "bb" },
		"cache":         func(h *result.Header, _ *result.Summary) { h.Cache = result.CacheWarm },
		"tokenizer":     func(h *result.Header, _ *result.Summary) { h.Tokenizer = "approximate" },
		"backend":       func(h *result.Header, _ *result.Summary) { h.Backend = "openai" },
		"clock":         func(h *result.Header, _ *result.Summary) { h.Clock = result.ClockMonotonic },
		"client":        func(h *result.Header, _ *result.Summary) { h.Imported.Client = "guidellm" },
		"answered_by":   func(h *result.Header, _ *result.Summary) { h.Simulated = true },
		keyModel:        func(h *result.Header, _ *result.Summary) { h.Model, h.Command = "org/other", "vllm serve org/other" },
		keyEngine:       func(h *result.Header, _ *result.Summary) { h.Imported.Labels[result.LabelEngine] = "sglang" },
		keyEngineVer:    func(h *result.Header, _ *result.Summary) { h.Imported.Labels[result.LabelEngineVersion] = "v2" },
		"hardware":      func(h *result.Header, _ *result.Summary) { h.Imported.Labels[result.LabelHardware] = "A100" },
		"gpus":          func(h *result.Header, _ *result.Summary) { h.Imported.Labels[result.LabelGPUs] = "8" },
		"workload":      func(h *result.Header, _ *result.Summary) { h.Workload = "random" },
		"requests":      func(h *result.Header, _ *result.Summary) { h.Requests = 200 },
		"rate":          func(h *result.Header, _ *result.Summary) { h.Rate = 4 },
		"limit":         func(h *result.Header, _ *result.Summary) { h.Limit = 32 },
		keyCommand:      func(h *result.Header, _ *result.Summary) { h.Command += " --max-num-seqs 8" },
		keyInputTokens:  func(_ *result.Header, s *result.Summary) { s.Figures["total_input_tokens"] = 1200 },
		keyOutputTokens: func(_ *result.Header, s *result.Summary) { s.Figures["total_output_tokens"] = 1900 },
		keySuccess:      func(_ *result.Header, s *result.Summary) { s.Figures["success_rate"] = 0.9 },
		"itl_tokens": func(_ *result.Header, s *result.Summary) {
			s.Figures["tokens_per_chunk"], s.Figures["tokens_per_read"] = 8, 8
		},
	}
	other := func(key string, change func(*result.Header, *result.Summary)) Side { // differs in the fact compared too
		return side("b", func(h *result.Header, s *result.Summary) { changes[key](h, s); change(h, s) })
	}
	if c := compare(t, Options{By: keyModel}, side("a", same), other(keyModel, same)); len(c.Warnings) != 0 {
		t.Errorf("sides that differ in the fact compared alone: %q", c.Warnings)
	}
	for _, l := range Covariates() {
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
		if c := compare(t, Options{By: by}, side("a", same), other(by, change)); !slices.ContainsFunc(c.Warnings, said) {
			t.Errorf("%s: no warning among %q", l.Key, c.Warnings)
		}
		if !l.Setup {
			continue
		}
		if c := compare(t, Options{By: l.Key}, side("a", same), side("b", change)); slices.ContainsFunc(c.Warnings, said) {
			t.Errorf("%s is what is compared, and warned of: %q", l.Key, c.Warnings)
		}
	}
}

// Gaps of several tokens are called that in the rows of a comparison, and the gaps by token are
// compared without being asked for.
func TestPackedGapsAreSaid(t *testing.T) {
	side := func(name string, tokens, gap float64) Side {
		return one(Run{Name: name, Summary: result.Summary{Figures: map[string]float64{
			"completed": 100, "mean_itl_ms": gap, "mean_itl_token_ms": gap / tokens, "tokens_per_chunk": tokens, "tokens_per_read": tokens,
		}}})
	}
	const warning = "unlike numbers of tokens"
	warned := func(c Comparison) bool {
		return slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, warning) })
	}
	c := compare(t, Options{}, side("a", 1, 20), side("b", 8, 160))
	if got := c.find(t, "mean_itl_ms").Label; got != "Mean ITL (ms), per read of 1 or 8.0 tokens" || !warned(c) {
		t.Errorf("label %q, warnings %q", got, c.Warnings)
	}
	c.find(t, "mean_itl_token_ms")
	c = compare(t, Options{}, side("a", 8, 160), side("b", 8.2, 160))
	if warned(c) {
		t.Errorf("8.0 and 8.2 tokens are warned of: %q", c.Warnings)
	}
}

// TestFleetIsAnotherClient: a load that several machines sent is not the same client as one.
func TestFleetIsAnotherClient(t *testing.T) {
	side := func(name string, fleet *result.Fleet) Side {
		return one(Run{Name: name, Header: result.Header{Version: "1", Fleet: fleet}, Summary: result.Summary{Figures: map[string]float64{"completed": 100, "mean_ttft_ms": 50}}})
	}
	c := compare(t, Options{}, side("a", nil), side("b", &result.Fleet{Agents: make([]result.Agent, 3)}))
	if !slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, "Different clients") }) {
		t.Errorf("no warning among %q", c.Warnings)
	}
	i := slices.IndexFunc(c.Facts, func(f Fact) bool { return f.Key == "client" })
	if i < 0 || !slices.Equal(c.Facts[i].Values, []string{"perflab 1", "perflab 1 (agents: 3)"}) {
		t.Errorf("facts %+v", c.Facts)
	}
}
