package vllmbench

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParsed reads lines as vLLM's own parser does: what it made of them is in
// testdata/parsed.json, which scripts/benchflags.py writes. Lines that it refuses whatever
// their values need not be refused here.
func TestParsed(t *testing.T) {
	b, err := os.ReadFile("testdata/parsed.json")
	if err != nil {
		t.Fatal(err)
	}
	var lines []struct {
		Line  string
		Flags map[string][]string
	}
	if err := json.Unmarshal(b, &lines); err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, x := range lines {
		if x.Flags == nil {
			continue
		}
		read++
		tr := &translation{own: Own{Flag: func(string) (bool, bool) { return false, false }}, serve: true}
		if err := tr.read(strings.Fields(x.Line)); err != nil || len(tr.words) > 0 {
			t.Errorf("%s: %v, words %q", x.Line, err, tr.words)
			continue
		}
		got := map[string][]string{}
		for _, it := range tr.items {
			got[it.name] = append([]string{}, it.values...)
		}
		if d := cmp.Diff(tidy(t, x.Flags), tidy(t, got)); d != "" {
			t.Errorf("%s (-vLLM +here):\n%s", x.Line, d)
		}
	}
	if read < 20 {
		t.Errorf("only %d lines of %d are read", read, len(lines))
	}
}

// tidy writes objects in one form. A list without a value is as one that is not given.
func tidy(t *testing.T, flags map[string][]string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for name, values := range flags {
		if len(values) == 0 && known(name).Values == anyOf {
			continue
		}
		if name == "extra-body" {
			var object any
			if err := json.Unmarshal([]byte(values[0]), &object); err != nil {
				t.Fatal(err)
			}
			b, _ := json.Marshal(object)
			values = []string{string(b)}
		}
		out[name] = values
	}
	return out
}
