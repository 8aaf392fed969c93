package hub

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cached makes a cache with files, by their paths below it.
func cached(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HF_HUB_CACHE", dir)
	return dir
}

func TestFind(t *testing.T) {
	dir := cached(t, map[string]string{
		"models--a--b/refs/main":                    "0123456789abcdef\n",
		"models--a--b/snapshots/0123456789abcdef/x": "",
		"models--a--b/snapshots/fedcba9876543210/x": "",
		"datasets--a--b/snapshots/abcdef0123/x":     "",
		"models--gpt2/snapshots/abcdef0123/x":       "",
		"models--a--two/snapshots/abcdef0123/x":     "",
		"models--a--two/snapshots/abcdef0124/x":     "",
		"models--a--gone/refs/main":                 "abcdef0123",
		"models--a--odd/refs/main":                  "../../../etc",
		"models--a--empty/refs/pr":                  "",
		"models--a--blank/refs/main":                "",
	})
	for _, tt := range []struct{ kind, name, want, fault string }{
		{models, "a/b", "models--a--b/snapshots/0123456789abcdef", ""},
		{datasets, "a/b", "datasets--a--b/snapshots/abcdef0123", ""},
		{models, "gpt2", "models--gpt2/snapshots/abcdef0123", ""},
		{models, "a/two", "", "has 2 revisions and does not say which is main"},
		{models, "a/gone", "", "a/gone is not in the Hugging Face cache (" + dir + ")"},
		{models, "a/odd", "", "names no revision"},
		{models, "a/blank", "", "names no revision"},
		{models, "a/empty", "", "is not in the Hugging Face cache"},
		{models, "a/c", "", "is not in the Hugging Face cache"},
		{models, "../b", "", "is not in the Hugging Face cache"},
		{models, "a--b", "", "is not in the Hugging Face cache"}, // of another name's directory
	} {
		s, err := find(tt.kind, tt.name)
		switch {
		case tt.fault != "":
			if err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%s %s: %v, want %s", tt.kind, tt.name, err, tt.fault)
			}
		case err != nil || s.Dir != filepath.Join(dir, filepath.FromSlash(tt.want)) || s.Repo != tt.name || s.Revision != filepath.Base(s.Dir):
			t.Errorf("%s %s: %+v, %v", tt.kind, tt.name, s, err)
		}
	}
}

func TestDownload(t *testing.T) {
	cached(t, nil)
	_, err := Dataset("openai/gsm8k")
	absent, ok := errors.AsType[*AbsentError](err)
	if !ok || absent.Download() != "hf download --repo-type dataset openai/gsm8k" {
		t.Errorf("dataset: %v", err)
	}
	_, _, err = ModelFile("Qwen/Qwen3-8B", "tokenizer.json")
	if absent, ok = errors.AsType[*AbsentError](err); !ok || absent.Download() != "hf download Qwen/Qwen3-8B tokenizer.json" ||
		!strings.HasPrefix(err.Error(), "tokenizer.json of Qwen/Qwen3-8B is not in the Hugging Face cache (") {
		t.Errorf("model: %v", err)
	}
}

func TestCache(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		env        map[string]string
	}{
		{"hub cache first", "/c", map[string]string{"HF_HUB_CACHE": "/c", "HUGGINGFACE_HUB_CACHE": "/old", "HF_HOME": "/h"}},
		{"its old name", "/old", map[string]string{"HUGGINGFACE_HUB_CACHE": "/old", "HF_HOME": "/h"}},
		{"home of Hugging Face", "/h/hub", map[string]string{"HF_HOME": "/h", "XDG_CACHE_HOME": "/x"}},
		{"XDG", "/x/huggingface/hub", map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/u"}},
		{"home", "/u/.cache/huggingface/hub", map[string]string{"HOME": "/u"}},
		{"none", "", nil},
	} {
		for _, key := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"} {
			t.Setenv(key, tt.env[key])
		}
		if got := Cache(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestRepoOf(t *testing.T) {
	for path, want := range map[string]string{
		"/c/hub/datasets--openai--gsm8k/snapshots/abc":   "openai/gsm8k",
		"/c/hub/datasets--openai--gsm8k/snapshots/abc/x": "openai/gsm8k",
		"/c/hub/models--gpt2":                            "gpt2",
		"/c/hub/files--a--b":                             "",
		"/c/datasets":                                    "",
		"datasets--":                                     "",
		"datasets--a--..":                                "",
		"a/b":                                            "",
	} {
		if got := RepoOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestModelFile(t *testing.T) {
	dir := cached(t, map[string]string{"models--a--b/refs/main": "0123456789abcdef", "models--a--b/snapshots/0123456789abcdef/config.json": ""})
	path, s, err := ModelFile("a/b", "config.json")
	if err != nil || path != filepath.Join(dir, "models--a--b", "snapshots", "0123456789abcdef", "config.json") || s.Revision != "0123456789abcdef" {
		t.Errorf("%s, %+v, %v", path, s, err)
	}
	_, _, err = ModelFile("a/b", "tokenizer.json") // its weights alone were downloaded
	if absent, ok := errors.AsType[*AbsentError](err); !ok || absent.Repo != "a/b" || absent.File != "tokenizer.json" {
		t.Errorf("a file that is not there: %v", err)
	}
}
