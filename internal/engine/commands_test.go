package engine

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// samples are values of parameters whose values no ladder or list of choices tells.
var samples = map[string][]string{
	MaxModelLen:    {"32768", "auto"},
	Quantization:   {"fp8", "awq"},
	Speculative:    {"mtp:1", "eagle3:3:DRAFT", "ngram:4", "eagle3:3/4/8:DRAFT"},
	PP:             {"2"},
	StreamInterval: {"1", "10"},
	ContextSize:    {"0", "16384"},
}

// valuesOf are the values of a parameter that any engine's ladder or the engine's own
// choices have.
func valuesOf(e *Engine, name string) (values []string) {
	values = append(values, samples[name]...)
	for _, other := range All() {
		if p, ok := other.Param(name); ok {
			values = append(values, p.Ladder...)
			if p.Kind == Bool {
				values = append(values, "true", "false")
			}
		}
	}
	if p, ok := e.Param(name); ok && len(p.Flags) > 0 {
		if ref := flagTables()[e.Name][p.Flags[0]]; ref.def.Kind == Choice {
			values = append(values, ref.def.Choices...)
		}
	}
	var once []string
	for _, v := range values {
		if !slices.Contains(once, v) {
			once = append(once, v)
		}
	}
	return once
}

// TestCommands: for every engine, parameter and value, the command line, or the sentence
// that refuses it.
func TestCommands(t *testing.T) {
	var b strings.Builder
	for _, e := range All() {
		fmt.Fprintf(&b, "# %s\n", e.Title)
		for i := range e.Params {
			name := e.Params[i].Name
			values := valuesOf(e, name)
			if len(values) == 0 {
				t.Errorf("%s %s: no value is tried", e.Title, name)
			}
			for _, value := range values {
				line := "refused: "
				c, err := New(e.Name, "MODEL", map[string]string{name: value}, nil)
				if err != nil {
					line += err.Error()
				} else {
					line = c.String()
				}
				fmt.Fprintf(&b, "%s=%s\n\t%s\n", name, value, line)
			}
		}
	}
	const path = "testdata/commands.golden"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("command lines differ from %s: run with -update and read the difference", path)
	}
}
