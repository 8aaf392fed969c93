package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"perflab/internal/result"

	"github.com/google/go-cmp/cmp"
)

// said is a chunk in values that can be compared.
type said struct {
	Token, Answer                  bool
	Finish, Text, Unknown, Failure string
	Usage                          *result.Usage
	Guesses                        *result.Speculation
}

func scan(b []byte) (said, bool) {
	s := scanner{grammar: chat().grammar, keep: true}
	if !s.parse(b, nil) {
		return said{}, false
	}
	return saidBy(&s), true
}

func saidBy(s *scanner) said {
	got := said{
		Token: s.c.token, Answer: s.c.answer, Finish: unescaped(s.c.finish), Text: string(s.text),
		Unknown: string([]rune(string(s.c.unknown))), Failure: string(s.c.failure),
	}
	if s.c.counted {
		got.Usage = &s.c.usage
	}
	got.Guesses = s.told()
	return got
}

func TestScanner(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want said
	}{
		"role":             {`{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, said{}},
		"content":          {`{"id":"x","choices":[{"delta":{"content":"a\"\u00e9\ud83d\ude00\n"}}]}`, said{Token: true, Answer: true, Text: "a\"é😀\n"}},
		"reasoning":        {`{"choices":[{"delta":{"reasoning":"hm"}}]}`, said{Token: true, Text: "hm"}},
		"old reasoning":    {`{"choices":[{"delta":{"content":null,"reasoning_content":"hm"}}]}`, said{Token: true, Text: "hm"}},
		"both":             {`{"choices":[{"delta":{"content":"b","reasoning":"a"}}]}`, said{Token: true, Answer: true, Text: "ba"}},
		"refusal":          {`{"choices":[{"delta":{"refusal":"no"}}]}`, said{Token: true, Answer: true, Text: "no"}},
		"text":             {`{"choices":[{"text":" a","logprobs":{"tokens":["x"]}}]}`, said{Token: true, Answer: true, Text: " a"}},
		"second choice":    {`{"choices":[{"delta":{}},{"delta":{"content":"x"}}]}`, said{Token: true, Answer: true, Text: "x"}},
		"parts":            {`{"choices":[{"delta":{"content":[{"type":"text","text":"x"}]}}]}`, said{Token: true, Answer: true}},
		"no parts":         {`{"choices":[{"delta":{"content":[ ]}}]}`, said{}},
		"tool name":        {`{"choices":[{"delta":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":""}}]}}]}`, said{Token: true, Answer: true}},
		"tool arguments":   {`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}`, said{Token: true, Answer: true}},
		"empty tool call":  {`{"choices":[{"delta":{"tool_calls":[{"id":"c","function":{"arguments":""}}]}}]}`, said{}},
		"function call":    {`{"choices":[{"delta":{"function_call":{"arguments":"{"}}}]}`, said{Token: true, Answer: true}},
		"audio":            {`{"choices":[{"delta":{"audio":{"id":"a","data":"UklG"}}}]}`, said{Token: true, Answer: true}},
		"audio id":         {`{"choices":[{"delta":{"audio":{"id":"a"}}}]}`, said{}},
		"finish":           {`{"choices":[{"delta":{},"finish_reason":"length"}]}`, said{Finish: "length"}},
		"new field":        {`{"choices":[{"delta":{"role":"assistant","th\u0069nking":"x"}}]}`, said{Unknown: "thinking"}},
		"usage":            {`{"choices":[],"usage":{"prompt_tokens":3,"total_tokens":8,"completion_tokens":5}}`, said{Usage: &result.Usage{Prompt: 3, Completion: 5}}},
		"usage and choice": {`{"choices":[{"text":"x"}],"usage":{"prompt_tokens":3,"completion_tokens":5}}`, said{Token: true, Answer: true, Text: "x", Usage: &result.Usage{Prompt: 3, Completion: 5}}},
		"usage details": {`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":4}}}`,
			said{Usage: &result.Usage{Prompt: 3, Completion: 5, Cached: 2, Reasoning: 4}}},
		"null details": {`{"usage":{"prompt_tokens":3,"completion_tokens":5,"prompt_tokens_details":null}}`, said{Usage: &result.Usage{Prompt: 3, Completion: 5}}},
		"null usage":   {`{"choices":[{"text":""}],"usage":null}`, said{}},
		"half usage":   {`{"usage":{"prompt_tokens":3}}`, said{}},
		"odd usage":    {`{"usage":{"prompt_tokens":3,"completion_tokens":1.5}}`, said{}},
		"error":        {`{"error":{"message":"boom"}}`, said{Failure: `{"message":"boom"}`}},
		"no error":     {`{"error":null,"choices":[]}`, said{}},
		"error object": {`{"object":"error","message":"boom"}`, said{Failure: `{"object":"error","message":"boom"}`}},
		"whole answer": {`{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`, said{Token: true, Answer: true, Text: "hi", Finish: "stop"}},
		"wrong types":  {`{"choices":{"a":[1]},"usage":[],"object":7}`, said{}},
		"wrong deeper": {`{"choices":[1,{"delta":"x","text":{}},[{}],{"delta":{"content":5,"tool_calls":"x","audio":[]}}]}`, said{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := scan([]byte(tt.in))
			if !ok {
				t.Fatal("not accepted")
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if want, single := oracle(t, []byte(tt.in), got); single {
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("encoding/json differs (-want +got):\n%s", d)
				}
			}
		})
	}
}

func TestScannerRefuses(t *testing.T) {
	for _, in := range []string{
		``, ` `, `x`, `[]`, `"a"`, `null`, `1`, `{`, `{}}`, `{} {}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{"a":01}`, `{"a":1.}`,
		`{"a":.5}`, `{"a":1e}`, `{"a":-}`, `{"a":+1}`, `{"a":tru}`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, "{\"a\":\"\n\"}",
		`{"a":"b`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":1 "b":2}`, `{"a":"\`, strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1),
	} {
		if _, ok := scan([]byte(in)); ok {
			t.Errorf("%.60q was accepted", in)
		}
	}
}

// FuzzScanner: the scanner accepts what encoding/json accepts and reads the
// same out of it.
func FuzzScanner(f *testing.F) {
	for _, in := range []string{
		`{"choices":[{"delta":{"content":"a\ud83d\ude00\ud83d\u0041\b\f\/","tool_calls":[{"function":{"name":"n"}}]},"finish_reason":"sto\u0070"}]}`,
		`{"choices":[{"text":"x"},{"delta":{"thinking":"x"}}],"usage":{"prompt_tokens":3,"completion_tokens":5}}`,
		`{"error":{"a":[1,-2.5e+3,true,false,null]},"object":"chunk"}`,
		endOfVLLM, detailsOfSGLang, endOfLlama,
		"{\"\\u0063hoices\" : [ { \"text\" :\"\xff\" } ]}",
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, ok := scan(in)
		var object map[string]any
		if valid := json.Unmarshal(in, &object) == nil && object != nil; ok != valid {
			t.Fatalf("accepted: %v, by encoding/json: %v", ok, valid)
		}
		if !ok {
			return
		}
		want, single := oracle(t, in, got)
		if !single {
			return
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	})
}

// oracle reads a chunk by encoding/json. single is false where an object has a
// key twice: what such a chunk says is not defined.
func oracle(t *testing.T, in []byte, got said) (want said, single bool) {
	t.Helper()
	if repeats(in) {
		return said{}, false
	}
	dec := json.NewDecoder(bytes.NewReader(in))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var texts, unknown []string
	choices, _ := v["choices"].([]any)
	for _, c := range choices {
		choice, _ := c.(map[string]any)
		want.payload(choice["text"], true, &texts)
		if f, _ := choice["finish_reason"].(string); f != "" {
			want.Finish = f
		}
		for _, name := range []string{"delta", "message"} {
			delta, _ := choice[name].(map[string]any)
			want.delta(delta, &texts, &unknown)
		}
	}
	want.Usage = usageOf(v["usage"])
	if want.Guesses, single = chatGuesses(v); !single {
		return said{}, false
	}
	want.Failure = failureOf(in, v)
	// Order within an object is lost in a map: where more than one field
	// counts, only membership is compared.
	want.Text = strings.Join(texts, "")
	if len(texts) > 1 && len(got.Text) == len(want.Text) {
		want.Text = got.Text
	}
	if slices.Contains(unknown, got.Unknown) {
		want.Unknown = got.Unknown
	} else if len(unknown) > 0 {
		want.Unknown = fmt.Sprint("one of ", unknown)
	}
	return want, true
}

func (w *said) mark(answer bool) { w.Token, w.Answer = true, w.Answer || answer }

func (w *said) payload(v any, answer bool, texts *[]string) {
	switch v := v.(type) {
	case string:
		if v != "" {
			w.mark(answer)
			*texts = append(*texts, v)
		}
	case []any:
		if len(v) > 0 {
			w.mark(answer)
		}
	}
}

func (w *said) delta(delta map[string]any, texts, unknown *[]string) {
	object := func(v any) map[string]any { m, _ := v.(map[string]any); return m }
	filled := func(m map[string]any, keys ...string) {
		for _, k := range keys {
			if s, _ := m[k].(string); s != "" {
				w.mark(true)
			}
		}
	}
	for k, v := range delta {
		switch k {
		case "content", "refusal":
			w.payload(v, true, texts)
		case "reasoning", "reasoning_content":
			w.payload(v, false, texts)
		case "tool_calls":
			calls, _ := v.([]any)
			for _, c := range calls {
				filled(object(object(c)["function"]), "name", "arguments", "input")
				filled(object(object(c)["custom"]), "name", "arguments", "input")
			}
		case "function_call":
			filled(object(v), "name", "arguments", "input")
		case "audio":
			filled(object(v), "data", "transcript")
		case "role", "name", "type", "id", "object":
		default:
			if s, _ := v.(string); s != "" {
				*unknown = append(*unknown, k)
			}
		}
	}
}

func usageOf(v any) *result.Usage {
	m, _ := v.(map[string]any)
	count := func(v any, to *int) bool {
		n, isNumber := v.(json.Number)
		i, err := n.Int64()
		if !isNumber || err != nil || n[0] == '-' || i > maxCount {
			return false
		}
		*to = int(i)
		return true
	}
	var u result.Usage
	in, out := count(m["prompt_tokens"], &u.Prompt), count(m["completion_tokens"], &u.Completion)
	d, _ := m["prompt_tokens_details"].(map[string]any)
	count(d["cached_tokens"], &u.Cached)
	d, _ = m["completion_tokens_details"].(map[string]any)
	count(d["reasoning_tokens"], &u.Reasoning)
	if !in || !out {
		return nil
	}
	return &u
}

func failureOf(in []byte, v map[string]any) string {
	var raw map[string]json.RawMessage
	json.Unmarshal(in, &raw)
	if e := v["error"]; e != nil && e != "" && e != false {
		return string(raw["error"])
	}
	if v["object"] == "error" {
		return string(in)
	}
	return ""
}

// repeats reports whether any object within in has a key twice.
func repeats(in []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(in))
	type level struct {
		keys  map[string]bool // nil: an array
		value bool            // the next token is a value
	}
	var stack []level
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			return false
		}
		top := len(stack) - 1
		switch d, _ := tok.(json.Delim); {
		case d == '}' || d == ']':
			stack = stack[:top]
			continue
		case top >= 0 && stack[top].keys != nil && !stack[top].value:
			key := tok.(string)
			if stack[top].keys[key] {
				return true
			}
			stack[top].keys[key], stack[top].value = true, true
			continue
		}
		if top >= 0 {
			stack[top].value = false
		}
		switch tok {
		case json.Delim('{'):
			stack = append(stack, level{keys: map[string]bool{}})
		case json.Delim('['):
			stack = append(stack, level{})
		}
	}
}
