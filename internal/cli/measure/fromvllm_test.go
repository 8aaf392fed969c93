package measure_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/cli/console"
)

// TestFromVLLMBodies: a command line of vllm bench serve sends what vLLM's own client
// sends for it: path, body but for the prompt, and headers.
func TestFromVLLMBodies(t *testing.T) {
	const usual = `"stream":true,"stream_options":{"include_usage":true}`
	for name, tt := range map[string]struct{ args, path, body, header string }{
		"defaults": {"", "/v1/completions", `{"model":"first","max_tokens":128,"ignore_eos":true,"repetition_penalty":1,` + usual + `}`, ""},
		"completions": {
			"--model m --backend vllm --endpoint /v1/completions --random-output-len 4 --top-k 5 --min-p 0.1 --top-p 0.9 --temperature 0 --logprobs 2 --repetition-penalty 1.05 --header X-A=1 X-B=2",
			"/v1/completions",
			`{"model":"m","max_tokens":4,"ignore_eos":true,"top_k":5,"min_p":0.1,"top_p":0.9,"temperature":0,"logprobs":2,"repetition_penalty":1.05,` + usual + `}`, "1 2",
		},
		"chat": {
			`--model m --served-model-name n --backend openai-chat --endpoint /v1/chat/completions --output-len 4 --frequency-penalty 0.5 --presence-penalty -0.5 --logprobs 2 --extra-body {"chat_template_kwargs":{"enable_thinking":false}}`,
			"/v1/chat/completions",
			`{"model":"n","max_completion_tokens":4,"ignore_eos":true,"frequency_penalty":0.5,"presence_penalty":-0.5,"chat_template_kwargs":{"enable_thinking":false},` + usual + `}`, "",
		},
		"an adapter": {"--model m --random-output-len 4 --lora-modules a --ignore-eos", "/v1/completions", `{"model":"a","max_tokens":4,"ignore_eos":true,"repetition_penalty":1,` + usual + `}`, ""},
		"no such penalty": {`--model m --random-output-len 4 --extra-body.repetition_penalty null`, "/v1/completions",
			`{"model":"m","max_tokens":4,"ignore_eos":true,` + usual + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			url, sent := recordOne(t)
			args := append(strings.Fields("serve --num-prompts 1 --random-input-len 8 --base-url "+url+" --out "+filepath.Join(t.TempDir(), "run")), strings.Fields(tt.args)...)
			if code, _, stderr := benchExit(t, args...); code != console.ExitDone && code != console.ExitVoid {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			got := sent()
			if got.path != tt.path || strings.TrimSpace(got.header) != tt.header {
				t.Errorf("path %s, headers %q, want %s, %q", got.path, got.header, tt.path, tt.header)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(tt.body), &want); err != nil {
				t.Fatal(err)
			}
			delete(got.body, "prompt")
			delete(got.body, "messages")
			if d := cmp.Diff(want, got.body); d != "" {
				t.Errorf("body (-want +got):\n%s", d)
			}
		})
	}
}

// request is one that a server got.
type request struct {
	path, header string
	body         map[string]any
}

// recordOne is a server that answers everything, and what it was sent last.
func recordOne(t *testing.T) (url string, sent func() request) {
	var mu sync.Mutex
	var last request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"first"},{"id":"m"},{"id":"n"}]}`)
			return
		case r.Method != http.MethodPost:
			http.NotFound(w, r)
			return
		}
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		last = request{r.URL.Path, r.Header.Get("X-A") + " " + r.Header.Get("X-B"), nil}
		if err := json.Unmarshal(b, &last.body); err != nil {
			t.Error(err)
		}
		mu.Unlock()
		words(3)(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() request { mu.Lock(); defer mu.Unlock(); return last }
}
