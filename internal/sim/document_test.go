package sim

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDocument: docs/simulator.md has every constant as constants.json has it.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	names := Priors().Names()
	for _, name := range names {
		k, _ := Priors().About(name)
		if row := fmt.Sprintf("| `%s` | %s | %s | %g ± %g | %s |", name, k.Symbol, k.Unit, k.Prior, k.Spread, k.Of); !strings.Contains(string(text), row) {
			t.Errorf("docs/simulator.md lacks %s", row)
		}
	}
	if !strings.Contains(string(text), fmt.Sprintf("in %d constants", len(names))) {
		t.Errorf("docs/simulator.md has another number of constants than %d", len(names))
	}
}
