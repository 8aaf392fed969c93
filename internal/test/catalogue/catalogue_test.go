package catalogue

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"perflab/internal/engine"
)

var update = flag.Bool("update", false, "write what the releases say into internal/engine/flags.json")

const (
	flagsPath   = "../../engine/flags.json"
	sourcesPath = "../../../scripts/releases.json"
	pagePath    = "../../../docs/catalogue.md"
	tableHead   = "<!-- table: make catalogue ARGS=-update -->\n"
	tableEnd    = "<!-- end of table -->\n"
)

// TestRewrite: what is read and written is the same file, so that a change of facts is all
// that a merge shows.
func TestRewrite(t *testing.T) {
	text, err := os.ReadFile(flagsPath)
	if err != nil {
		t.Fatal(err)
	}
	lists, order, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Write(lists, order)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, text) {
		t.Errorf("%s is not written as it was read", flagsPath)
	}
}

// TestReleases folds what the releases say, as scripts/catalogue.py left it in the
// directory PERFLAB_CATALOGUE, into flags.json, and fails where that changes it.
func TestReleases(t *testing.T) {
	dir := os.Getenv("PERFLAB_CATALOGUE")
	if dir == "" {
		t.Skip("PERFLAB_CATALOGUE is not set: make catalogue sets it")
	}
	sources, err := ReadSources(sourcesPath)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(flagsPath)
	if err != nil {
		t.Fatal(err)
	}
	lists, order, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	var standings []Standing
	var parameters strings.Builder
	for _, name := range []string{"vllm", "sglang"} {
		s := sources[name]
		facts, err := ReadFacts(dir, name, s)
		if err != nil {
			t.Fatal(err)
		}
		var changes bytes.Buffer
		lists[name].Merge(s, facts, &changes)
		t.Logf("%s:\n%s", name, changes.String())
		unpublished, err := facts[len(facts)-1].Unpublished()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s publishes nothing that perflab reads as %q", name, unpublished)
		fresh, ended := facts[len(facts)-1].MetricsSince(facts[max(0, len(facts)-2)])
		t.Logf("%s publishes %q, which the release before did not, and no longer %q", name, fresh, ended)
		last := facts[max(0, len(facts)-2):]
		for _, f := range last {
			standings = append(standings, lists[name].Compare(name, s, f))
		}
		parameters.WriteString(held(t, name, s, last))
		for _, other := range s.Others {
			f, err := ReadFacts(dir, other.Wheel, Source{Parts: s.Parts, Releases: other.Releases})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range f {
				standings = append(standings, lists[name].Compare(other.Wheel, s, f))
			}
		}
	}
	got, err := Write(lists, order)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, flagsPath, text, got)
	page, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := bytes.Cut(page, []byte(tableHead))
	_, tail, ok := bytes.Cut(rest, []byte(tableEnd))
	if !ok {
		t.Fatalf("%s has no place for the table", pagePath)
	}
	keep(t, pagePath, page, slices.Concat(head, []byte(tableHead+Table(standings)+parameters.String()+tableEnd), tail))
}

// held is the table of an engine's parameters. One that is gone or differs and says no
// reason is an error, as is a reason that is no longer needed.
func held(t *testing.T, name string, s Source, releases []Facts) string {
	var rows [][]Parameter
	for _, f := range releases {
		p, err := f.Parameters(s)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, p)
	}
	e, err := engine.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	text, missing, idle := ParameterTable(e.Title, releases, rows, Reasons[name])
	if len(missing)+len(idle) > 0 {
		t.Errorf("%s: parameters %q differ from its parser without a reason, and reasons for %q are not needed: see Reasons", name, missing, idle)
	}
	return text
}

// keep writes a file anew with -update, and is an error without where it would differ.
func keep(t *testing.T, path string, old, text []byte) {
	switch {
	case bytes.Equal(old, text):
	case !*update:
		t.Errorf("the releases say other things than %s: run with -update and read the difference", path)
	default:
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMerge: facts are taken over, our own words stay, and what came and went is said.
func TestMerge(t *testing.T) {
	l := &List{Versions: []Version{{"0.1", "by hand"}, {"0.2", "by hand"}}, Flags: []*Entry{
		{Flag: "--batch", Aliases: []string{"--ba"}, Kind: "int", Default: "8", Group: "scheduler", Doc: "Our words.", Try: []string{"8"}},
		{Flag: "--gone", Kind: "bool", Group: "cache", Doc: "It goes."},
		{Flag: "--old", Kind: "bool", Until: "0.1", Group: "cache", Doc: "It went."},
		{Flag: "--kernel", Kind: "choice", Choices: []string{"a"}, Since: "0.2", Group: "kernel", Doc: "It chooses."},
	}}
	facts := []Facts{{Release: "0.4.1", version: "0.4", Flags: []Option{
		{Names: []string{"--batch"}, Kind: "int", Default: "16"},
		{Names: []string{"--bath"}, Kind: "int"},
		{Names: []string{"--kernel"}, Kind: "choice", Choices: []string{"b", "None"}},
		{Names: []string{"--enable-x"}, Off: []string{"--disable-x"}, Kind: "bool", Default: "false"},
	}}}
	var out bytes.Buffer
	l.Merge(Source{Parts: 2}, facts, &out)
	got, err := Write(map[string]*List{"e": l}, []string{"e"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "e": {
  "versions": [
   {"version": "0.1", "read": "by hand"},
   {"version": "0.2", "read": "by hand"},
   {"version": "0.4", "read": "wheel 0.4.1"}
  ],
  "flags": [
   {"flag": "--ba", "kind": "int", "default": "8", "until": "0.2", "group": "scheduler", "doc": "Our words.", "try": ["8"]},
   {"flag": "--batch", "kind": "int", "default": "16", "group": "scheduler", "doc": "Our words.", "try": ["8"]},
   {"flag": "--bath", "kind": "int", "since": "0.4", "group": ""},
   {"flag": "--enable-x", "off": ["--disable-x"], "kind": "bool", "default": "false", "since": "0.4", "group": ""},
   {"flag": "--gone", "kind": "bool", "until": "0.2", "group": "cache", "doc": "It goes."},
   {"flag": "--kernel", "kind": "choice", "choices": ["a", "b"], "gained": {"b": "0.4"}, "lost": {"a": "0.2"}, "since": "0.2", "exact": true, "group": "kernel", "doc": "It chooses."},
   {"flag": "--old", "kind": "bool", "until": "0.1", "group": "cache", "doc": "It went."}
  ]
 }
}
`
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for _, line := range []string{`--batch: default "16", was "8"`, `--gone: until "0.2", was ""`, `--kernel: choices new in 0.4: b`, `--enable-x: new, bool "false" since "0.4" until ""`} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, out.String())
		}
	}
}
