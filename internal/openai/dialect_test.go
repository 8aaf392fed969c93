package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"

	"github.com/google/go-cmp/cmp"
)

func dialectOf(t testing.TB, backend string) *dialect {
	t.Helper()
	d, err := Config{Backend: backend}.dialect()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// play feeds a stream to the dialect, an event a read: event i is read i and
// comes at i ms. A piece that is no stream is fed as it is.
func play(t testing.TB, backend string, events ...string) result.Call {
	t.Helper()
	call := playWhole(t, backend, events...)
	call.FirstText, call.StreamText = 0, 0 // see TestTextOfChunks
	return call
}

func playWhole(t testing.TB, backend string, events ...string) result.Call {
	t.Helper()
	var call result.Call
	s := newStream(&call, dialectOf(t, backend), true)
	at := time.Duration(0)
	for i, e := range events {
		at = time.Duration(i) * ms
		if !s.feed([]byte(e), at, int32(i)) {
			break
		}
	}
	s.end(at)
	if call.End == 0 {
		call.End = at
	}
	s.settle()
	return call
}

// How much text came with the first chunk and with all, where all of them say it.
func TestTextOfChunks(t *testing.T) {
	chat := func(deltas ...string) (out []string) {
		for _, d := range deltas {
			out = append(out, `data: {"choices":[{"index":0,"delta":{`+d+`}}]}`+"\n\n")
		}
		return out
	}
	for name, tt := range map[string]struct {
		backend    string
		in         []string
		first, all int
	}{
		"text":               {BackendChat, chat(`"role":"assistant","content":""`, `"content":"ab"`, `"content":"cde"`, `"content":"f"`, `"content":""`), 2, 6},
		"reasoning first":    {BackendChat, chat(`"reasoning_content":"abcd"`, `"content":"e"`), 4, 5},
		"two fields at once": {BackendChat, chat(`"reasoning":"abcd","content":"ef"`, `"content":"g"`), 6, 7},
		"as written":         {BackendChat, chat(`"content":"\u4e2d"`, `"content":"\n"`), 6, 8},
		"a tool's call":      {BackendChat, chat(`"tool_calls":[{"function":{"name":"get","arguments":"{"}}]`, `"tool_calls":[{"function":{"arguments":"\"a\"}"}}]`), 4, 10},
		"parts":              {BackendChat, chat(`"content":"ab"`, `"content":[{"text":"cd"}]`), 0, 0},
		"a new field":        {BackendChat, chat(`"thought":"ab"`, `"thought":"cd"`, `"content":"ef"`), 0, 0},
		"responses": {BackendResponses, typedEvents(`{"type":"response.output_text.delta","output_index":0,"delta":"abc"}`,
			`{"type":"response.function_call_arguments.delta","output_index":1,"delta":"de"}`), 3, 5},
		"anthropic": {BackendAnthropic, typedEvents(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"abc"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"de"}}`), 3, 5},
	} {
		t.Run(name, func(t *testing.T) {
			if c := playWhole(t, tt.backend, tt.in...); c.FirstText != tt.first || c.StreamText != tt.all {
				t.Errorf("%d bytes first and %d in all, want %d and %d", c.FirstText, c.StreamText, tt.first, tt.all)
			}
		})
	}
}

// typedEvent is an event whose type stands before it and in it.
func typedEvent(data string) string {
	var v struct{ Type string }
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		panic(err)
	}
	return fmt.Sprintf("event: %s\ndata: %s\n\n", v.Type, data)
}

func typedEvents(data ...string) []string {
	var out []string
	for _, d := range data {
		out = append(out, typedEvent(d))
	}
	return out
}

func dataEvents(data ...string) []string {
	var out []string
	for _, d := range data {
		out = append(out, "data: "+d+"\n\n")
	}
	return out
}

// at makes chunks of one token, chunk i at read and millisecond reads[i].
func at(reads ...int32) []result.Chunk {
	var out []result.Chunk
	for _, r := range reads {
		out = append(out, result.Chunk{At: time.Duration(r) * ms, Tokens: 1, Read: r})
	}
	return out
}

func empty(reads ...int32) []result.Stamp {
	var out []result.Stamp
	for _, r := range reads {
		out = append(out, result.Stamp{At: time.Duration(r) * ms, Read: r})
	}
	return out
}

const (
	created  = `{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null},"sequence_number":0}`
	progress = `{"type":"response.in_progress","response":{"id":"resp_1","status":"in_progress","output":[]},"sequence_number":1}`
)

func completed(kind, status, reason string) string {
	return `{"response":{"id":"resp_1","status":"` + status + `","incomplete_details":` + reason + `,"error":null,"output":[{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"Hi you"}]}],` +
		`"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":16},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":123}},"sequence_number":9,"type":"` + kind + `"}`
}

func textDelta(s string) string {
	return `{"content_index":0,"delta":"` + s + `","item_id":"msg_1","logprobs":[],"output_index":0,"sequence_number":4,"type":"response.output_text.delta"}`
}

func TestResponses(t *testing.T) {
	usage := &result.Usage{Prompt: 36, Completion: 87, Cached: 16, Reasoning: 64}
	added := `{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`
	part := `{"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`
	reasoning := `{"content_index":0,"delta":"hm ","item_id":"rs_1","output_index":0,"sequence_number":3,"type":"response.reasoning_text.delta"}`
	for name, tt := range map[string]struct {
		in   []string
		want result.Call
	}{
		"text": {typedEvents(created, progress, added, part, textDelta("Hi"), textDelta(" you"),
			`{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":"Hi you"}`,
			completed("response.completed", "completed", "null")),
			result.Call{Chunks: at(4, 5), Empty: empty(2, 3, 6), Answer: 4 * ms, UsageAt: 7 * ms, Done: 7 * ms, End: 7 * ms, Text: "Hi you", Finish: "completed", Usage: usage}},
		"reasoning, then cut by the limit": {typedEvents(created, reasoning, textDelta("Hi"), completed("response.incomplete", "incomplete", `{"reason":"max_output_tokens"}`)),
			result.Call{Chunks: at(1, 2), Answer: 2 * ms, UsageAt: 3 * ms, Done: 3 * ms, End: 3 * ms, Text: "hm Hi", Finish: "max_output_tokens", Usage: usage}},
		"function call": {typedEvents(created,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"{\"city\":"}`,
			`{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":0,"arguments":"{\"city\":1}"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","name":"get_weather","arguments":"{}"}}`,
			completed("response.completed", "completed", "null")),
			result.Call{Chunks: at(1, 2), Empty: empty(3, 4), Answer: 1 * ms, UsageAt: 5 * ms, Done: 5 * ms, End: 5 * ms, Finish: "completed", Usage: usage}},
		"refusal": {typedEvents(`{"type":"response.refusal.delta","output_index":0,"delta":"No"}`, completed("response.completed", "completed", "null")),
			result.Call{Chunks: at(0), UsageAt: 1 * ms, Done: 1 * ms, End: 1 * ms, Text: "No", Finish: "completed", Usage: usage}},
		"type on the event's line alone": {[]string{
			"event: response.output_text.delta\ndata: {\"delta\":\"a\",\"output_index\":0}\n\n",
			"event: response.completed\ndata: {\"response\":{\"status\":\"completed\"}}\n\n"},
			result.Call{Chunks: at(0), Done: 1 * ms, End: 1 * ms, Text: "a", Finish: "completed"}},
		"a new kind of delta": {typedEvents(`{"type":"response.musing.delta","output_index":0,"delta":"x"}`, `{"type":"response.musing.delta","output_index":0,"delta":"y"}`,
			completed("response.completed", "completed", "null")),
			result.Call{Chunks: at(0, 1), UsageAt: 2 * ms, Done: 2 * ms, End: 2 * ms, Finish: "completed", Field: "response.musing.delta", Usage: usage}},
		"[DONE] as well": {append(typedEvents(textDelta("a"), completed("response.completed", "completed", "null")), done),
			result.Call{Chunks: at(0), UsageAt: 1 * ms, Done: 1 * ms, End: 1 * ms, Text: "a", Finish: "completed", Usage: usage}},
		"failed": {typedEvents(created, `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"out of memory"}}}`),
			result.Call{End: 1 * ms, Class: result.StreamError, Error: "out of memory"}},
		"error event":  {typedEvents(created, `{"type":"error","code":"rate_limit","message":"slow down","param":null}`), result.Call{End: 1 * ms, Class: result.StreamError, Error: "slow down"}},
		"error untold": {dataEvents(`{"type":"error","code":"rate_limit","message":"slow down","param":null}`), result.Call{Class: result.StreamError, Error: "slow down"}},
		"early close": {typedEvents(created, textDelta("a")),
			result.Call{Chunks: at(1), Answer: 1 * ms, End: 1 * ms, Text: "a", Class: result.EarlyClose, Error: "the stream ended after 1 tokens without [DONE] or a finish reason"}},
		"one answer": {[]string{`{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"reasoning","summary":[{"text":"s","type":"summary_text"}],"content":[{"type":"reasoning_text","text":"hm "}]},` +
			`{"type":"message","content":[{"text":"Hi","type":"output_text"}]}],"usage":{"input_tokens":3,"output_tokens":4,"output_tokens_details":{"reasoning_tokens":2}}}`},
			result.Call{Chunks: []result.Chunk{{Tokens: 4}}, Text: "shm Hi", Finish: "completed", Usage: &result.Usage{Prompt: 3, Completion: 4, Reasoning: 2}}},
		"one failed answer": {[]string{`{"object":"response","status":"failed","error":{"code":"x","message":"boom"},"output":[]}`}, result.Call{Class: result.StreamError, Error: "boom"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, play(t, BackendResponses, tt.in...)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestAnthropic(t *testing.T) {
	start := `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":3,"cache_read_input_tokens":40,"output_tokens":1}}}`
	block := `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	text := func(s string) string {
		return `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + s + `"}}`
	}
	blockEnd := `{"type":"content_block_stop","index":0}`
	tail := []string{`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`, `{"type":"message_stop"}`}
	usage := &result.Usage{Prompt: 68, Completion: 15, Cached: 40}
	for name, tt := range map[string]struct {
		in   []string
		want result.Call
	}{
		"text": {typedEvents(start, block, `{"type":"ping"}`, text("Hi"), text("!"), blockEnd, tail[0], tail[1]),
			result.Call{Chunks: at(3, 4), Empty: empty(1, 5), Answer: 3 * ms, UsageAt: 6 * ms, Done: 7 * ms, End: 7 * ms, Text: "Hi!", Finish: "end_turn", Usage: usage}},
		"thinking": {typedEvents(start, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm "}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}`, text("a"), tail[0], tail[1]),
			result.Call{Chunks: at(2, 4), Empty: empty(1, 3), Answer: 4 * ms, UsageAt: 5 * ms, Done: 6 * ms, End: 6 * ms, Text: "hm a", Finish: "end_turn", Usage: usage}},
		"tool": {typedEvents(start, `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`, tail[0], tail[1]),
			result.Call{Chunks: at(1, 3), Empty: empty(2), Answer: 1 * ms, UsageAt: 4 * ms, Done: 5 * ms, End: 5 * ms, Finish: "end_turn", Usage: usage}},
		"all usage at the end, as vLLM has it": {typedEvents(`{"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":0}}}`, text("a"),
			`{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"input_tokens":7,"output_tokens":1}}`, tail[1]),
			result.Call{Chunks: at(1), Answer: 1 * ms, UsageAt: 2 * ms, Done: 3 * ms, End: 3 * ms, Text: "a", Finish: "max_tokens", Usage: &result.Usage{Prompt: 7, Completion: 1}}},
		"no usage at the end": {typedEvents(start, text("a"), text("b"), `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, tail[1]),
			result.Call{Chunks: at(1, 2), Answer: 1 * ms, Done: 4 * ms, End: 4 * ms, Text: "ab", Finish: "end_turn"}},
		"a new kind of delta": {typedEvents(start, `{"type":"content_block_delta","index":0,"delta":{"type":"musing_delta","musing":"x"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"musing_delta","musing":"y"}}`, tail[0], tail[1]),
			result.Call{Chunks: at(1, 2), UsageAt: 3 * ms, Done: 4 * ms, End: 4 * ms, Finish: "end_turn", Field: "musing", Usage: usage}},
		"error event": {typedEvents(start, text("a"), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
			result.Call{Chunks: at(1), Answer: 1 * ms, End: 2 * ms, Text: "a", Class: result.StreamError, Error: "overloaded_error: Overloaded"}},
		"early close": {typedEvents(start, text("a"), blockEnd),
			result.Call{Chunks: at(1), Empty: empty(2), Answer: 1 * ms, End: 2 * ms, Text: "a", Class: result.EarlyClose, Error: "the stream ended after 1 tokens without [DONE] or a finish reason"}},
		"one answer": {[]string{`{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm ","signature":"x"},{"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":9}}`},
			result.Call{Chunks: []result.Chunk{{Tokens: 9}}, Text: "hm Hi", Finish: "tool_use", Usage: &result.Usage{Prompt: 5, Completion: 9}}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, play(t, BackendAnthropic, tt.in...)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestSGLang(t *testing.T) {
	event := func(text string, n int, finish string) string {
		return fmt.Sprintf(`{"text":%q,"output_ids":[1,2],"meta_info":{"id":"x","finish_reason":%s,"prompt_tokens":5,"weight_version":"default","total_retractions":0,"completion_tokens":%d,"cached_tokens":4,"e2e_latency":null}}`, text, finish, n)
	}
	usage := func(n int) *result.Usage { return &result.Usage{Prompt: 5, Completion: n, Cached: 4} }
	many := func(list ...result.Chunk) []result.Chunk { return list }
	for name, tt := range map[string]struct {
		in   []string
		want result.Call
	}{
		"text so far": {append(dataEvents(event("a", 1, "null"), event("a bc", 4, "null"), event("a bc", 4, "null"), event("a bcd", 5, `{"type":"length","length":5}`)), done),
			result.Call{Chunks: many(result.Chunk{Tokens: 1}, result.Chunk{At: ms, Tokens: 3, Read: 1}, result.Chunk{At: 3 * ms, Tokens: 1, Read: 3}), Empty: empty(2),
				UsageAt: 3 * ms, Done: 4 * ms, End: 4 * ms, Text: "a bcd", Finish: "length", Usage: usage(5)}},
		"text in pieces": {append(dataEvents(event("a", 1, "null"), event(" b", 2, "null"), event("c", 3, `{"type":"stop","matched":2}`)), done),
			result.Call{Chunks: at(0, 1, 2), UsageAt: 2 * ms, Done: 3 * ms, End: 3 * ms, Text: "a bc", Finish: "stop", Usage: usage(3)}},
		"tokens without text": {append(dataEvents(event("", 1, "null"), event("é", 2, `{"type":"stop"}`)), done),
			result.Call{Chunks: at(0, 1), UsageAt: 1 * ms, Done: 2 * ms, End: 2 * ms, Text: "é", Finish: "stop", Usage: usage(2)}},
		"no counts": {append(dataEvents(`{"text":"a"}`, `{"text":"ab","meta_info":{}}`, `{"text":"","meta_info":{"finish_reason":"stop"}}`), done),
			result.Call{Chunks: at(0, 1), Empty: empty(2), Done: 3 * ms, End: 3 * ms, Text: "ab", Finish: "stop"}},
		"aborted": {dataEvents(event("a", 1, "null"), event("a", 1, `{"type":"abort","message":"out of memory","status_code":500}`)),
			result.Call{Chunks: at(0), UsageAt: 0, End: 1 * ms, Text: "a", Class: result.StreamError, Error: "abort: out of memory", Usage: usage(1)}},
		"error": {dataEvents(`{"error":{"message":"The input is longer than the context"}}`), result.Call{Class: result.StreamError, Error: "The input is longer than the context"}},
		"one answer": {[]string{event("a bcd", 5, `{"type":"length","length":5}`)},
			result.Call{Chunks: many(result.Chunk{Tokens: 5}), Text: "a bcd", Finish: "length", Usage: usage(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, play(t, BackendSGLang, tt.in...)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestPooledAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		backend, in string
		want        result.Call
	}{
		"embeddings": {BackendEmbeddings, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-2e-3]}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8,"completion_tokens":0,"prompt_tokens_details":null}}`,
			result.Call{Usage: &result.Usage{Prompt: 8}}},
		"pooling":         {BackendPooling, `{"object":"list","data":[{"data":[[0.1]]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`, result.Call{Usage: &result.Usage{Prompt: 8}}},
		"rerank of vLLM":  {BackendRerank, `{"id":"r","model":"m","usage":{"total_tokens":56},"results":[{"index":1,"document":{"text":"a"},"relevance_score":0.9}]}`, result.Call{Usage: &result.Usage{Prompt: 56}}},
		"of Cohere":       {BackendRerank, `{"results":[{"index":1,"relevance_score":0.9}],"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1},"tokens":{"input_tokens":11}}}`, result.Call{Usage: &result.Usage{Prompt: 11}}},
		"of SGLang":       {BackendRerank, ` [{"score":0.9,"document":"a","index":1,"meta_info":{"prompt_tokens":5}},{"score":0.1,"document":"b","index":0,"meta_info":{"prompt_tokens":6}}]`, result.Call{Usage: &result.Usage{Prompt: 11}}},
		"without a count": {BackendRerank, `[{"score":0.9,"index":0}]`, result.Call{}},
		"score":           {BackendScore, `{"id":"s","object":"list","data":[{"index":0,"object":"score","score":1}],"usage":{"prompt_tokens":17,"total_tokens":17}}`, result.Call{Usage: &result.Usage{Prompt: 17}}},
		"nothing": {BackendEmbeddings, `{"object":"list","data":[ ],"usage":{"prompt_tokens":8}}`,
			result.Call{Usage: &result.Usage{Prompt: 8}, Class: result.BadBody, Error: `the answer holds no vector and no score: {"object":"list","data":[ ],"usage":{"prompt_tokens":8}}`}},
		"another API's": {BackendEmbeddings, `{"choices":[{"text":"a","finish_reason":"stop"}]}`, result.Call{Class: result.BadBody, Error: `the answer holds no vector and no score: {"choices":[{"text":"a","finish_reason":"stop"}]}`}},
		"error":         {BackendScore, `{"error":{"message":"The model does not support Score API","type":"BadRequestError","code":400}}`, result.Call{Class: result.StreamError, Error: "BadRequestError: The model does not support Score API"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, play(t, tt.backend, tt.in)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestChatStamps: what carries no token is stamped beside what does.
func TestChatStamps(t *testing.T) {
	text := func(s, usage string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"` + s + `"}}],"usage":` + usage + "}\n\n"
	}
	late := usage(3, 2)
	for name, tt := range map[string]struct {
		in   []string
		want result.Call
	}{
		"usage before the end": {[]string{role, word("a"), word(""), word("b"), finish, late, done},
			result.Call{Chunks: at(1, 3), Empty: empty(0, 2, 4), Answer: 1 * ms, UsageAt: 5 * ms, Done: 6 * ms, End: 6 * ms, Text: "ab", Finish: "stop", Usage: &result.Usage{Prompt: 3, Completion: 2}}},
		"usage after the end": {[]string{word("a"), finish, done, late},
			result.Call{Chunks: at(0), Empty: empty(1), Done: 2 * ms, End: 2 * ms, Text: "a", Finish: "stop"}},
		"usage in every chunk": {[]string{text("a", `{"prompt_tokens":3,"completion_tokens":1}`), text("bc", `{"prompt_tokens":3,"completion_tokens":3}`), done},
			result.Call{Chunks: []result.Chunk{{Tokens: 1}, {At: ms, Tokens: 2, Read: 1}}, UsageAt: 1 * ms, Done: 2 * ms, End: 2 * ms, Text: "abc", Usage: &result.Usage{Prompt: 3, Completion: 3}}},
		"a new field's first event is no empty one": {[]string{role, "data: {\"choices\":[{\"delta\":{\"thinking\":\"x\"}}]}\n\n", "data: {\"choices\":[{\"delta\":{\"thinking\":\"y\"}}]}\n\n", done},
			result.Call{Chunks: at(1, 2), Empty: empty(0), Done: 3 * ms, End: 3 * ms, Field: "thinking"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, play(t, BackendChat, tt.in...)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestBodies(t *testing.T) {
	const stream = `"stream":true,"stream_options":{"include_usage":true}`
	chatty := workload.Request{System: "s", History: []workload.Message{{Role: "user", Content: "q"}, {Role: "assistant", Content: "a"}}, Prompt: "p", Output: 5, EOS: true}
	seeing := workload.Request{Prompt: "p", Images: []string{"data:image/png;base64,iVBO", "http://h/i.png"}, Output: 5, EOS: true}
	ids := workload.Request{IDs: []int32{1, 22, 3}, Prompt: "not sent", Output: 5}
	docs := workload.Request{Prompt: "q", Documents: []string{"a", "b"}, Output: 5}
	own := workload.Request{Prompt: "p", Model: "lora", EOS: true, Fields: json.RawMessage(`{"tools":[{"type":"function"}],"temperature":0.5,"top_p":null}`)}
	warm := Config{Model: "m", Sampling: Sampling{Temperature: new(1.0), TopP: new(0.9)}}
	for name, tt := range map[string]struct {
		backend string
		cfg     Config
		r       workload.Request
		want    string
	}{
		"chat":            {BackendChat, Config{}, chatty, `{` + stream + `,"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"p"}],"max_completion_tokens":5}`},
		"chat, images":    {BackendChat, Config{}, seeing, `{` + stream + `,"messages":[{"role":"user","content":[{"type":"text","text":"p"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}},{"type":"image_url","image_url":{"url":"http://h/i.png"}}]}],"max_completion_tokens":5}`},
		"chat, own":       {BackendChat, warm, own, `{` + stream + `,"model":"lora","temperature":0.5,"tools":[{"type":"function"}],"messages":[{"role":"user","content":"p"}]}`},
		"own and extra":   {BackendChat, Config{Model: "m", ExtraBody: json.RawMessage(`{"temperature":0,"model":"x"}`)}, own, `{` + stream + `,"model":"x","temperature":0,"tools":[{"type":"function"}],"messages":[{"role":"user","content":"p"}]}`},
		"own, one answer": {BackendChat, Config{}, workload.Request{Prompt: "p", EOS: true, Fields: json.RawMessage(`{"stream":false}`)}, `{"stream":false,"messages":[{"role":"user","content":"p"}]}`},
		"one answer":      {BackendChat, Config{ExtraBody: json.RawMessage(`{"stream":false}`)}, workload.Request{Prompt: "p", EOS: true}, `{"stream":false,"messages":[{"role":"user","content":"p"}]}`},
		"completions":     {BackendVLLM, Config{}, ids, `{` + stream + `,"prompt":[1,22,3],"max_tokens":5,"ignore_eos":true}`},
		"conversation":    {BackendCompletions, Config{}, chatty, `{` + stream + `,"prompt":"s\nq\na\np","max_tokens":5}`},

		"responses":         {BackendResponses, Config{Model: "m"}, workload.Request{Prompt: "p", System: "s", Output: 5}, `{"model":"m","stream":true,"store":false,"instructions":"s","input":"p","max_output_tokens":5,"ignore_eos":true}`},
		"responses, turns":  {BackendResponses, Config{}, chatty, `{"stream":true,"store":false,"instructions":"s","input":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"p"}],"max_output_tokens":5}`},
		"responses, images": {BackendResponses, Config{}, seeing, `{"stream":true,"store":false,"input":[{"role":"user","content":[{"type":"input_text","text":"p"},{"type":"input_image","image_url":"data:image/png;base64,iVBO"},{"type":"input_image","image_url":"http://h/i.png"}]}],"max_output_tokens":5}`},

		"anthropic":         {BackendAnthropic, warm, chatty, `{"model":"m","stream":true,"temperature":1,"top_p":0.9,"system":"s","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"p"}],"max_tokens":5}`},
		"anthropic, images": {BackendAnthropic, Config{}, seeing, `{"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"p"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}},{"type":"image","source":{"type":"url","url":"http://h/i.png"}}]}],"max_tokens":5}`},

		"sglang":        {BackendSGLang, warm, workload.Request{Prompt: "p", Output: 5, Model: "lora"}, `{"stream":true,"lora_path":"lora","text":"p","sampling_params":{"temperature":1,"top_p":0.9,"max_new_tokens":5,"ignore_eos":true}}`},
		"sglang, ids":   {BackendSGLang, Config{}, ids, `{"stream":true,"input_ids":[1,22,3],"sampling_params":{"max_new_tokens":5,"ignore_eos":true}}`},
		"sglang, image": {BackendSGLang, Config{}, workload.Request{Prompt: "p", Images: []string{"http://h"}, EOS: true}, `{"stream":true,"text":"p","image_data":["http://h"],"sampling_params":{}}`},
		"sglang, extra": {BackendSGLang, Config{ExtraBody: json.RawMessage(`{"sampling_params":{"n":1,"ignore_eos":false},"return_logprob":true}`)}, workload.Request{Prompt: "p", Output: 5},
			`{"stream":true,"return_logprob":true,"text":"p","sampling_params":{"ignore_eos":false,"n":1,"max_new_tokens":5}}`},

		"embeddings":       {BackendEmbeddings, Config{Model: "m"}, workload.Request{Prompt: "p", Output: 5}, `{"model":"m","input":"p"}`},
		"embeddings, list": {BackendEmbeddings, Config{}, docs, `{"input":["q","a","b"]}`},
		"embeddings, ids":  {BackendEmbeddings, Config{}, ids, `{"input":[1,22,3]}`},
		"pooling":          {"vllm-pooling", Config{}, docs, `{"input":["q","a","b"]}`},
		"rerank":           {"vllm-rerank", Config{ExtraBody: json.RawMessage(`{"top_n":1}`)}, docs, `{"top_n":1,"query":"q","documents":["a","b"]}`},
		"rerank, warm-up":  {BackendRerank, Config{}, workload.Request{Prompt: "p"}, `{"query":"p","documents":["p"]}`},
		"score":            {BackendScore, Config{}, docs, `{"text_1":"q","text_2":["a","b"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.BaseURL, tt.cfg.Backend = "http://h", tt.backend
			c, err := New(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			got := string(c.body.build(tt.r))
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if !json.Valid([]byte(got)) || repeats([]byte(got)) {
				t.Error("not JSON, or a key twice")
			}
		})
	}
}

func TestBackendOf(t *testing.T) {
	for endpoint, want := range map[string]string{
		"": BackendCompletions, "/v1/completions": BackendCompletions, "/x/chat/completions": BackendChat, "/v1/responses": BackendResponses,
		"/v1/messages": BackendAnthropic, "/generate": BackendSGLang, "/v1/embeddings": BackendEmbeddings, "/v2/rerank": BackendRerank,
		"/v1/score": BackendScore, "/pooling": BackendPooling, "/odd": BackendCompletions,
	} {
		if got := BackendOf(endpoint); got != want {
			t.Errorf("%q is of %s, want %s", endpoint, got, want)
		}
	}
	for _, d := range dialects() {
		c, err := New(Config{BaseURL: "http://h/v1", Backend: d.name})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.endpoint.String(); got != "http://h"+d.path || BackendOf(d.path) != d.name {
			t.Errorf("%s asks %s, which is %s's", d.name, got, BackendOf(d.path))
		}
	}
}

func TestHeadersOfMessages(t *testing.T) {
	c, err := New(Config{BaseURL: "http://h", Backend: BackendAnthropic, APIKey: "sk-0123456789", Headers: map[string]string{"anthropic-version": "2030-01-01"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer sk-0123456789", "X-Api-Key": "sk-0123456789", "Anthropic-Version": "2030-01-01", "Accept": "text/event-stream",
	} {
		if got := c.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	c, err = New(Config{BaseURL: "http://h", Backend: BackendAnthropic})
	if err != nil {
		t.Fatal(err)
	}
	if _, there := c.header["X-Api-Key"]; there || c.header.Get("Anthropic-Version") != anthropicVersion {
		t.Errorf("headers without a key: %v", c.header)
	}
}

func TestAccepts(t *testing.T) {
	ids, docs := workload.Request{IDs: []int32{1}, Output: 1}, workload.Request{Prompt: "p", Documents: []string{"d"}, Output: 1}
	image, plain := workload.Request{Images: []string{"i"}, Output: 1}, workload.Request{Prompt: "p", Output: 1}
	for _, tt := range []struct {
		backend string
		r       workload.Request
		want    string // "": accepted
	}{
		{BackendChat, plain, ""}, {BackendChat, image, ""}, {BackendChat, ids, "takes no token ids"}, {BackendChat, docs, "takes no documents"},
		{BackendVLLM, ids, ""}, {BackendVLLM, image, "backend vllm takes no images"},
		{BackendSGLang, ids, ""}, {BackendSGLang, image, ""},
		{BackendRerank, docs, ""}, {BackendRerank, plain, "needs documents"}, {BackendScore, plain, "needs documents"},
		{BackendEmbeddings, docs, ""}, {BackendEmbeddings, plain, ""}, {BackendEmbeddings, workload.Request{IDs: []int32{1}, Documents: []string{"d"}}, "not both"},
		{BackendAnthropic, plain, ""}, {BackendAnthropic, workload.Request{Prompt: "p"}, "needs a number of output tokens"},
		{BackendChat, workload.Request{Fields: json.RawMessage(`[1]`)}, "not a JSON object"},
	} {
		c, err := New(Config{BaseURL: "http://h", Backend: tt.backend})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Accepts(tt.r)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.backend, err, tt.want)
		}
	}
}

// TestDialectsAllocate: an event that carries a token costs no allocation in
// any API that streams.
func TestDialectsAllocate(t *testing.T) {
	for backend, event := range streamedTokens() {
		var call result.Call
		call.Chunks = make([]result.Chunk, 0, 1<<12)
		s := newStream(&call, dialectOf(t, backend), false)
		p := []byte(event)
		feed := func() {
			s.kept0()
			s.feed(p, 1, 1)
			s.kept0()
			s.feed(p[:40], 2, 2)
			s.feed(p[40:], 3, 3)
		}
		feed()
		if n := testing.AllocsPerRun(500, feed); n != 0 {
			t.Errorf("%s: %v allocations", backend, n)
		}
		if call.Class != result.OK || len(call.Chunks) < 1000 {
			t.Errorf("%s: class %q (%s) after %d chunks", backend, call.Class, call.Error, len(call.Chunks))
		}
	}
}

// kept0 makes the next event a token of an API that counts them.
func (s *stream) kept0() { s.scan.state.seen = 0 }

// streamedTokens are events of one token as servers write them.
func streamedTokens() map[string]string {
	return map[string]string{
		BackendChat:      chunkOfVLLM,
		BackendResponses: typedEvent(textDelta(" token")),
		BackendAnthropic: typedEvent(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}`),
		BackendSGLang:    `data: {"text":" token","output_ids":[3974],"meta_info":{"id":"9a","finish_reason":null,"prompt_tokens":5,"completion_tokens":1,"cached_tokens":0}}` + "\n\n",
	}
}

func BenchmarkDialects(b *testing.B) {
	for backend, event := range streamedTokens() {
		b.Run(backend, func(b *testing.B) {
			p := []byte(event)
			call := result.Call{Chunks: make([]result.Chunk, 0, 1<<10)}
			s := newStream(&call, dialectOf(b, backend), false)
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				s.kept0()
				call.Chunks = call.Chunks[:0]
				if !s.feed(p, 1, 1) || len(call.Chunks) != 1 {
					b.Fatal(call.Error)
				}
			}
		})
	}
}
