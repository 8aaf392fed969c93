package sim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"perflab/internal/sim"
	"perflab/internal/test/simtest"
)

// vllmGuesses and sglangGuesses are what the engines tell of a request's speculation.
type vllmGuesses struct {
	Length    float64 `json:"mean_acceptance_length"`
	Rate      float64 `json:"draft_acceptance_rate"`
	Histogram []int   `json:"acceptance_histogram"`
	Steps     int     `json:"num_spec_steps"`
	Accepted  int     `json:"num_accepted_draft_tokens"`
	Drafted   int     `json:"num_draft_tokens"`
	Most      int     `json:"num_spec_tokens"`
	ByStep    []int   `json:"per_step_accepted"`
	Proposed  []int   `json:"per_step_drafted"`
}

type sglangGuesses struct {
	Length    float64 `json:"spec_accept_length"`
	Histogram []int   `json:"spec_correct_drafts_histogram"`
	Steps     int     `json:"spec_verify_ct"`
	Accepted  int     `json:"spec_num_correct_drafts"`
	Drafted   int     `json:"spec_num_proposed_drafts"`
}

// answered is the part of an answer that tells it; nil where it does not.
type answered struct {
	Choices []json.RawMessage
	Usage   *struct {
		Completion int `json:"completion_tokens"`
	}
	Metrics *struct {
		Speculation *vllmGuesses `json:"speculative_decoding"`
	}
	Ext *struct {
		Details *sglangGuesses `json:"spec_tokens_details"`
	} `json:"sglext"`
}

// answers are the objects of an answer, one where it does not stream.
func answers(t *testing.T, resp *http.Response) (all []answered) {
	t.Helper()
	for line := range strings.Lines(body(t, resp)) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "data: "))
		if line == "" || line == "[DONE]" {
			continue
		}
		var a answered
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, a)
	}
	return all
}

// What answers tell adds up to what the engine counted, in every step.
func TestAnswersTellOfGuesses(t *testing.T) {
	for _, level := range []string{"summary", "detailed"} {
		for _, stream := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				cfg := config()
				cfg.Spec, cfg.SpecTokens = "mtp", 3
				e := simtest.Start(t, cfg, simtest.Options{Core: small.Core, Server: sim.ServerOptions{Guesses: level}})
				sum := vllmGuesses{Histogram: make([]int, 4)}
				for i := range 20 {
					all := answers(t, post(t, e, "/v1/completions", fmt.Sprintf(`{"prompt":"a b %d","max_tokens":40,"stream":%v,"stream_options":{"include_usage":true}}`, i, stream)))
					for _, a := range all[:len(all)-1] {
						if a.Metrics != nil {
							t.Fatal("it is told before the end")
						}
					}
					last := all[len(all)-1]
					if last.Metrics == nil || last.Metrics.Speculation == nil || last.Usage == nil {
						t.Fatalf("the end of %d tells nothing: %+v", i, last)
					}
					g := *last.Metrics.Speculation
					steps, accepted := 0, 0
					for j, n := range g.Histogram {
						steps, accepted, sum.Histogram[j] = steps+n, accepted+j*n, sum.Histogram[j]+n
					}
					// The last step may bring more than the answer has room for.
					if g.Steps != steps || g.Accepted != accepted || g.Most != 3 || 1+g.Steps+g.Accepted < 40 || 1+g.Steps+g.Accepted > 40+3 ||
						g.Length != 1+float64(accepted)/float64(steps) || g.Rate != float64(accepted)/float64(g.Drafted) {
						t.Fatalf("%+v of 40 tokens", g)
					}
					if want := map[string]int{"summary": 0, "detailed": steps}[level]; len(g.ByStep) != want || len(g.Proposed) != want {
						t.Fatalf("%s tells %d and %d steps of %d", level, len(g.ByStep), len(g.Proposed), steps)
					}
					sum.Steps, sum.Accepted, sum.Drafted = sum.Steps+g.Steps, sum.Accepted+g.Accepted, sum.Drafted+g.Drafted
				}
				for name, want := range map[string]int{"vllm:spec_decode_num_drafts_total": sum.Steps, "vllm:spec_decode_num_draft_tokens_total": sum.Drafted, "vllm:spec_decode_num_accepted_tokens_total": sum.Accepted} {
					if got := metric(t, e, name); got != fmt.Sprint(want) {
						t.Errorf("%s is %s, the answers tell %d", name, got, want)
					}
				}
				if sum.Histogram[0] == 0 || sum.Histogram[3] == 0 {
					t.Errorf("steps by accepted guesses: %v", sum.Histogram)
				}
			})
		}
	}
}

// A request of one token guesses nothing, and vLLM says so.
func TestAnswerWithoutGuess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.Spec, cfg.SpecTokens = "mtp", 2
		e := simtest.Start(t, cfg, simtest.Options{Core: small.Core, Server: sim.ServerOptions{Guesses: "detailed"}})
		all := answers(t, post(t, e, "/v1/completions", `{"prompt":"a","max_tokens":1}`))
		if m := all[0].Metrics; m == nil || m.Speculation == nil || m.Speculation.Steps != 0 || m.Speculation.Length != 1 || len(m.Speculation.Histogram) != 3 || m.Speculation.ByStep != nil {
			t.Errorf("%+v", m)
		}
	})
}

// SGLang tells who asks, in an event of its own.
func TestSGLangTellsOfGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.Engine, cfg.PrefillOnly, cfg.Spec, cfg.SpecTokens = "sglang", true, "eagle", 3
		e := simtest.Start(t, cfg, small)
		all := answers(t, post(t, e, "/v1/completions", `{"prompt":"a b","max_tokens":40,"stream":true,"stream_options":{"include_usage":true},"return_spec_tokens_details":true}`))
		told := all[len(all)-2]
		if told.Ext == nil || told.Ext.Details == nil || len(told.Choices) != 0 || told.Usage != nil || all[len(all)-1].Ext != nil {
			t.Fatalf("the event before the last is %+v", told)
		}
		g := *told.Ext.Details
		if g.Steps == 0 || len(g.Histogram) != 4 || g.Length != 40/float64(g.Steps) || g.Drafted < g.Accepted {
			t.Errorf("%+v", g)
		}
		whole := answers(t, post(t, e, "/v1/completions", `{"prompt":"a b","max_tokens":40,"return_spec_tokens_details":true}`))
		if whole[0].Ext == nil || whole[0].Ext.Details == nil || whole[0].Ext.Details.Steps == 0 {
			t.Errorf("a whole answer: %+v", whole[0])
		}
	})
}

// Nobody tells what he was not asked for, or has not.
func TestNothingToldOfGuesses(t *testing.T) {
	for name, tt := range map[string]struct {
		engine string
		tokens int
		level  string
		field  string
	}{
		"vLLM without the flag":        {"vllm", 3, "", ""},
		"vLLM with none":               {"vllm", 3, "none", ""},
		"vLLM without speculation":     {"vllm", 0, "summary", ""},
		"vLLM asked as SGLang":         {"vllm", 3, "", `,"return_spec_tokens_details":true`},
		"SGLang without the field":     {"sglang", 3, "summary", ""},
		"SGLang without speculation":   {"sglang", 0, "", `,"return_spec_tokens_details":true`},
		"TensorRT-LLM, which has none": {"trtllm", 3, "summary", `,"return_spec_tokens_details":true`},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := config()
			if cfg.Engine = tt.engine; tt.tokens > 0 {
				cfg.Spec, cfg.SpecTokens = "mtp", tt.tokens
			}
			cfg.PrefillOnly = tt.engine == "sglang"
			e := simtest.Start(t, cfg, simtest.Options{Core: small.Core, Server: sim.ServerOptions{Guesses: tt.level}})
			for _, a := range answers(t, post(t, e, "/v1/completions", `{"prompt":"a b","max_tokens":20,"stream":true,"stream_options":{"include_usage":true}`+tt.field+`}`)) {
				if a.Metrics != nil || a.Ext != nil {
					t.Errorf("%s: %+v", name, a)
				}
			}
		})
	}
}
