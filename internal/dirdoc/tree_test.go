package dirdoc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteTree(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "site")
	tree := Tree{Dir: dir, Manifest: "list.json", Read: func(b []byte) (files []string, err error) { return files, json.Unmarshal(b, &files) }}
	write := func(files map[string][]byte, manifest string) error {
		return tree.Write(files, []byte(manifest), func(path string, b []byte) error {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			return os.WriteFile(path, b, 0o644)
		})
	}
	outside := filepath.Join(root, "mine")
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(map[string][]byte{"a/old": nil, "kept": nil}, `["a/old","kept","../mine"]`); err != nil {
		t.Fatal(err)
	}
	if err := write(map[string][]byte{"kept": []byte("new")}, `["kept"]`); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "old")); err == nil {
		t.Error("a file that is no more is still there")
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a file outside of the tree was taken away: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "kept")); string(b) != "new" || err != nil {
		t.Errorf("kept is %q, %v", b, err)
	}
	if err := os.Remove(filepath.Join(dir, "list.json")); err != nil {
		t.Fatal(err)
	}
	if err := write(map[string][]byte{"b": nil}, "[]"); err == nil {
		t.Error("a directory of somebody else's was written to")
	}
	if _, err := os.Stat(filepath.Join(dir, "b")); err == nil {
		t.Error("a refused tree left a file")
	}
}
