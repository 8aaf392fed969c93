package catalogue

import (
	"os"
	"slices"
	"strings"
	"testing"

	"perflab/internal/engine"
)

// TestParameters: what is gone, deprecated, refused or of another default in a release is
// found, and each asks for a reason.
func TestParameters(t *testing.T) {
	f := Facts{Engine: "sglang", Release: "0.5.23", version: "0.5.23", Flags: []Option{
		{Names: []string{"--tensor-parallel"}, Kind: "int", Default: "1"}, // --tp-size is gone
		{Names: []string{"--pp-size"}, Kind: "int", Default: "1", Deprecated: true},
		{Names: []string{"--kv-cache-dtype"}, Kind: "choice", Choices: []string{"auto"}, Default: "auto"},
		{Names: []string{"--stream-interval"}, Kind: "int", Default: "2"},
		{Names: []string{"--disable-radix-cache"}, Kind: "bool", Default: "false"},
		{Names: []string{"--ep-size"}, Kind: "int", Default: "1"},
		{Names: []string{"--mem-fraction-static"}, Kind: "float", Default: "0.9"},
	}}
	all, err := f.Parameters(Source{Parts: 3})
	if err != nil {
		t.Fatal(err)
	}
	row := func(name string) Parameter {
		return all[slices.IndexFunc(all, func(p Parameter) bool { return p.Name == name })]
	}
	for name, fault := range map[string]bool{
		engine.TP: slices.Equal(row(engine.TP).Gone, []string{"--tp-size"}), engine.PP: slices.Equal(row(engine.PP).Deprecated, []string{"--pp-size"}),
		engine.KVDtype: slices.Contains(row(engine.KVDtype).Refused, "fp8"), engine.StreamInterval: row(engine.StreamInterval).Differs(),
	} {
		if !fault || !row(name).Asks() {
			t.Errorf("%s: %+v", name, row(name))
		}
	}
	for _, name := range []string{engine.PrefixCaching, engine.ExpertParallel, engine.MemoryShare, engine.PerfMode} {
		if row(name).Asks() {
			t.Errorf("%s asks for a reason: %+v", name, row(name))
		}
	}
	text, missing, idle := ParameterTable("SGLang", []Facts{f, f}, [][]Parameter{all, all}, map[string]string{engine.TP: "it was renamed", engine.PrefixCaching: "for nothing"})
	if slices.Contains(missing, engine.TP) || !slices.Contains(missing, engine.KVDtype) || !slices.Equal(idle, []string{engine.PrefixCaching}) {
		t.Errorf("without a reason %q, with one for nothing %q", missing, idle)
	}
	for _, line := range []string{"| tp | `--tp-size` (gone) | `1` | none | 0 | it was renamed |", "| gpu_memory_utilization | `--mem-fraction-static` | - | `0.9` | 0 |  |", "`performance_mode` (SGLang has no performance modes)"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

// TestPage: the page has a row for each parameter that vLLM and SGLang can be told.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vllm", "sglang"} {
		e, err := engine.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(page), "### Parameters of "+e.Title+"\n")
		section, _, _ = strings.Cut(section, "\n#")
		for _, p := range e.Params {
			if !strings.Contains(section, "| "+p.Name+" |") && !strings.Contains(section, "`"+p.Name+"`") {
				t.Errorf("%s says nothing of %s of %s: run make catalogue ARGS=-update", pagePath, p.Name, e.Title)
			}
		}
	}
}

// TestSpanChoices: which versions take a choice, as far as the releases read tell.
func TestSpanChoices(t *testing.T) {
	l := &List{Versions: []Version{{"0.1", ""}, {"0.2", ""}, {"0.3", ""}, {"0.4", ""}}}
	e := &Entry{Flag: "--k", Kind: "choice", Choices: []string{"stays", "went", "came", "old", "back"}, Lost: map[string]string{"old": "0.1", "back": "0.2"},
		in: map[string]bool{"0.1": true, "0.2": true, "0.3": true, "0.4": true}, takes: map[string][]string{"0.3": {"stays", "went"}, "0.4": {"stays", "came", "back"}}}
	var out strings.Builder
	l.spanChoices(e, &out)
	for _, tt := range []struct{ choice, gained, lost string }{{"stays", "", ""}, {"went", "", "0.3"}, {"came", "0.4", ""}, {"old", "", "0.1"}, {"back", "0.4", ""}} {
		if e.Gained[tt.choice] != tt.gained || e.Lost[tt.choice] != tt.lost {
			t.Errorf("%s: from %q to %q, want %q to %q", tt.choice, e.Gained[tt.choice], e.Lost[tt.choice], tt.gained, tt.lost)
		}
	}
	if !e.holds("went", "0.3") || e.holds("went", "0.4") || e.holds("came", "0.3") || out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
}
