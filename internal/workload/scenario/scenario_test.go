package scenario

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A scenario that is taken gives lengths within bounds and is the only one of
// its text; one that is not says what would be.
func FuzzScenario(f *testing.F) {
	for _, s := range []string{"D(100,100)", "N(480,240)/(300,150)", "U(50,100)/(200,250)", "U(9,8)", "E(1024)", "R(1024,100)", "D(1", "N(1,0)/(1,0)/", "X", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sc, err := Parse(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "scenario") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		in, out := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 2))
		for range 20 {
			r := sc.Draw(in, out, 2)
			if r.Input < 1 || r.Input > 3*MaxTokens || r.Output < 0 || r.Output > MaxTokens || (r.Output == 0) != sc.Documents() {
				t.Fatalf("%q draws %+v", text, r)
			}
		}
	})
}
