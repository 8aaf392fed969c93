package logs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTexts says which lines of an engine that are looked for stand in no text of its
// newest release, as scripts/catalogue.py left these in the directory PERFLAB_CATALOGUE.
// It goes by the fixed parts of a line; older releases may still print what it names.
func TestTexts(t *testing.T) {
	dir := os.Getenv("PERFLAB_CATALOGUE")
	if dir == "" {
		t.Skip("PERFLAB_CATALOGUE is not set: make catalogue sets it")
	}
	sources, err := os.ReadFile("../../../scripts/releases.json")
	if err != nil {
		t.Fatal(err)
	}
	var lists map[string]struct{ Releases []string }
	if err := json.Unmarshal(sources, &lists); err != nil {
		t.Fatal(err)
	}
	own := map[string]int{} // signatures behind an engine's own are shared
	for name, all := range signaturesByEngine() {
		own[name] = len(all) - len(commonSignatures()) - len(hostSignatures())
	}
	for name, l := range lists {
		release := l.Releases[len(l.Releases)-1]
		text, err := os.ReadFile(filepath.Join(dir, name+"-"+release+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var facts struct{ Texts []string }
		if err := json.Unmarshal(text, &facts); err != nil {
			t.Fatal(err)
		}
		if len(facts.Texts) < 1000 {
			t.Fatalf("%s %s has %d texts: its files were not read whole", name, release, len(facts.Texts))
		}
		whole := strings.Join(facts.Texts, "\n")
		look := func(what string, keys []string) {
			for _, key := range keys {
				if !strings.Contains(whole, strings.TrimSpace(key)) {
					t.Logf("%s %s has no text with %q (%s)", name, release, key, what)
				}
			}
		}
		for _, s := range signaturesByEngine()[name][:own[name]] {
			look(s.class, compile(s.expr, s.keys).keys)
		}
		for _, l := range factLines()[name] {
			what := "fact " + strings.Join(l.names, " ")
			if l.after != "" {
				look(what, []string{l.after})
			} else {
				look(what, compile(l.expr, l.keys).keys)
			}
		}
	}
}
