package bench

import "testing"

func TestScenarioFits(t *testing.T) {
	for _, tt := range []struct{ scenario, backend, want string }{
		{"", "openai-chat", ""}, {"D(100,100)", "openai-chat", ""}, {"D(100,100)", "openai-embeddings", ""},
		{"E(64)", "openai-embeddings", ""}, {"E(64)", "pooling", ""}, {"R(64,10)", "rerank", ""}, {"R(64,10)", "openai-embeddings", ""},
		{"E(64)", "openai-chat", "scenario: E(64) embeds texts, which backend openai-chat does not: use backend openai-embeddings or pooling"},
		{"E(64)", "rerank", "scenario: E(64) embeds texts, which backend rerank does not: use backend openai-embeddings or pooling"},
		{"R(64,10)", "openai", "scenario: R(64,10) ranks documents, which backend openai does not: use backend rerank or score or openai-embeddings"},
	} {
		got := ""
		if err := ScenarioFits(tt.scenario, tt.backend); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s by %s: %q", tt.scenario, tt.backend, got)
		}
	}
}
