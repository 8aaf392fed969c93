package openai

import (
	"fmt"
	"strings"
	"testing"

	"perflab/internal/result"

	"github.com/google/go-cmp/cmp"
)

// Ends of streams in the shapes in which engines tell of their speculation.
const (
	endOfVLLM = `{"id":"chatcmpl-8a","object":"chat.completion.chunk","created":1764000000,"model":"m","choices":[],"usage":{"prompt_tokens":9,"total_tokens":41,"completion_tokens":32},` +
		`"metrics":{"speculative_decoding":{"mean_acceptance_length":2.6666666666666665,"draft_acceptance_rate":0.5555555555555556,"acceptance_histogram":[3,2,3,4],"num_spec_steps":12,` +
		`"num_accepted_draft_tokens":20,"num_draft_tokens":36,"num_spec_tokens":3,"per_step_accepted":[0,3,3,1,2,0,3,2,1,2,0,3],"per_step_drafted":[3,3,3,3,3,3,3,3,3,3,3,3]}}}`
	endOfSGLang = `{"text":" a","output_ids":[1,2],"meta_info":{"id":"9a","finish_reason":{"type":"length","length":32},"prompt_tokens":9,"num_retractions":0,"reasoning_tokens":0,"completion_tokens":32,"cached_tokens":0,"dp_rank":null,` +
		`"e2e_latency":1.25,"spec_accept_rate":0.5555555555555556,"spec_accept_length":2.6666666666666665,"spec_num_correct_drafts":20,"spec_num_proposed_drafts":36,"spec_verify_ct":12,` +
		`"spec_accepted_drafts":20,"spec_proposed_drafts":36,"spec_correct_drafts_histogram":[3,2,3,4],"spec_accept_histogram":[3,2,3,4]}}`
	endOfOldSGLang = `{"text":" a","meta_info":{"finish_reason":{"type":"stop","matched":2},"prompt_tokens":9,"completion_tokens":32,"cached_tokens":0,"e2e_latency":1.25,` +
		`"spec_accept_rate":0.5555555555555556,"spec_accept_length":2.6666666666666665,"spec_accept_token_num":20,"spec_draft_token_num":36,"spec_verify_ct":12,"spec_accept_histogram":[3,2,3,4]}}`
	detailsOfSGLang = `{"id":"9a","object":"chat.completion.chunk","created":1764000000,"model":"m","choices":[],"usage":null,"sglext":{"routed_experts":null,"cached_tokens_details":null,` +
		`"spec_tokens_details":{"spec_accept_rate":0.5555555555555556,"spec_accept_length":2.6666666666666665,"spec_cap_length":0.0,"spec_block_accept_length":0.0,"spec_num_correct_drafts":20,` +
		`"spec_num_proposed_drafts":36,"spec_verify_ct":12,"spec_correct_drafts_histogram":[3,2,3,4],"spec_cap_lens_histogram":[]}}}`
	endOfLlama = `{"choices":[],"created":1764000000,"id":"chatcmpl-1","model":"m.gguf","system_fingerprint":"b9251-e2b129e1b","object":"chat.completion.chunk",` +
		`"usage":{"completion_tokens":32,"prompt_tokens":9,"total_tokens":41,"prompt_tokens_details":{"cached_tokens":4}},"timings":{"cache_n":4,"prompt_n":5,"prompt_ms":128.301,` +
		`"prompt_per_token_ms":32.07525,"prompt_per_second":31.17,"predicted_n":32,"predicted_ms":629.211,"predicted_per_token_ms":31.02,"predicted_per_second":32.23,"draft_n":36,"draft_n_accepted":20}}`
	usageAlone = `{"choices":[],"usage":{"prompt_tokens":9,"total_tokens":41,"completion_tokens":32}}`
)

// tokenOfTRTLLM is a chunk of TensorRT-LLM, with the mean of tokens a pass so far.
func tokenOfTRTLLM(mean string) string {
	return `{"id":"chatcmpl-7","object":"chat.completion.chunk","created":1764000000,"model":"m","choices":[{"index":0,"delta":{"role":null,"content":" a","reasoning_content":null,"tool_calls":[]},` +
		`"logprobs":null,"finish_reason":null,"stop_reason":null,"disaggregated_params":null,"avg_decoded_tokens_per_iter":` + mean + `}],"usage":null}`
}

func TestSpeculationIsRead(t *testing.T) {
	all := &result.Speculation{Steps: 12, Drafted: 36, Accepted: 20, ByStep: []int32{3, 2, 3, 4}}
	token := `{"choices":[{"index":0,"delta":{"content":" a"},"finish_reason":null}]}`
	finish := `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`
	for name, tt := range map[string]struct {
		backend string
		events  []string
		want    *result.Speculation
	}{
		"vLLM":                   {BackendChat, []string{token, finish, endOfVLLM}, all},
		"vLLM's completions":     {BackendCompletions, []string{`{"choices":[{"index":0,"text":" a","finish_reason":"length"}]}`, endOfVLLM}, all},
		"vLLM without a step":    {BackendChat, []string{token, finish, `{"choices":[],"metrics":{"speculative_decoding":{"acceptance_histogram":[0,0],"num_spec_steps":0,"num_accepted_draft_tokens":0,"num_draft_tokens":0}}}`}, &result.Speculation{ByStep: []int32{0, 0}}},
		"vLLM with times alone":  {BackendChat, []string{token, finish, `{"choices":[],"metrics":{"time_to_first_token_ms":1.5,"speculative_decoding":null}}`}, nil},
		"SGLang":                 {BackendSGLang, []string{strings.Replace(endOfSGLang, `{"type":"length","length":32}`, "null", 1), endOfSGLang}, all},
		"SGLang of before":       {BackendSGLang, []string{endOfOldSGLang}, all},
		"SGLang, rate alone":     {BackendSGLang, []string{`{"text":" a","meta_info":{"finish_reason":"stop","prompt_tokens":1,"completion_tokens":2,"spec_accept_rate":0.0,"spec_accept_length":0,"spec_verify_ct":5}}`}, nil},
		"SGLang's chat":          {BackendChat, []string{token, finish, detailsOfSGLang, usageAlone}, all},
		"SGLang's, of several":   {BackendChat, []string{token, finish, `{"choices":[],"sglext":{"spec_tokens_details":[{"spec_num_correct_drafts":1,"spec_verify_ct":1}]}}`}, nil},
		"llama.cpp":              {BackendChat, []string{token, finish, endOfLlama}, &result.Speculation{Drafted: 36, Accepted: 20}},
		"llama.cpp's last word":  {BackendChat, []string{strings.Replace(token, `]}`, `],"timings":{"draft_n":3,"draft_n_accepted":1}}`, 1), endOfLlama}, &result.Speculation{Drafted: 36, Accepted: 20}},
		"llama.cpp without":      {BackendChat, []string{token, finish, `{"choices":[],"timings":{"predicted_n":32,"predicted_ms":6.5}}`}, nil},
		"TensorRT-LLM":           {BackendChat, []string{tokenOfTRTLLM("1.0"), tokenOfTRTLLM("2.4615385"), finish, usageAlone}, &result.Speculation{Steps: 12, Accepted: 19}},
		"TensorRT-LLM, none":     {BackendChat, []string{tokenOfTRTLLM("1.0"), tokenOfTRTLLM("1.0"), finish, usageAlone}, &result.Speculation{Steps: 31}},
		"TensorRT-LLM, no usage": {BackendChat, []string{tokenOfTRTLLM("2.4615385"), finish}, nil},
		"TensorRT-LLM, null":     {BackendChat, []string{tokenOfTRTLLM("null"), finish, usageAlone}, nil},
		"a mean of others":       {BackendChat, []string{tokenOfTRTLLM("2.5"), finish, usageAlone}, nil},
		"a mean that cannot be":  {BackendChat, []string{tokenOfTRTLLM("0.5"), finish, usageAlone}, nil},
		"no counts":              {BackendChat, []string{token, finish, `{"choices":[],"metrics":{"speculative_decoding":{"acceptance_histogram":[1,"x",-2,1.5],"num_accepted_draft_tokens":2}}}`}, &result.Speculation{Accepted: 2, ByStep: []int32{1, -1, -1, -1}}},
		"neither":                {BackendChat, []string{token, finish, usageAlone}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			body := "data: " + strings.Join(tt.events, "\n\ndata: ") + "\n\n"
			if tt.backend != BackendSGLang {
				body += "data: [DONE]\n\n"
			}
			for _, n := range []int{len(body), 1, 31} {
				call := readStream(dialectOf(t, tt.backend), []byte(body), n)
				if call.Class != result.OK {
					t.Fatal(call.Error)
				}
				if d := cmp.Diff(tt.want, call.Speculation); d != "" {
					t.Fatalf("in pieces of %d: -want +got\n%s", n, d)
				}
			}
		})
	}
}

// A whole answer tells the same.
func TestSpeculationOfWholeAnswer(t *testing.T) {
	answer := strings.Replace(endOfVLLM, `"choices":[]`, `"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]`, 1)
	call := readStream(chat(), []byte(answer), 100)
	if want := (&result.Speculation{Steps: 12, Drafted: 36, Accepted: 20, ByStep: []int32{3, 2, 3, 4}}); !cmp.Equal(call.Speculation, want) {
		t.Errorf("%+v of class %q", call.Speculation, call.Class)
	}
}

// A server that never ends a list does not fill the memory.
func TestSpeculationIsBounded(t *testing.T) {
	counts := strings.TrimSuffix(strings.Repeat("1,", 100*mostByStep), ",")
	body := fmt.Sprintf("data: {\"choices\":[],\"metrics\":{\"speculative_decoding\":{\"num_accepted_draft_tokens\":2,\"acceptance_histogram\":[%s]}}}\n\n", counts)
	call := readStream(chat(), []byte(body), 1<<12)
	if call.Speculation == nil || len(call.Speculation.ByStep) != mostByStep {
		t.Errorf("%+v", call.Speculation)
	}
}

// What an engine tells of each token is read without an allocation.
func TestSpeculationAllocates(t *testing.T) {
	for name, event := range map[string]string{
		"llama.cpp": strings.Replace(chunkOfVLLM, `]}`, `],"timings":{"predicted_n":12,"predicted_ms":6.5,"draft_n":3,"draft_n_accepted":1}}`, 1),
		"TensorRT":  "data: " + tokenOfTRTLLM("2.4615385") + "\n\n",
		"none":      chunkOfVLLM,
	} {
		s := newStream(&result.Call{Chunks: make([]result.Chunk, 0, 1<<12)}, chat(), false)
		p := []byte(event)
		s.feed(p, 1, 0)
		if n := testing.AllocsPerRun(500, func() { s.feed(p, 1, 0) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if s.call.Class != result.OK || len(s.call.Chunks) < 500 {
			t.Errorf("%s: class %q after %d chunks", name, s.call.Class, len(s.call.Chunks))
		}
	}
}

// guessesBy reads an object with counts of guesses by encoding/json. single is false where
// it says one thing under two names, which no server does otherwise than twice the same.
func guessesBy(o tree) (g *result.Speculation, single bool) {
	var found result.Speculation
	single, told := true, false
	count := func(to *int, names ...string) (seen bool) {
		given := 0
		for _, name := range names {
			if !o.has(name) {
				continue
			}
			given++
			if n, ok := o.count(name); ok {
				*to, seen = n, true
			}
		}
		single = single && given < 2
		return seen
	}
	count(&found.Steps, "num_spec_steps", "spec_verify_ct")
	count(&found.Drafted, "num_draft_tokens", "spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num", "draft_n")
	told = count(&found.Accepted, "num_accepted_draft_tokens", "spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num", "draft_n_accepted")
	lists := 0
	for _, name := range []string{"acceptance_histogram", "spec_correct_drafts_histogram", "spec_accept_histogram"} {
		if o.has(name) {
			lists++
		}
		for _, v := range o.items(name) {
			n, ok := tree{"n": v}.count("n")
			if !ok {
				n = -1
			}
			if len(found.ByStep) < mostByStep {
				found.ByStep = append(found.ByStep, int32(n))
			}
		}
	}
	if !told {
		return nil, single && lists < 2
	}
	return &found, single && lists < 2
}

// chatGuesses are those of an object of the chat API, which may hold them in one of three places.
func chatGuesses(o tree) (g *result.Speculation, single bool) {
	places := 0
	single = true
	for _, at := range []tree{o.in("metrics").in("speculative_decoding"), o.in("timings"), o.in("sglext").in("spec_tokens_details")} {
		if len(at) == 0 {
			continue
		}
		places++
		found, once := guessesBy(at)
		if single = single && once; found != nil {
			g = found
		}
	}
	return g, single && places < 2
}

// guesses are those that the scanner read of an object; an empty list is none.
func (s *scanner) told() *result.Speculation {
	if !s.c.guessed {
		return nil
	}
	g := s.guesses
	if g.ByStep = append([]int32(nil), g.ByStep...); len(g.ByStep) == 0 {
		g.ByStep = nil
	}
	return &g
}
