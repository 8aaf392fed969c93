package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/rundir"
	"perflab/internal/study"
)

// cachedModel makes a Hugging Face cache with the tokenizer of the study's model, whose tokens are
// letters, and returns its path.
func cachedModel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HF_HUB_CACHE", dir)
	path := filepath.Join(dir, "models--Qwen--Qwen3-8B", "snapshots", "0123456789abcdef", "tokenizer.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	copyFile(t, "../bench/testdata/tokenizer.json", path)
	return path
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ofRows is the small study with a workload of a file.
func ofRows(t *testing.T, kind string) string {
	t.Helper()
	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(rows, []byte(`{"prompt": "how are you?", "output_tokens": 2}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("kind: predicted", kind, "dataset_name: random, num_prompts: 10", "dataset_name: jsonl, dataset_path: "+rows+", nonce: a, num_prompts: 10").
		Replace(unchecked(small[:strings.Index(small, "stages:")]) + "strategy: staged\nruntime: {kind: predicted}\nbench: {num_warmups: 0}\n")
}

// chosen is the session of a study after it has looked for tokenizers.
func chosen(t *testing.T, text string, o Options) (*session, error) {
	t.Helper()
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l := newSession(s, o)
	return l, l.chooseTokenizers(t.Context())
}

// TestTokenizerOfStudy: the tokenizer that the cache has as a study begins measures its
// prompts, and is kept. A study that goes on takes the same, whatever the cache has by then.
func TestTokenizerOfStudy(t *testing.T) {
	path := cachedModel(t)
	text := ofRows(t, "kind: process, ready_timeout_s: 10")
	dir, f := tuned(t, text, nil)
	if len(f.Trials) == 0 || len(f.Trials[0].Runs) != 1 {
		t.Fatalf("trials %+v", f.Trials)
	}
	h, err := rundir.ReadHeader(filepath.Join(dir, f.Trials[0].Runs[0].Dir))
	if err != nil || !strings.Contains(h.CountedBy(), "of Qwen/Qwen3-8B in the Hugging Face cache: "+path) || !strings.Contains(string(h.Spec), path) {
		t.Errorf("%v: counted by %q, spec %s", err, h.CountedBy(), h.Spec)
	}
	goOn := func() (*session, error) { return chosen(t, text, Options{Dir: dir, Resume: true}) }
	t.Setenv("HF_HUB_CACHE", t.TempDir()) // another cache
	l, err := goOn()
	if err != nil || l.WorkloadSpec("a", 0).Tokenizer != path {
		t.Errorf("it goes on with %q: %v", l.WorkloadSpec("a", 0).Tokenizer, err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := goOn(); err == nil || !strings.Contains(err.Error(), "were measured by "+path+", which was tokenizer.json sha256:") {
		t.Errorf("it goes on with another file: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := goOn(); err == nil || !strings.Contains(err.Error(), "put it back to go on") {
		t.Errorf("it goes on without the file: %v", err)
	}
}

// TestNoTokenizerOfStudy: one that comes into the cache later is not taken, nor for what a
// simulator counts, for a workload that says otherwise, or where it will not do.
func TestNoTokenizerOfStudy(t *testing.T) {
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	text := ofRows(t, "kind: process, ready_timeout_s: 10")
	dir, _ := tuned(t, text, nil)
	cachedModel(t)
	for name, tt := range map[string]struct {
		text string
		o    Options
	}{
		"resumed":   {text, Options{Dir: dir, Resume: true}},
		"simulated": {strings.Replace(text, "kind: process, ready_timeout_s: 10", "kind: simulated", 1), Options{}},
		"estimate":  {strings.Replace(text, "nonce: a", "nonce: a, tokenizer: estimate", 1), Options{}},
		"no words":  {unchecked(strings.Replace(small, "kind: predicted", "kind: process", 1)), Options{}},
	} {
		l, err := chosen(t, tt.text, tt.o)
		if err != nil || len(l.Tokenizers) > 0 || l.lengths != nil {
			t.Errorf("%s: %v, %s (%v)", name, l.Tokenizers, l.lengths, err)
		}
	}
	if l, err := chosen(t, text, Options{}); err != nil || len(l.Tokenizers) != 1 {
		t.Errorf("a new study has %v (%v)", l.Tokenizers, err)
	}
}
