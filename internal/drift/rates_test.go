package drift

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"perflab/internal/stat"
)

var update = flag.Bool("update", false, "write the measured tables into docs/history.md")

// The document whose tables are measured here, each behind a line that names it.
const document = "../../docs/history.md"

func normal(r *rand.Rand) float64 { return r.NormFloat64() }

// heavy is Student's t with three degrees of freedom, scaled to a standard deviation of 1.
func heavy(r *rand.Rand) float64 {
	v := 0.0
	for range 3 {
		z := r.NormFloat64()
		v += z * z
	}
	return r.NormFloat64() / math.Sqrt(v)
}

// made are points around 100 with noise of sd 2, each moved by so many sd as shape says.
func made(r *rand.Rand, n int, noise func(*rand.Rand) float64, likeness float64, shape func(i int) float64) []Point {
	points := make([]Point, n)
	last := noise(r)
	for i := range points {
		if i > 0 {
			last = likeness*last + math.Sqrt(1-likeness*likeness)*noise(r)
		}
		points[i].Value = 100 + 2*last
		if shape != nil {
			points[i].Value += 2 * shape(i)
		}
	}
	return points
}

func step(at int, sd float64) func(int) float64 {
	return func(i int) float64 {
		if i >= at {
			return sd
		}
		return 0
	}
}

// every is what is reported however small: the least change would hide false alarms.
var every = Options{Least: 1e-9}

func finds(t *testing.T, points []Point, o Options) Found {
	t.Helper()
	f, err := Find(points, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// share is in how many of n histories something is so, in percent.
func share(n int, is func(i int, r *rand.Rand) bool) float64 {
	yes := 0
	for i := range n {
		if is(i, stat.Stream(uint64(i), "drift test")) {
			yes++
		}
	}
	return 100 * float64(yes) / float64(n)
}

func with(f Found, s Standing) bool {
	return slices.ContainsFunc(f.Changes, func(c Change) bool { return c.Standing == s })
}

func near(f Found, at int) bool {
	return slices.ContainsFunc(f.Changes, func(c Change) bool { return c.Index >= at-2 && c.Index <= at+2 })
}

const histories = 500

// TestFalseAlarms measures how often a change is found where nothing has changed.
func TestFalseAlarms(t *testing.T) {
	rows := []struct {
		name                 string
		n                    int
		noise                func(*rand.Rand) float64
		likeness             float64
		confirmed, suspected float64 // at most, in percent
	}{
		{"8 points, normal", 8, normal, 0, 1, 3},
		{"12 points, normal", 12, normal, 0, 4, 3},
		{"20 points, normal", 20, normal, 0, 2, 3},
		{"60 points, normal", 60, normal, 0, 2, 3},
		{"200 points, normal", 200, normal, 0, 2, 3},
		{"12 points, heavy tails", 12, heavy, 0, 3, 6},
		{"20 points, heavy tails", 20, heavy, 0, 3, 6},
		{"60 points, heavy tails", 60, heavy, 0, 3, 6},
		{"200 points, heavy tails", 200, heavy, 0, 3, 6},
		{"60 points, each resembles the one before (correlation 0.3)", 60, normal, 0.3, 20, 100},
		{"60 points, the same at 0.6", 60, normal, 0.6, 80, 100},
	}
	var table strings.Builder
	for _, row := range rows {
		suspected := 0.0
		confirmed := share(histories, func(_ int, r *rand.Rand) bool {
			f := finds(t, made(r, row.n, row.noise, row.likeness, nil), every)
			if with(f, Suspected) {
				suspected += 100.0 / histories
			}
			return with(f, Confirmed)
		})
		if confirmed > row.confirmed || suspected > row.suspected {
			t.Errorf("%s: %.1f %% confirmed, want at most %v, and %.1f %% suspected, want at most %v", row.name, confirmed, row.confirmed, suspected, row.suspected)
		}
		fmt.Fprintf(&table, "| %s | %.1f %% | %.1f %% |\n", row.name, confirmed, suspected)
	}
	confirmed, suspected := looks(t)
	fmt.Fprintf(&table, "| 20 to 80 points, normal, looked at after each: at any time | %.1f %% | %.1f %% |\n", confirmed, suspected)
	documented(t, "| nothing changed | confirmed | suspected |\n| --- | ---: | ---: |\n", table.String())
}

// looks are histories that grow, and what is found in them at any time.
func looks(t *testing.T) (confirmed, suspected float64) {
	const n = 200
	confirmed = share(n, func(_ int, r *rand.Rand) bool {
		points := made(r, 80, normal, 0, nil)
		c, s := false, false
		for k := 20; k <= len(points); k++ {
			f := finds(t, points[:k], every)
			c, s = c || with(f, Confirmed), s || with(f, Suspected)
		}
		if s {
			suspected += 100.0 / n
		}
		return c
	})
	if confirmed > 25 {
		t.Errorf("looked at after each point, %.1f %% of the histories have a false change at some time, want at most 25", confirmed)
	}
	return confirmed, suspected
}

// TestPower measures how often a change is found that there is, within two points of its place.
func TestPower(t *testing.T) {
	rows := []struct {
		name     string
		n, after int
		least    [4]float64 // of shifts by 1, 2, 3 and 5 sd, in percent
	}{
		{"12 points, the last 5 moved", 12, 5, [4]float64{0, 20, 65, 95}},
		{"20 points, the last 5 moved", 20, 5, [4]float64{0, 40, 85, 97}},
		{"60 points, the last 1 moved (suspected)", 60, 1, [4]float64{0, 5, 25, 85}},
		{"60 points, the last 3 moved", 60, 3, [4]float64{0, 20, 65, 97}},
		{"60 points, the last 5 moved", 60, 5, [4]float64{0, 60, 90, 97}},
		{"60 points, the last 30 moved", 60, 30, [4]float64{20, 80, 95, 97}},
		{"120 points, the last 60 moved", 120, 60, [4]float64{30, 85, 95, 97}},
	}
	var table strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&table, "| %s |", row.name)
		for i, sd := range []float64{1, 2, 3, 5} {
			got := share(100, func(_ int, r *rand.Rand) bool {
				at := row.n - row.after
				return near(finds(t, made(r, row.n, normal, 0, step(at, sd)), every), at)
			})
			if got < row.least[i] {
				t.Errorf("%s by %v sd: found in %.0f %%, want at least %v", row.name, sd, got, row.least[i])
			}
			fmt.Fprintf(&table, " %.0f %% |", got)
		}
		table.WriteString("\n")
	}
	documented(t, "| a shift by | 1 sd | 2 sd | 3 sd | 5 sd |\n| --- | ---: | ---: | ---: | ---: |\n", table.String())
}

// TestDrifts measures what is made of changes that are no single step.
func TestDrifts(t *testing.T) {
	rise := func(n int, sd float64) func(int) float64 {
		return func(i int) float64 { return sd * float64(i) / float64(n) }
	}
	rows := []struct {
		name  string
		n     int
		shape func(int) float64
	}{
		{"60 points, one step by 3 sd in the middle", 60, step(30, 3)},
		{"60 points, one step by 1.5 sd in the middle", 60, step(30, 1.5)},
		{"60 points, two steps by 3 sd, at 20 and 40", 60, func(i int) float64 { return step(20, 3)(i) + step(40, 3)(i) }},
		{"60 points, by 4 sd up at 30 and down again at 40", 60, func(i int) float64 { return step(30, 4)(i) - step(40, 4)(i) }},
		{"120 points, by 4 sd up at 50 and down again at 60", 120, func(i int) float64 { return step(50, 4)(i) - step(60, 4)(i) }},
		{"60 points, a straight rise by 3 sd", 60, rise(60, 3)},
		{"60 points, a straight rise by 6 sd", 60, rise(60, 6)},
		{"120 points, a straight rise by 6 sd", 120, rise(120, 6)},
	}
	var table strings.Builder
	for _, row := range rows {
		found, gradual := map[int]int{}, 0
		for i := range 100 {
			f := finds(t, made(stat.Stream(uint64(i), "drift test"), row.n, normal, 0, row.shape), every)
			found[min(len(f.Changes), 3)]++
			if slices.ContainsFunc(f.Changes, func(c Change) bool { return c.Gradual }) {
				gradual++
			}
		}
		fmt.Fprintf(&table, "| %s |", row.name)
		for k := range 4 {
			fmt.Fprintf(&table, " %d %% |", found[k])
		}
		fmt.Fprintf(&table, " %d %% |\n", gradual)
	}
	documented(t, "| what there is | 0 found | 1 | 2 | 3 or more | marked as gradual |\n| --- | ---: | ---: | ---: | ---: | ---: |\n", table.String())
}

// documented holds a table against the document, and with -update writes it there. Products
// are rounded otherwise on other processors, and a borderline history may then fall otherwise.
func documented(t *testing.T, head, rows string) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), head)
	if !ok {
		t.Fatalf("%s has no table with the head %q", document, head)
	}
	old := 0
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		old += len(line)
	}
	switch {
	case rest[:old] == rows:
	case *update:
		if err := os.WriteFile(document, []byte(before+head+rows+rest[old:]), 0o644); err != nil {
			t.Fatal(err)
		}
	case runtime.GOARCH == "amd64":
		t.Errorf("%s says\n%swant\n%sgo test ./internal/drift -update writes it", document, rest[:old], rows)
	}
}
