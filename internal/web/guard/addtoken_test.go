package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAddToken: a line is added to those that are there, and the token itself is not kept.
func TestAddToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "tokens")
	first, err := AddToken(file, "admin", Administer)
	if err != nil {
		t.Fatal(err)
	}
	second, err := AddToken(file, "ci", Launch)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := TokenLine("admin", Administer, first) + "\n" + TokenLine("ci", Launch, second) + "\n"; string(b) != want {
		t.Errorf("the file is\n%s, want\n%s", b, want)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("it can be read by others: %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory can be looked into by others: %v, %v", info.Mode(), err)
	}
	for name, says := range map[string]string{"ci": "two tokens", "two words": "line 3", "": "line 3"} {
		if _, err := AddToken(file, name, Read); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", name, err, says)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(b) {
		t.Errorf("what was refused changed the file: %v\n%s", err, after)
	}
	if err := os.WriteFile(file, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := AddToken(file, "x", Read); err == nil || !strings.Contains(err.Error(), "JSON") {
		t.Errorf("a list of JSON: %v", err)
	}
}
