package answers

import (
	"fmt"
	"strings"
	"testing"

	"perflab/internal/stat"
)

// answers are so many of each kind of pair.
func pairs(both, lost, won, neither int) (base, other string) {
	r := strings.Repeat
	return r("1", both+lost) + r("0", won+neither), r("1", both) + r("0", lost) + r("1", won) + r("0", neither)
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name                     string
		both, lost, won, neither int
		guard                    Guard
		pass                     bool
		needed                   int
	}{
		{"a loss beyond the margin", 152, 12, 5, 31, Guard{Margin: 0.02}, false, 0},
		{"a loss that cannot be ruled out", 162, 2, 1, 35, Guard{Margin: 0.02}, false, 610},
		{"nothing differs", 164, 0, 0, 36, Guard{Margin: 0.02}, true, 0},
		{"nothing differs, of few", 16, 0, 0, 4, Guard{Margin: 0.02}, false, 140},
		{"a small gain", 164, 0, 2, 34, Guard{Margin: 0.02}, true, 0},
		{"a gain", 100, 0, 60, 40, Guard{Margin: 0.02}, true, 0},
		{"three launches", 492, 0, 0, 108, Guard{Margin: 0.02, Questions: 200}, true, 0},
		{"launches cut short", 492, 0, 0, 107, Guard{Margin: 0.02, Questions: 200}, false, 0},
	} {
		base, other := pairs(tt.both, tt.lost, tt.won, tt.neither)
		p, pass := tt.guard.Judge("x", base, other)
		if pass != tt.pass || p.Accepted != pass || p.Needed != tt.needed || p.Label != "x" {
			t.Errorf("%s: passed %v: %+v\nwant %v, %d needed", tt.name, pass, p, tt.pass, tt.needed)
		}
		if p.Questions != len(base) || pass && (p.Lost != tt.lost || p.Won != tt.won || p.Base != tt.both+tt.lost || p.Right != tt.both+tt.won) {
			t.Errorf("%s: %+v", tt.name, p)
		}
	}
}

// No data never passes.
func TestJudgeNothing(t *testing.T) {
	g := Guard{Margin: 0.5}
	for _, tt := range []struct{ base, answers, want string }{
		{"", "", "no answers of the baseline"}, {"", "1", "no answers of the baseline"}, {"1", "", "no answers of it"},
		{"11", "1", "1 answers and the baseline 2"}, {"12", "11", "no list of right and wrong"},
	} {
		p, pass := g.Judge("x", tt.base, tt.answers)
		if pass || p.Accepted || !strings.Contains(p.Reason, tt.want) {
			t.Errorf("%q, %q: %v %s", tt.base, tt.answers, pass, p.Reason)
		}
	}
}

// declared are the answers of a simulated engine to n questions.
func declared(d stat.Declared, draw, n int) string {
	var b strings.Builder
	for i := range n {
		if d.Right(fmt.Sprintf("set %d, question %d", draw, i)) {
			b.WriteByte('1')
		} else {
			b.WriteByte('0')
		}
	}
	return b.String()
}

// TestGuardPower: how often declared losses pass a margin of two points. The
// shares stand in docs/tuning.md.
func TestGuardPower(t *testing.T) {
	t.Parallel()
	const sets = 150
	for _, tt := range []struct {
		loss, flips float64
		n           int
		least, most float64 // of the sets that pass
	}{
		{0.06, 0.02, 200, 0, 0.01},
		{0.02, 0.02, 200, 0, 0.08}, // at the margin: one in twenty
		{0, 0, 200, 1, 1},
		{0, 0.005, 200, 0.75, 0.95},
		{0, 0.02, 200, 0.3, 0.6},
		{0, 0.02, 450, 0.75, 0.95},
		{0, 0.05, 1000, 0.8, 0.95},
	} {
		g := Guard{Margin: 0.02}
		passed := 0
		for draw := range sets {
			base := declared(stat.Declared{Accuracy: 0.82}, draw, tt.n)
			other := declared(stat.Declared{Accuracy: 0.82 - tt.loss, Flips: tt.flips, Numerics: "fp8"}, draw, tt.n)
			if _, ok := g.Judge("fp8", base, other); ok {
				passed++
			}
		}
		got := float64(passed) / sets
		t.Logf("a loss of %v with %v flipped besides, %d questions: %.3f pass", tt.loss, tt.flips, tt.n, got)
		if got < tt.least || got > tt.most {
			t.Errorf("a loss of %v with %v flipped besides, %d questions: %.3f pass, want %v to %v", tt.loss, tt.flips, tt.n, got, tt.least, tt.most)
		}
	}
}
