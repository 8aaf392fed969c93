package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"perflab/internal/result"

	"github.com/google/go-cmp/cmp"
)

// outline is what every API's object says, in values that can be compared.
type outline struct {
	Token, Answer, Choices, Whole, End, Failed bool
	Finish, Unknown                            string
	Usage                                      *result.Usage
	Guesses                                    *result.Speculation
}

// tree is a JSON object by encoding/json; what is not there is empty.
type tree map[string]any

func branch(v any) tree             { m, _ := v.(map[string]any); return m }
func (o tree) in(key string) tree   { return branch(o[key]) }
func (o tree) text(k string) string { s, _ := o[k].(string); return s }
func (o tree) items(k string) []any { l, _ := o[k].([]any); return l }

func (o tree) has(key string) bool { _, ok := o[key]; return ok }

// count reads a whole number that may be a count of tokens.
func (o tree) count(key string) (int, bool) {
	n, isNumber := o[key].(json.Number)
	i, err := n.Int64()
	if !isNumber || err != nil || n[0] == '-' || i > maxCount {
		return 0, false
	}
	return int(i), true
}

func (w *outline) mark(answer bool) { w.Token, w.Answer = true, w.Answer || answer }

// says marks a field of text: a string, or a list of parts.
func (w *outline) says(o tree, key string, answer bool) {
	if o.text(key) != "" || len(o.items(key)) > 0 {
		w.mark(answer)
	}
}

func (w *outline) makes(o tree, keys ...string) {
	for _, k := range keys {
		if o.text(k) != "" {
			w.mark(true)
		}
	}
}

func (w *outline) fault(o tree) {
	if e := o["error"]; e != nil && e != "" && e != false || o.text("object") == "error" {
		w.Failed = true
	}
}

// oracles read an object of each API but chat, which has its own.
var oracles = map[string]func(w *outline, o tree){
	BackendResponses: responsesOracle, BackendAnthropic: anthropicOracle, BackendSGLang: sglangOracle,
}

func responsesOracle(w *outline, o tree) {
	kind, delta := o.text("type"), o.text("delta")
	state := tree{}
	for _, from := range []tree{o, o.in("response")} {
		w.fault(from)
		for _, k := range []string{"status", "incomplete_details", "usage"} {
			if from.has(k) {
				state[k] = from[k]
			}
		}
	}
	u := state.in("usage")
	in, hasIn := u.count("input_tokens")
	out, hasOut := u.count("output_tokens")
	cached, _ := u.in("input_tokens_details").count("cached_tokens")
	reasoning, _ := u.in("output_tokens_details").count("reasoning_tokens")
	if hasIn && hasOut {
		w.Usage = &result.Usage{Prompt: in, Completion: out, Cached: cached, Reasoning: reasoning}
	}
	w.Choices = o.has("output_index") || len(o.items("output")) > 0
	for _, i := range o.items("output") {
		item := branch(i)
		w.makes(item, "name", "arguments", "input")
		for _, p := range append(item.items("content"), item.items("summary")...) {
			part := branch(p)
			kind := part.text("type")
			if part.text("text")+part.text("refusal") != "" {
				w.mark(!strings.HasPrefix(kind, "reasoning") && !strings.HasPrefix(kind, "summary"))
			}
		}
	}
	item := o.in("item")
	if kind == "response.output_item.added" {
		w.makes(item, "name", "arguments", "input")
	}
	known := strings.TrimSuffix(strings.TrimPrefix(kind, "response."), ".delta")
	switch {
	case kind == "response.completed" || kind == "response.incomplete" || kind == "response.done" || kind == "":
		w.End = kind != ""
		w.Finish = state.text("status")
		w.Failed = w.Failed || w.Finish == "failed" || w.Finish == "cancelled"
		if r := state.in("incomplete_details").text("reason"); r != "" {
			w.Finish = r
		}
	case kind == "response.failed" || kind == "response.cancelled" || kind == "error":
		w.Failed = true
	case delta == "" || !strings.HasSuffix(kind, ".delta"):
	case kind != "response."+known+".delta":
		w.Unknown = kind
	case known == "output_text" || known == "refusal":
		w.mark(true)
	case known == "reasoning_text" || known == "reasoning_summary_text" || known == "reasoning" || known == "reasoning_summary":
		w.mark(false)
	case slices.Contains([]string{"function_call_arguments", "custom_tool_call_input", "mcp_call_arguments", "mcp_call.arguments", "code_interpreter_call_code",
		"audio", "audio.transcript", "output_audio", "output_audio_transcript"}, known):
		w.mark(true)
	default:
		w.Unknown = kind
	}
}

func anthropicOracle(w *outline, o tree) {
	w.fault(o)
	w.Failed = w.Failed || o.text("type") == "error"
	w.End = o.text("type") == "message_stop"
	w.Choices = o.has("index") || len(o.items("content")) > 0
	w.Finish = o.text("stop_reason")
	if f := o.in("delta").text("stop_reason"); f != "" {
		w.Finish = f
	}
	for _, b := range append(o.items("content"), o["content_block"]) {
		block := branch(b)
		w.says(block, "text", true)
		w.says(block, "thinking", false)
		w.makes(block, "name")
	}
	delta := o.in("delta")
	w.says(delta, "text", true)
	w.says(delta, "thinking", false)
	w.makes(delta, "partial_json")
	for k := range delta {
		if !slices.Contains([]string{"text", "thinking", "partial_json", "stop_reason", "type", "signature", "stop_sequence"}, k) && k != "" && delta.text(k) != "" {
			w.Unknown = "some"
		}
	}
	var u result.Usage
	seen := false
	for _, from := range []tree{o.in("message").in("usage"), o.in("usage")} {
		for key, to := range map[string]*int{"input_tokens": &u.Reasoning, "cache_creation_input_tokens": &u.Prompt, "cache_read_input_tokens": &u.Cached} {
			if n, ok := from.count(key); ok {
				*to, seen = n, true
			}
		}
	}
	if n, ok := o.in("usage").count("output_tokens"); ok && seen {
		w.Usage = &result.Usage{Prompt: u.Reasoning + u.Prompt + u.Cached, Completion: n, Cached: u.Cached}
	}
}

func sglangOracle(w *outline, o tree) {
	w.fault(o)
	meta := o.in("meta_info")
	w.Choices = o.has("text") || o.has("meta_info")
	w.Finish = meta.text("finish_reason")
	if f := meta.in("finish_reason").text("type"); f != "" {
		w.Finish = f
		w.Failed = w.Failed || f == "abort"
	}
	in, hasIn := meta.count("prompt_tokens")
	out, hasOut := meta.count("completion_tokens")
	cached, _ := meta.count("cached_tokens")
	reasoning, _ := meta.count("reasoning_tokens")
	if hasIn && hasOut {
		w.Usage = &result.Usage{Prompt: in, Completion: out, Cached: cached, Reasoning: reasoning}
	}
	w.Guesses, _ = guessesBy(meta)
	if hasOut && out > 0 || !hasOut && (o.text("text") != "" || len(o.items("output_ids")) > 0) {
		w.mark(true)
	}
}

// sketch is what the scanner says.
func sketch(t testing.TB, backend string, in []byte) (w outline, ok bool) {
	s := scanner{grammar: dialectOf(t, backend).grammar}
	if !s.parse(in, nil) {
		return w, false
	}
	w = outline{
		Token: s.c.token, Answer: s.c.answer, Choices: s.c.choices, Whole: s.c.whole, End: s.c.end, Failed: s.c.failure != nil,
		Finish: unescaped(s.c.finish), Unknown: unescaped(s.c.unknown),
	}
	if s.c.counted {
		w.Usage = &s.c.usage
	}
	w.Guesses = s.told()
	if backend == BackendAnthropic && w.Unknown != "" {
		w.Unknown = "some"
	}
	return w, true
}

// twoPlaces reports whether an object says one thing in two places, which no
// server does: which of them counts is not defined.
func twoPlaces(backend string, o tree) bool {
	twice := func(a, b tree, keys ...string) bool {
		for _, k := range keys {
			if a.has(k) && b.has(k) {
				return true
			}
		}
		return false
	}
	switch backend {
	case BackendSGLang:
		_, single := guessesBy(o.in("meta_info"))
		return !single
	case BackendResponses:
		return twice(o, o.in("response"), "status", "incomplete_details", "usage")
	case BackendAnthropic:
		return twice(o, o.in("delta"), "stop_reason") || twice(o, o.in("message"), "usage")
	}
	return false
}

// escapedDelta reports whether a type that is judged is written with escapes:
// no server does that either, and the scanner does not undo them.
func escapedDelta(in []byte) bool { return bytes.Contains(in, []byte(`\`)) }

// FuzzDialects: of every API that streams the scanner accepts what encoding/json accepts and
// reads the same out of it.
func FuzzDialects(f *testing.F) {
	backends := []string{BackendResponses, BackendAnthropic, BackendSGLang}
	for _, in := range []string{
		completed("response.incomplete", "incomplete", `{"reason":"max_output_tokens"}`), textDelta("a"), created,
		`{"type":"response.new.delta","delta":"x"}`, `{"type":"response.output_item.added","output_index":0,"item":{"name":"f"}}`,
		`{"status":"completed","output":[{"content":[{"text":"a","type":"reasoning_text"}]},{"name":"f"}]}`,
		`{"type":"error","error":{"message":"x"}}`,
		`{"type":"message_start","message":{"usage":{"input_tokens":1,"cache_read_input_tokens":2,"output_tokens":1}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"thinking":"a","new":"b","partial_json":""}}`,
		`{"content":[{"text":[1]},{"name":"f"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}`,
		`{"text":"a","output_ids":[1],"meta_info":{"prompt_tokens":1,"completion_tokens":2,"finish_reason":{"type":"abort"}}}`,
		endOfSGLang, endOfOldSGLang,
		`[`, `[]`,
	} {
		for i := range backends {
			f.Add([]byte(in), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, which uint8) {
		backend := backends[int(which)%len(backends)]
		got, ok := sketch(t, backend, in)
		var v any
		dec := json.NewDecoder(bytes.NewReader(in))
		dec.UseNumber()
		valid := json.Valid(in) && dec.Decode(&v) == nil
		object, isObject := v.(map[string]any)
		if want := valid && isObject; ok != want {
			t.Fatalf("%s: accepted: %v, by encoding/json: %v", backend, ok, want)
		}
		if !ok || !isObject || repeats(in) || twoPlaces(backend, object) || escapedDelta(in) {
			return
		}
		var want outline
		oracles[backend](&want, object)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s (-want +got):\n%s", backend, d)
		}
	})
}
