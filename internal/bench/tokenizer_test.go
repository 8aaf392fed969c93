package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// letters is a tokenizer whose tokens are single letters and spaces.
const letters = "testdata/tokenizer.json"

// TestTokenizer: prompts are measured by the tokenizer's file, and so is the
// output of a server that counts nothing.
func TestTokenizer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.NotFound(w, r)
			return
		}
		for range 2 {
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"abc d\"}]}\n\n")
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer srv.Close()
	spec := Spec{Targets: []string{srv.URL}, Backend: "openai", Model: "m", Workload: workload.Spec{
		Dataset: "jsonl", Path: write(t, "rows.jsonl", `{"prompt":"how are you?","output_tokens":9}`), Tokenizer: letters,
	}.Defaults()}
	out, err := Runner{Spec: spec}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := out.Calls[0]
	if n, from := c.Output(); c.WantIn != 12 || n != 10 || from != result.FromText || c.Text != "" {
		t.Errorf("%d prompt tokens, %d output tokens from %s, text %q", c.WantIn, n, from, c.Text)
	}
	if !strings.HasPrefix(out.Header.Tokenizer, "tokenizer.json sha256:") {
		t.Errorf("tokenizer %q", out.Header.Tokenizer)
	}
}

// TestTokenizerOfServer: a server that offers /tokenize measures prompts.
func TestTokenizerOfServer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/tokenize":
			fmt.Fprint(w, `{"count":3,"max_model_len":100,"tokens":[1,2,3]}`)
		case "/v1/completions":
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n")
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	spec := Spec{Targets: []string{srv.URL}, Backend: "openai", Model: "m", Workload: workload.Spec{
		Dataset: "jsonl", Path: write(t, "rows.jsonl", `{"prompt":"how are you?","output_tokens":9}`), Tokenizer: "server",
	}.Defaults()}
	out, err := Runner{Spec: spec}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out.Calls[0].WantIn != 3 {
		t.Errorf("%d prompt tokens", out.Calls[0].WantIn)
	}
}

// TestServerIsNotAskedUnderLoad: the server under test counts no tokens between
// the first measured call and the last.
func TestServerIsNotAskedUnderLoad(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		switch r.URL.Path {
		case "/tokenize":
			fmt.Fprint(w, `{"tokens":[1,2,3]}`)
		case "/v1/chat/completions":
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"one two\"}}]}\n\ndata: [DONE]\n\n")
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	rows := `[{"conversations":[{"from":"human","value":"Who?"},{"from":"gpt","value":"I."},{"from":"human","value":"Why?"},{"from":"gpt","value":"So."}]}]`
	spec := Spec{Targets: []string{srv.URL}, Backend: "openai-chat", Model: "m", Workload: workload.Spec{
		Dataset: "conversations", Path: write(t, "rows.json", rows), NumPrompts: 3, History: "generated", Tokenizer: "server",
	}.Defaults()}
	out, err := Runner{Spec: spec}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv.Close() // after which nobody writes to asked
	mu.Lock()
	defer mu.Unlock()
	first, last := slices.Index(asked, "/v1/chat/completions"), len(asked)-1
	for asked[last] != "/v1/chat/completions" {
		last--
	}
	if slices.Contains(asked[first:last], "/tokenize") || last-first != 5 {
		t.Errorf("asked %v", asked[first:])
	}
	for _, c := range out.Calls {
		if n, from := c.Output(); n != 3 || from != result.FromText {
			t.Errorf("call %d has %d tokens from %s", c.Index, n, from)
		}
	}
}

func TestTokenizerFaults(t *testing.T) {
	for name, want := range map[string]string{"nowhere": "nothing is downloaded: give a tokenizer.json", "server": "needs a server that runs already"} {
		if _, _, err := OpenWorkload(workload.Spec{Tokenizer: name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// write makes a file of the test's own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
