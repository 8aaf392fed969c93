package durable

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHold: what is held is seen to be, by looks that hold nothing, until it is closed.
func TestHold(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "file")} {
		if path != dir {
			if Held(path) {
				t.Errorf("%s does not exist, and is held", path)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if Held(path) {
			t.Errorf("%s is held by nobody", path)
		}
		if ok, err := Hold(f); !ok || err != nil {
			t.Errorf("hold %s: %v, %v", path, ok, err)
		}
		other, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := Hold(other); ok || err != nil {
			t.Errorf("%s is held twice, %v", path, err)
		}
		for range 2 {
			if !Held(path) {
				t.Errorf("%s is not seen to be held", path)
			}
		}
		f.Close()
		if Held(path) {
			t.Errorf("%s is held though it was closed", path)
		}
		other.Close()
	}
}
