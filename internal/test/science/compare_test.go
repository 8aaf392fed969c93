package science

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// make tune-science makes the tables. Whoever works on a strategy looks at some classes
// and strategies, on seeds of which no table is made:
//
//	go test ./internal/test/science -run TestScience -v -science -classes refused,slo -strategies race,tpe -budgets 8,25 -seeds 10 -worst 5
//	go test ./internal/test/science -run TestScience -v -science -classes refused -strategies race -budgets 25 -first 3 -seeds 1 -course
var (
	full       = flag.Bool("science", false, "compare strategies on landscapes: TestScience")
	update     = flag.Bool("update", false, "write the tables into docs/tuning.md")
	classes    = flag.String("classes", "", "of TestScience, with commas; none: all")
	strategies = flag.String("strategies", "", "the same; race, untaught, blind, staged, tpe, random, grid")
	budgets    = flag.String("budgets", "8,12,25,60", "launches of a study, with commas")
	first      = flag.Uint64("first", 1, "seed of the first landscape of each class")
	seeds      = flag.Int("seeds", 10, "landscapes of each class")
	worst      = flag.Int("worst", 0, "studies to list that lose most")
	course     = flag.Bool("course", false, "print each study launch by launch")
	workers    = flag.Int("workers", 2, "landscapes at a time")
)

// run makes all standings of a plan, some at a time: no landscape knows of another.
func run(t *testing.T, p Plan, progress func(Standing, time.Duration)) Comparison {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // replays make much garbage and keep little
	c := Comparison{Plan: p, Fields: make([]Standing, len(p.Classes)*p.Seeds)}
	errs := make([]error, len(c.Fields))
	next := make(chan int)
	var wg sync.WaitGroup
	for range *workers {
		wg.Go(func() {
			for n := range next {
				begun := time.Now()
				if c.Fields[n], errs[n] = p.Standing(n); errs[n] == nil && progress != nil {
					progress(c.Fields[n], time.Since(begun))
				}
			}
		})
	}
	for n := range c.Fields {
		next <- n
	}
	close(next)
	wg.Wait()
	if err := cmp.Or(errs...); err != nil {
		t.Fatal(err)
	}
	return c
}

// chosen are those that a list with commas names, or that have its words in their names;
// all where it is empty.
func chosen[T any](t *testing.T, all []T, name func(T) string, list string) []T {
	t.Helper()
	if list == "" {
		return all
	}
	var out []T
	for want := range strings.SplitSeq(list, ",") {
		if i := slices.IndexFunc(all, func(x T) bool { return name(x) == want }); i >= 0 {
			out = append(out, all[i])
			continue
		}
		n := len(out)
		for _, x := range all {
			if strings.Contains(name(x), want) {
				out = append(out, x)
			}
		}
		if len(out) == n {
			t.Fatalf("nothing is called %q", want)
		}
	}
	return out
}

func planned(t *testing.T) Plan {
	p := Plan{First: *first, Seeds: *seeds}
	p.Classes = chosen(t, Classes(), func(c Class) string { return c.Name }, *classes)
	entrants := Entrants()
	if *strategies != "" {
		entrants = append(entrants, Untaught())
	}
	p.Entrants = chosen(t, entrants, func(e Entrant) string { return e.Name }, *strategies)
	for text := range strings.SplitSeq(*budgets, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("-budgets: %v", err)
		}
		p.Budgets = append(p.Budgets, n)
	}
	return p
}

const (
	docs  = "../../../docs/tuning.md"
	begin = "<!-- science: begin -->\n"
	end   = "<!-- science: end -->\n"
)

// TestScience compares strategies on as many landscapes as is asked for.
func TestScience(t *testing.T) {
	if !*full {
		t.Skip("all landscapes take long: run make tune-science, or give -science with -classes, -strategies, -budgets and -seeds")
	}
	p := planned(t)
	if *course {
		courses(t, p)
		return
	}
	begun, mu, done := time.Now(), sync.Mutex{}, 0
	c := run(t, p, func(s Standing, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if done++; done%20 == 0 || testing.Verbose() && len(p.Classes)*p.Seeds <= 40 {
			fmt.Printf("%d of %d after %v: %s %d, %d configurations, %.1f s\n", done, len(p.Classes)*p.Seeds, time.Since(begun).Round(time.Second),
				p.Classes[s.Class].Name, s.Seed, s.Size, took.Seconds())
		}
	})
	if *update {
		write(t, c.Markdown())
		fmt.Println(c.Markdown())
	}
	fmt.Println(c.Brief())
	list(c)
}

// list prints the studies that lose most.
func list(c Comparison) {
	type study struct {
		name string
		End
	}
	var all []study
	for _, f := range c.Fields {
		for i, ends := range f.Ends {
			for k, e := range ends {
				all = append(all, study{fmt.Sprintf("%s %d, %s with %d", c.Classes[f.Class].Name, f.Seed, c.Entrants[i].Name, c.Budgets[k]), e})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b study) int { return -cmp.Compare(a.Regret, b.Regret) })
	for _, s := range all[:min(*worst, len(all))] {
		fmt.Printf("%5.1f %%  %s: %s %s\n", 100*s.Regret, s.name, s.Story, s.Short)
	}
}

// courses prints studies launch by launch.
func courses(t *testing.T, p Plan) {
	for n := range len(p.Classes) * p.Seeds {
		w, err := Draw(p.Classes[n/p.Seeds], p.First+uint64(n%p.Seeds))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s: %s\n  %d configurations run, baseline %s loses %.1f %%\n  %+v\n  %+v\n", w.Name, w.About(), w.runs, key(w.Baseline), 100*w.Regret(w.Baseline), w.Noise, w.Wrong)
		for _, s := range w.Subject {
			fmt.Println("  it is about", said(s))
		}
		fmt.Println("  " + w.line(w.best))
		for _, e := range p.Entrants {
			for _, launches := range p.Budgets {
				end, err := w.Study(e, launches)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Printf("%s with %d launches\n", e.Name, launches)
				for _, l := range end.Course {
					fmt.Printf("  %2d %-8s %-8s observed %8.5g  %s  %s\n", l.Trial, l.Stage, l.Observed.Status, l.Observed.Figures[workload][w.Objective.Metric], w.line(l.Config), l.Label)
				}
				fmt.Printf("  regret %.1f %%, gain %s, stated %v, shown at %d %s\n  %s\n", 100*end.Regret, gained(end.Gain), end.Stated, end.ShownAt, end.Short, end.Story)
			}
		}
	}
}

func gained(g *float64) string {
	if g == nil {
		return "none"
	}
	return fmt.Sprintf("%.1f %%", 100**g)
}

// line is what is true and what is predicted of a configuration.
func (w *World) line(c map[string]string) string {
	f, why := w.Truth(c)
	foretold, _ := w.Predict(c, workload)
	var text strings.Builder
	text.WriteString(fmt.Sprintf("true %8.5g predicted %8.5g loses %5.1f %%", f[w.Objective.Metric], foretold[w.Objective.Metric], 100*w.Regret(c)))
	for _, b := range w.Objective.SLOs {
		text.WriteString(fmt.Sprintf(" %s %.4g of %.4g", b.Metric, f[b.Metric], b.Limit))
	}
	if why != "" {
		text.WriteString(" (" + why + ")")
	}
	for _, name := range w.parameters() {
		if c[name] != "" {
			text.WriteString(" " + name + "=" + c[name])
		}
	}
	return text.String()
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

// TestCompare is the comparison in small: strategies keep their budgets and come to an
// end beside refusals and failures, the race finds what there is and claims little that
// is not, and all of it is the same again to the last digit.
func TestCompare(t *testing.T) {
	p := Plan{First: 1, Seeds: 1, Budgets: []int{12, 25}, Entrants: Entrants()}
	for _, k := range Classes() {
		p.Classes = append(p.Classes, k.Small())
	}
	c := run(t, p, nil)
	t.Log("\n" + c.Markdown())
	for i, e := range c.Entrants {
		for k := range c.Budgets {
			for _, f := range c.Fields {
				end := f.Ends[i][k]
				if end.Launches < 1 || end.Launches > c.Budgets[k] {
					t.Errorf("%s: %d launches of %d", e.Name, end.Launches, c.Budgets[k])
				}
				if yes, stated := end.Covered(); stated && !yes && (end.Stated.Low > *end.Gain+0.2 || end.Stated.High < *end.Gain-0.2) {
					t.Errorf("%s, class %s: the interval %v is far off a gain of %.3f", e.Name, c.Classes[f.Class].Name, *end.Stated, *end.Gain)
				}
			}
		}
	}
	if r := c.Regret("race", 25, ""); !(r.Median < 0.05) {
		t.Errorf("the race loses %.3f in the median", r.Median)
	}
	if random := c.Regret("random", 25, ""); !(random.Mean > 0.01) {
		t.Errorf("random draws lose %.4f on average: there is nothing to find", random.Mean)
	}
	if held := c.all(c.named("race"), -1, covered); held.all < 10 || held.share() < 0.75 {
		t.Errorf("of the intervals that the race states %v hold the true gain", held)
	}
	if wrong := c.all(c.named("tpe"), len(c.Classes)-1, claimed); wrong.yes == 0 {
		t.Error("the best of single measurements is never called better where all are equal: nothing could be found wrong")
	}
	if math.IsNaN(c.Regret("tpe", 12, "slo").Mean) {
		t.Error("a class has no figure")
	}
	p.Classes, p.Budgets, p.Entrants = p.Classes[3:5], p.Budgets[:1], p.Entrants[:4]
	if a, b := run(t, p, nil).Markdown(), run(t, p, nil).Markdown(); a != b {
		t.Errorf("run again the landscapes say otherwise:\n%s\n%s", a, b)
	}
}
