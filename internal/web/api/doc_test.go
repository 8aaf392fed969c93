package api_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perflab/internal/test/fleettest"
	"perflab/internal/test/storetest"
	"perflab/internal/web"
)

var shell = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestDocument: the examples of docs/api.md work as they stand, one after another.
func TestDocument(t *testing.T) {
	for _, name := range []string{"sh", "curl", "sha256sum", "paste", "tar"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	b, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, web.Options{Reserve: 1, Fleet: fleettest.Open(t).Leader})
	dir := storetest.Run{N: 50}.Write(t, t.TempDir(), "run")
	env := append(os.Environ(), "LAB="+l.URL, "AUTH=Authorization: Bearer "+tokens["administer"], "RUN="+l.id(t, "one"), "OTHER="+l.id(t, "two"), "STUDY="+l.id(t, "study"), "DIR="+dir)
	n := 0
	for _, m := range shell.FindAllStringSubmatch(string(b), -1) {
		if strings.HasPrefix(m[1], "export ") {
			continue
		}
		n++
		c := exec.CommandContext(t.Context(), "sh", "-e", "-c", m[1])
		c.Env, c.Dir = env, t.TempDir()
		if out, err := c.CombinedOutput(); err != nil || len(out) == 0 {
			t.Errorf("%v:\n%s\n%s", err, m[1], out)
		}
	}
	if n < 12 {
		t.Errorf("only %d examples were found", n)
	}
	if _, err := os.Stat(filepath.Join(l.root, "pushed", "header.json")); err != nil {
		t.Errorf("the example pushed nothing: %v", err)
	}
}
