package science

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

var (
	update = flag.Bool("update", false, "write the tables of the whole suite into docs/tuning.md")
	only   = flag.String("landscapes", "", "of the whole suite, only landscapes whose names have this in them")
	study  = flag.String("study", "", "landscape of which TestTrace shows a study")
	seeds  = flag.Int("seeds", 20, "of the whole suite")
	drawn  = flag.Int("draw", 0, "of the hidden effects of single choices: 0 for the suite's own")
)

// setup is what the whole suite is run with.
var setup = Setup{Launches: 25, Marks: []int{5, 10, 15, 20, 25}}

// TestCompare is the suite in small: strategies keep their budgets, come to an end
// beside refusals and failures, and the race finds what there is and claims little
// that is not.
func TestCompare(t *testing.T) {
	var small []Landscape
	for _, name := range []string{"30b-a3b-h100-chat", "trap-memory", "equal-noisy"} {
		small = append(small, tiny(landscape(t, name)))
	}
	compare := func(entrants []Entrant, seeds int) Comparison {
		c, err := Compare(small, entrants, setup, seeds, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := compare(Entrants(), 2)
	t.Log("\n" + c.Markdown())
	for _, name := range c.Names {
		if short := c.Short(name); short != nil {
			t.Errorf("%s: %s", name, strings.Join(short, "; "))
		}
	}
	if r := c.Regret("race", 0.5); !(r < 0.05) {
		t.Errorf("the median regret of the race is %.3f", r)
	}
	if race, staged := c.Regret("race", 0.9), c.Regret("staged", 0.9); !(race <= staged+0.02) {
		t.Errorf("of ten studies one loses %.3f by the race, %.3f by stages", race, staged)
	}
	if claims, studies := c.False("race"); studies != 2 || claims > 1 {
		t.Errorf("the race calls %d of %d equal configurations better", claims, studies)
	}
	small = small[1:2]
	once, again := compare(Entrants()[:1], 1), compare(Entrants()[:1], 1)
	if a, b := once.Markdown(), again.Markdown(); a != b {
		t.Errorf("run again a landscape says otherwise:\n%s\n%s", a, b)
	}
}

const (
	docs  = "../../../docs/tuning.md"
	begin = "<!-- science: begin -->\n"
	end   = "<!-- science: end -->\n"
)

// TestScience is the whole suite: some minutes of two cores.
func TestScience(t *testing.T) {
	if os.Getenv("PERFLAB_SCIENCE") != "full" {
		t.Skip("all landscapes take some minutes: set PERFLAB_SCIENCE=full, or run make tune-science")
	}
	var landscapes []Landscape
	for _, l := range Suite() {
		if l.Draw = *drawn; strings.Contains(l.Name, *only) {
			landscapes = append(landscapes, l)
		}
	}
	begun := time.Now()
	c, err := Compare(landscapes, Entrants(), setup, *seeds, func(s Standing) {
		t.Logf("%s: %d configurations, %d studies after %v", s.Landscape.Name, s.Size, len(s.Ends)**seeds, time.Since(begun).Round(time.Second))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + c.Markdown())
	for _, name := range c.Names {
		if short := c.Short(name); short != nil {
			t.Errorf("%s ended short: %s", name, strings.Join(short, "; "))
		}
	}
	for _, name := range c.Names[1:] {
		for _, q := range []float64{0.5, 0.9} {
			if race, other := c.Regret("race", q), c.Regret(name, q); race > other {
				t.Errorf("regret at %g: the race %.4f, %s %.4f", q, race, name, other)
			}
		}
	}
	if median, most := c.Regret("race", 0.5), c.Regret("race", 0.9); *drawn == 0 && *only == "" && (median > 0.02 || most > 0.05) {
		t.Errorf("the race loses %.4f in the median and %.4f in one of ten studies", median, most)
	}
	if claims, studies := c.False("race"); studies > 0 && float64(claims) > 0.05*float64(studies) {
		t.Errorf("the race calls %d of %d equal configurations better", claims, studies)
	}
	if *update {
		write(t, c.Markdown())
	}
}

// write puts the tables between their marks.
func write(t *testing.T, tables string) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the tables: it needs the lines %q and %q", docs, begin, end)
	}
	if err := os.WriteFile(docs, []byte(before+begin+"\n"+tables+"\n"+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
