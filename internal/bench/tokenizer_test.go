package bench

import (
	"encoding/json"
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
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	for name, want := range map[string]string{
		"nowhere.json": "nothing is downloaded: give a tokenizer.json",
		"./a/b":        "nothing is downloaded: give a tokenizer.json",
		"server":       "needs a server that runs already",
		"org/model":    `org/model is no file of this machine, and tokenizer.json of org/model is not in the Hugging Face cache (` + os.Getenv("HF_HUB_CACHE") + `): get it by "hf download org/model tokenizer.json"`,
	} {
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

// hubWith makes a Hugging Face cache with the tokenizer of a model, and returns its path.
func hubWith(t *testing.T, model string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HF_HUB_CACHE", dir)
	repo := filepath.Join(dir, "models--"+strings.ReplaceAll(model, "/", "--"))
	path := filepath.Join(repo, "snapshots", "0123456789abcdef", "tokenizer.json")
	for _, d := range []string{filepath.Dir(path), filepath.Join(repo, "refs")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(letters)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{path: text, filepath.Join(repo, "refs", "main"): []byte("0123456789abcdef")} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestChooseTokenizer: what measures lengths is the file, the cache's, the server or an
// estimate, in this order, and the header says which.
func TestChooseTokenizer(t *testing.T) {
	var simulated, counts bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if simulated {
			w.Header().Set("X-Perflab-Simulated", "1")
		}
		switch {
		case r.URL.Path == "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"org/model"}]}`)
		case r.URL.Path == "/tokenize" && counts:
			fmt.Fprint(w, `{"tokens":[1,2,3]}`)
		case r.URL.Path == "/v1/completions":
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"a\"}],\"usage\":{\"prompt_tokens\":6,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n")
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	cached := hubWith(t, "org/model")
	rows := write(t, "rows.jsonl", `{"prompt":"how are you?","output_tokens":9}`)
	for _, tt := range []struct {
		name, tokenizer, dataset string
		repo                     string
		simulated, counts        bool
		spec                     string // the tokenizer of the header's spec
		from                     string // in Header.CountedBy
		line                     string // in Outcome.CountedBy
		input                    int
		note                     bool
	}{
		{name: "the model's", dataset: "jsonl", spec: cached, from: " of org/model in the Hugging Face cache: " + cached, line: "(by tokenizer.json sha256:", input: 12},
		{name: "of another name's", repo: "org/nothing", dataset: "jsonl", from: "because tokenizer.json of org/nothing is not in the Hugging Face cache", line: "(estimated", input: 4},
		{name: "named", tokenizer: "org/model", dataset: "jsonl", simulated: true, spec: cached, from: " of org/model in the Hugging Face cache: " + cached, line: "(by tokenizer.json", input: 12},
		{name: "a file", tokenizer: letters, dataset: "jsonl", spec: letters, from: "tokenizer.json sha256:", line: "(by tokenizer.json sha256:", input: 12},
		{name: "a simulator's", dataset: "jsonl", simulated: true, from: "an estimate, as the simulated server counts", line: "(estimated; +50.0 % by the server's count)", input: 4},
		{name: "one that has no words", dataset: "random", from: "will not do: 0 of the", line: "(estimated; +50.0 %", input: 4},
		{name: "none, by wish", tokenizer: "estimate", dataset: "jsonl", from: "an estimate, as was asked", line: "(estimated", input: 4},
		{name: "the server's", tokenizer: "org/other", dataset: "jsonl", counts: true, spec: "server", from: "/tokenize of org/model asked because tokenizer.json of org/other is not in", line: "(by server http", input: 3},
		{name: "neither", tokenizer: "org/other", dataset: "jsonl", from: "has no /tokenize (404): in all within 3 %", line: "(estimated; +50.0 %", input: 4, note: true},
	} {
		simulated, counts = tt.simulated, tt.counts
		w := workload.Spec{Dataset: tt.dataset, Tokenizer: tt.tokenizer, NumPrompts: 1}
		if w.Path = rows; tt.dataset == "random" {
			w.Path, w.RandomInputLen, w.RandomOutputLen = "", 4, 9
		}
		b := Runner{Repo: tt.repo, Spec: Spec{Targets: []string{srv.URL}, Backend: "openai", Model: "org/model", Workload: w.Defaults()}}
		if err := b.ChooseTokenizer(t.Context()); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		out, err := b.Run(t.Context())
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var s Spec
		if err := json.Unmarshal(out.Header.Spec, &s); err != nil {
			t.Fatal(err)
		}
		if by := out.Header.CountedBy(); s.Workload.Tokenizer != tt.spec || !strings.Contains(by, tt.from) || !strings.HasPrefix(out.CountedBy(), tt.line) || out.Calls[0].WantIn != tt.input {
			t.Errorf("%s: %d tokens by %q: %s; %s", tt.name, out.Calls[0].WantIn, s.Workload.Tokenizer, by, out.CountedBy())
		}
		if told := strings.Contains(strings.Join(out.Notes, "\n"), "prompt lengths are an estimate, because"); told != tt.note {
			t.Errorf("%s: notes %q", tt.name, out.Notes)
		}
	}
}

// TestChooseTokenizerRefused: ids are not to be had of a server.
func TestChooseTokenizerRefused(t *testing.T) {
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	b := Runner{Spec: Spec{Model: "m", Workload: workload.Spec{Tokenizer: "org/other", RandomIDs: true}}}
	if err := b.ChooseTokenizer(t.Context()); err == nil || !strings.Contains(err.Error(), `get it by "hf download org/other tokenizer.json"`) {
		t.Error(err)
	}
}
