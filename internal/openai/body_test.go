package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"perflab/internal/workload"

	"github.com/google/go-cmp/cmp"
)

func TestBody(t *testing.T) {
	const stream = `"stream":true,"stream_options":{"include_usage":true}`
	for name, tt := range map[string]struct {
		cfg  Config
		r    workload.Request
		want string
	}{
		"chat": {Config{Backend: BackendChat, Model: "m"}, workload.Request{Prompt: "a\"b\n", Output: 5},
			`{"model":"m",` + stream + `,"messages":[{"role":"user","content":"a\"b\n"}],"max_completion_tokens":5,"ignore_eos":true}`},
		"completions": {Config{Backend: BackendVLLM, Model: "m"}, workload.Request{Prompt: "p", EOS: true},
			`{"model":"m",` + stream + `,"prompt":"p"}`},
		"sampling": {Config{Sampling: Sampling{Temperature: new(0.0), TopP: new(0.9), TopK: new(3)}}, workload.Request{Prompt: "p", Output: 1, EOS: true},
			`{` + stream + `,"temperature":0,"top_p":0.9,"top_k":3,"prompt":"p","max_tokens":1}`},
		"extra": {Config{Model: "m", Sampling: Sampling{Temperature: new(1.0)}, ExtraBody: json.RawMessage(`{"z":{"a":[1]},"temperature":0.5,"stream":false,"stream_options":null}`)}, workload.Request{Prompt: "p", EOS: true},
			`{"model":"m","stream":false,"temperature":0.5,"z":{"a":[1]},"prompt":"p"}`},
		"extra replaces what differs": {Config{Backend: BackendChat, ExtraBody: json.RawMessage(`{"messages":[],"max_completion_tokens":null,"max_tokens":9,"ignore_eos":false}`)}, workload.Request{Prompt: "p", Output: 1},
			`{` + stream + `,"ignore_eos":false,"max_tokens":9,"messages":[]}`},
		"extra takes all away": {Config{ExtraBody: json.RawMessage(`{"stream":null,"stream_options":null}`)}, workload.Request{Prompt: "p", EOS: true}, `{"prompt":"p"}`},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.BaseURL = "http://h"
			c, err := New(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			got := string(c.body.build(tt.r))
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if !json.Valid([]byte(got)) {
				t.Error("not JSON")
			}
		})
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\"\\\n\r\t\x00\x1f\x7f é \u2028 😀 \xff\xc3")
	f.Fuzz(func(t *testing.T, in string) {
		b := appendString(nil, in)
		var got string
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if want := string([]rune(in)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  Config
		want string
	}{
		"no URL":       {Config{}, `base URL "" is not of the form http://host:port`},
		"no scheme":    {Config{BaseURL: "localhost:8000"}, `base URL "localhost:8000" is not of the form http://host:port`},
		"user":         {Config{BaseURL: "http://u:secret@h"}, "base URL holds a user name"},
		"broken":       {Config{BaseURL: "http://u:secret@h:x"}, "base URL: invalid port"},
		"query":        {Config{BaseURL: "http://h/?a=secret"}, `base URL "http://h/" has a query`},
		"empty query":  {Config{BaseURL: "http://h?"}, "has a query"},
		"empty anchor": {Config{BaseURL: "http://h#"}, "has a query or a fragment"},
		"key":          {Config{BaseURL: "http://h", APIKey: "secret\n"}, "the API key holds a line break"},
		"header name":  {Config{BaseURL: "http://h", Headers: map[string]string{"Authorization: Bearer c2VjcmV0": "="}}, "name of a header (not shown: it may hold a value)"},
		"header":       {Config{BaseURL: "http://h", Headers: map[string]string{"X-A": "secret\r"}}, `the value of header "X-A" holds a line break`},
		"header ours":  {Config{BaseURL: "http://h", Headers: map[string]string{"content-length": "secret"}}, `header "content-length" says how requests are sent`},
		"no host":      {Config{BaseURL: "http://h", Headers: map[string]string{"host": "http://secret"}}, "the value of header Host is no host name"},
		"backend":      {Config{BaseURL: "http://h", Backend: "tgi"}, `backend "tgi" is not known: use openai-chat, openai, openai-responses`},
		"chat mix":     {Config{BaseURL: "http://h", Backend: BackendChat, Endpoint: "/v1/completions"}, "needs an endpoint that ends in /chat/completions"},
		"other mix":    {Config{BaseURL: "http://h", Backend: BackendCompletions, Endpoint: "/v1/chat/completions"}, "use backend openai-chat for that"},
		"endpoint":     {Config{BaseURL: "http://h", Endpoint: "v1/completions"}, "does not begin with a slash"},
		"extra":        {Config{BaseURL: "http://h", ExtraBody: json.RawMessage(`[1]`)}, `extra body "[1]" is not a JSON object`},
		"extra broken": {Config{BaseURL: "http://h", ExtraBody: json.RawMessage(`{"a":`)}, "is not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

func TestURLs(t *testing.T) {
	for _, tt := range []struct{ base, endpoint, want string }{
		{"http://h:1", "", "http://h:1/v1/completions"},
		{"http://h:1/", "/v1/chat/completions", "http://h:1/v1/chat/completions"},
		{"http://h:1/v1", "", "http://h:1/v1/completions"},
		{"http://h:1/v1/", "", "http://h:1/v1/completions"},
		{"https://h/proxy/v1", "", "https://h/proxy/v1/completions"},
	} {
		c, err := New(Config{BaseURL: tt.base, Endpoint: tt.endpoint})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.endpoint.String(); got != tt.want {
			t.Errorf("%s + %s = %s, want %s", tt.base, tt.endpoint, got, tt.want)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	cfg := Config{BaseURL: "http://h", APIKey: "sk-secret", Headers: map[string]string{"Authorization": "Basic secret"}, ExtraBody: json.RawMessage(`{"api_key": "secret"}`)}
	j, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		string(j), fmt.Sprint(cfg), fmt.Sprintf("%v %+v %#v %s", cfg, cfg, &cfg, &cfg), fmt.Sprintf("%+v", struct{ C Config }{cfg}),
	} {
		if strings.Contains(s, "secret") || !strings.Contains(s, "http://h") {
			t.Errorf("printed as %s", s)
		}
	}
	if cfg.Headers["Authorization"] != "Basic secret" {
		t.Error("printing changed the headers")
	}
}
