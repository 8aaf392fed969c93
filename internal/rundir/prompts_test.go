package rundir

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/result"
	"perflab/internal/reuse"
)

// TestPrompts: what prompts share is read back as it was written, and what cannot be is named with its line.
func TestPrompts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := Create(dir, result.Header{Spec: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	want := []reuse.Prompt{{Fill: true, Target: 1, Tokens: 30}, {Index: 0, Tokens: 40, Like: 1, Alike: 30}, {Index: 7, Tokens: 5}}
	if err := w.KeepPrompts(want).Finish(&result.Client{}, &result.Summary{}, nil); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRun(dir)
	if err != nil || r.Damage != "" {
		t.Fatal(err, r.Damage)
	}
	if d := cmp.Diff(want, r.Prompts); d != "" {
		t.Errorf("-written +read\n%s", d)
	}
	if opt, err := r.Options(); err != nil || len(opt.Prompts) != 3 {
		t.Error(opt.Prompts, err)
	}
	for text, complaint := range map[string]string{
		`{"index":1,"tokens":5,"like":1}`:                                 "prompts.jsonl: it begins like line 1, and 0 are before it",
		`{"index":1,"tokens":5,"alike":6}`:                                "prompts.jsonl: 5 tokens, of which 6 are another prompt's, cannot be",
		`{"index":0,"tokens":5}` + "\n" + `no prompt` + "\n" + `{"a": 1}`: "prompts.jsonl: line 2",
	} {
		if err := os.WriteFile(filepath.Join(dir, PromptsFile), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := OpenRun(dir); err != nil || !strings.Contains(r.Damage, complaint) || r.Prompts != nil {
			t.Errorf("%s: %v, %q, want %q", text, err, r.Damage, complaint)
		}
	}
}

// FuzzPrompts: whatever the lines say, those that are taken have hits that can be.
func FuzzPrompts(f *testing.F) {
	f.Add([]byte(`{"index":0,"tokens":40}` + "\n" + `{"index":1,"tokens":60,"like":1,"alike":40}` + "\n"))
	f.Add([]byte(`{"fill":true,"target":3,"tokens":9}` + "\n" + `{"index":5,"tokens":9,"like":1,"alike":9}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		prompts, err := readPrompts(bytes.NewReader(data))
		if err != nil {
			return
		}
		var requests []reuse.Request
		for i, p := range prompts {
			p.Tokens = min(p.Tokens, 1<<12)
			p.Alike = min(p.Alike, p.Tokens)
			prompts[i] = p
			requests = append(requests, reuse.Request{Index: p.Index, Prompt: p.Tokens, Output: 3})
		}
		h := reuse.Measure(prompts, requests, []reuse.Room{{Tokens: 2048, Block: 16}})
		if h.Any < h.Routed || h.Routed < h.Fitting || h.Fitting < 0 || h.Any > h.Prompt {
			t.Errorf("%+v", h)
		}
	})
}
