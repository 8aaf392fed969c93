package workload

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/workload/imagefile"
)

// moved copies the files of a spec to another place, as another machine gets them.
func moved(t *testing.T, s Spec) Spec {
	t.Helper()
	files, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	places := map[string]string{}
	for _, f := range files {
		content, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		place := filepath.Join(to, f.Key)
		path := filepath.Join(place, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		places[f.Key] = place
	}
	return s.At(places)
}

// TestFilesElsewhere: a machine that got the files opens the same workload, a dataset that is
// found by its name in the cache too.
func TestFilesElsewhere(t *testing.T) {
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hub, dir := t.TempDir(), t.TempDir()
	t.Setenv("HF_HUB_CACHE", hub)
	rows := `{"question":"How many are two and two?","answer":"They are four."}` + "\n" + `{"question":"What comes after nine?","answer":"Ten does."}` + "\n"
	repo := filepath.Join(hub, "datasets--openai--gsm8k")
	revision := strings.Repeat("ab", 20)
	write(filepath.Join(repo, "refs", "main"), revision)
	write(filepath.Join(repo, "snapshots", revision, "main", "test-1.jsonl"), rows)
	write(filepath.Join(repo, "snapshots", revision, "main", "train-1.jsonl"), `{"question":"Another split?","answer":"Yes."}`+"\n")
	const png = "\x89PNG\r\n\x1a\n"
	aside := t.TempDir()
	write(filepath.Join(dir, "pictures", "one.png"), png+"1")
	write(filepath.Join(aside, "two.png"), png+"2")
	pictures := filepath.Join(dir, "pictures.jsonl")
	write(pictures, `{"prompt":"What is this?","images":["pictures/one.png","https://example.org/x.png"]}`+"\n"+
		`{"messages":[{"role":"user","content":[{"type":"text","text":"And this?"},{"type":"image_url","image_url":{"url":"`+filepath.Join(aside, "two.png")+`"}}]}],"images":["pictures/one.png"]}`+"\n")
	plain, tokenizer := filepath.Join(dir, "rows.jsonl"), filepath.Join(dir, "model")
	write(plain, rows)
	write(filepath.Join(tokenizer, "tokenizer.json"), "{}")
	for name, tt := range map[string]struct {
		spec  Spec
		names []string
	}{
		"no file":                {Spec{NumPrompts: 2, RandomInputLen: 5}, nil},
		"a file":                 {Spec{Dataset: "gsm8k", Path: plain, NumPrompts: 2}, []string{""}},
		"a dataset in the cache": {Spec{Dataset: "hf", Path: "openai/gsm8k", NumPrompts: 2, HFOutputLen: 5}, []string{filepath.Join("main", "test-1.jsonl")}},
		"rows with images":       {Spec{Dataset: "jsonl", Path: pictures, NumPrompts: 2, OutputLen: 5}, []string{"", imagefile.Name("pictures/one.png"), imagefile.Name(filepath.Join(aside, "two.png"))}},
		"one file of a dataset":  {Spec{Dataset: "hf", Path: plain, HFName: "openai/gsm8k", NumPrompts: 2, HFOutputLen: 5}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := tt.spec.Files()
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range files {
				names = append(names, f.Name)
			}
			if d := cmp.Diff(tt.names, names); d != "" {
				t.Error(d)
			}
			there := moved(t, tt.spec)
			if len(files) > 0 && there.Path == tt.spec.Path {
				t.Errorf("the files stayed at %s", there.Path)
			}
			if d := cmp.Diff(slices.Collect(mustOpen(t, tt.spec).All()), slices.Collect(mustOpen(t, there).All())); d != "" {
				t.Errorf("-here +there\n%s", d)
			}
		})
	}
	elsewhere := moved(t, Spec{Dataset: "jsonl", Path: pictures, NumPrompts: 2, OutputLen: 5})
	for _, path := range []string{filepath.Join(dir, "pictures", "one.png"), filepath.Join(aside, "two.png")} {
		if err := os.Remove(path); err != nil { // they are read where they were brought
			t.Fatal(err)
		}
	}
	if n := len(slices.Collect(mustOpen(t, elsewhere).All())[0].Images); n != 2 {
		t.Errorf("%d images", n)
	}
	s := moved(t, Spec{Tokenizer: tokenizer})
	if _, err := os.Stat(filepath.Join(s.Tokenizer, "tokenizer.json")); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", ServerTokenizer, EstimateTokenizer} {
		if files, err := (Spec{Tokenizer: name}).Files(); err != nil || len(files) > 0 {
			t.Errorf("%q: %v, %v", name, files, err)
		}
	}
	if _, err := (Spec{Dataset: "hf", Path: "openai/absent"}).Files(); err == nil {
		t.Error("a dataset that is not there has files")
	}
}
