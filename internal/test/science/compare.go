package science

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"perflab/internal/stat"
)

// Comparison is how strategies did on landscapes.
type Comparison struct {
	Setup  Setup
	Seeds  int
	Names  []string // of the strategies
	Fields []Standing
}

// Standing is one landscape with the studies on it, by strategy and seed.
type Standing struct {
	Landscape Landscape
	Size      int     // configurations that can be started
	Gain      float64 // of the best over the baseline: 0.5 is half as much again
	Ends      [][]End
}

// Compare runs every strategy on every landscape, with each of so many seeds.
// Progress is called after each landscape.
func Compare(landscapes []Landscape, entrants []Entrant, setup Setup, seeds int, progress func(Standing)) (Comparison, error) {
	c := Comparison{Setup: setup, Seeds: seeds}
	for _, e := range entrants {
		c.Names = append(c.Names, e.Name)
	}
	for _, l := range landscapes {
		w, err := Open(l)
		if err != nil {
			return c, err
		}
		s := Standing{Landscape: l, Size: w.Size(), Gain: 1/(1-w.Regret(w.Baseline)) - 1}
		if s.Ends, err = w.studies(entrants, setup, seeds); err != nil {
			return c, err
		}
		c.Fields = append(c.Fields, s)
		if progress != nil {
			progress(s)
		}
	}
	return c, nil
}

// studies runs every strategy with every seed, some at a time: no study knows of
// another.
func (w *World) studies(entrants []Entrant, setup Setup, seeds int) ([][]End, error) {
	ends := make([][]End, len(entrants))
	errs := make([]error, len(entrants)*seeds)
	next := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				e, seed := i/seeds, i%seeds
				ends[e][seed], errs[i] = w.Study(entrants[e], setup, uint64(seed+1))
			}
		})
	}
	for e := range entrants {
		ends[e] = make([]End, seeds)
	}
	for i := range len(entrants) * seeds {
		next <- i
	}
	close(next)
	wg.Wait()
	return ends, cmp.Or(errs...)
}

// regrets of a strategy on all landscapes that have something to find, or on one.
func (c Comparison) regrets(strategy int, of func(End) float64, fields ...Standing) []float64 {
	var out []float64
	for _, f := range fields {
		if f.Landscape.Equal {
			continue
		}
		for _, e := range f.Ends[strategy] {
			out = append(out, of(e))
		}
	}
	slices.Sort(out)
	return out
}

func final(e End) float64 { return e.Regret }

// Regret is a quantile of the regret of a strategy over all landscapes and seeds.
func (c Comparison) Regret(strategy string, q float64) float64 {
	i := slices.Index(c.Names, strategy)
	if i < 0 {
		return math.NaN()
	}
	return stat.Quantile(c.regrets(i, final, c.Fields...), q)
}

// False is how many of a strategy's studies of landscapes without a difference
// claim one, and how many there were.
func (c Comparison) False(strategy string) (claims, studies int) {
	i := slices.Index(c.Names, strategy)
	for _, f := range c.Fields {
		if !f.Landscape.Equal || i < 0 {
			continue
		}
		for _, e := range f.Ends[i] {
			studies++
			if e.Claimed {
				claims++
			}
		}
	}
	return claims, studies
}

// Short are the studies of a strategy that ended before their work was done.
func (c Comparison) Short(strategy string) []string {
	var out []string
	i := slices.Index(c.Names, strategy)
	for _, f := range c.Fields {
		for seed, e := range f.Ends[max(i, 0)] {
			if i >= 0 && e.Short != "" {
				out = append(out, fmt.Sprintf("%s, seed %d: %s", f.Landscape.Name, seed+1, e.Short))
			}
		}
	}
	return out
}

// Markdown are the tables of a comparison.
func (c Comparison) Markdown() string {
	var b strings.Builder
	c.summary(&b)
	b.WriteString("\n")
	c.courses(&b)
	b.WriteString("\n")
	c.landscapes(&b)
	b.WriteString("\n")
	c.equals(&b)
	return b.String()
}

func (c Comparison) row(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func (c Comparison) rule(b *strings.Builder, left, right int) {
	b.WriteString("|" + strings.Repeat(" --- |", left) + strings.Repeat(" ---: |", right) + "\n")
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// summary has a line for each strategy.
func (c Comparison) summary(b *strings.Builder) {
	tuned := 0
	for _, f := range c.Fields {
		if !f.Landscape.Equal {
			tuned++
		}
	}
	fmt.Fprintf(b, "%d landscapes with something to find, %d without; %d seeds; %d launches a study. SIMULATED throughout.\n\n",
		tuned, len(c.Fields)-tuned, c.Seeds, c.Setup.Launches)
	c.row(b, "strategy", "median regret", "mean", "90th percentile", "within 2 % of the best", "all lost", "launches", "false \"better\"", "ended short")
	c.rule(b, 1, 8)
	for i, name := range c.Names {
		r := c.regrets(i, final, c.Fields...)
		near, launches, n, lost := 0, 0, 0, 0
		for _, f := range c.Fields {
			for _, e := range f.Ends[i] {
				launches, n = launches+e.Launches, n+1
				if !f.Landscape.Equal && e.Regret < 0.02 {
					near++
				}
				if !f.Landscape.Equal && e.Regret == 1 {
					lost++
				}
			}
		}
		claims, studies := c.False(name)
		c.row(b, name, percent(stat.Quantile(r, 0.5)), percent(stat.Mean(r)), percent(stat.Quantile(r, 0.9)),
			percent(float64(near)/float64(max(1, len(r)))), percent(float64(lost)/float64(max(1, len(r)))),
			fmt.Sprintf("%.1f", float64(launches)/float64(max(1, n))),
			fmt.Sprintf("%d of %d", claims, studies), fmt.Sprint(len(c.Short(name))))
	}
}

// courses have the regret of the best launched so far.
func (c Comparison) courses(b *strings.Builder) {
	b.WriteString("Regret of the best configuration launched so far, by the truth, median and 90th percentile:\n\n")
	head := []string{"strategy"}
	for _, m := range c.Setup.Marks {
		head = append(head, fmt.Sprintf("%d launches", m))
	}
	c.row(b, head...)
	c.rule(b, 1, len(c.Setup.Marks))
	for i, name := range c.Names {
		cells := []string{name}
		for k := range c.Setup.Marks {
			r := c.regrets(i, func(e End) float64 { return e.Best[k] }, c.Fields...)
			cells = append(cells, percent(stat.Quantile(r, 0.5))+" / "+percent(stat.Quantile(r, 0.9)))
		}
		c.row(b, cells...)
	}
}

// landscapes have a line each.
func (c Comparison) landscapes(b *strings.Builder) {
	b.WriteString("Regret of what is recommended, median / 90th percentile over the seeds; gain is that of the best over the baseline:\n\n")
	c.row(b, append([]string{"landscape", "what it is", "configurations", "gain"}, c.Names...)...)
	c.rule(b, 2, 2+len(c.Names))
	for _, f := range c.Fields {
		if f.Landscape.Equal {
			continue
		}
		gain := percent(f.Gain)
		if math.IsInf(f.Gain, 0) {
			gain = "the baseline misses a constraint"
		}
		cells := []string{f.Landscape.Name, f.Landscape.About, fmt.Sprint(f.Size), gain}
		for i := range c.Names {
			r := c.regrets(i, final, f)
			cells = append(cells, percent(stat.Quantile(r, 0.5))+" / "+percent(stat.Quantile(r, 0.9)))
		}
		c.row(b, cells...)
	}
}

// equals have the landscapes without a difference.
func (c Comparison) equals(b *strings.Builder) {
	b.WriteString("Studies that call something better where nothing is:\n\n")
	c.row(b, append([]string{"landscape", "what it is"}, c.Names...)...)
	c.rule(b, 2, len(c.Names))
	for _, f := range c.Fields {
		if !f.Landscape.Equal {
			continue
		}
		cells := []string{f.Landscape.Name, f.Landscape.About}
		for i := range c.Names {
			n := 0
			for _, e := range f.Ends[i] {
				if e.Claimed {
					n++
				}
			}
			cells = append(cells, fmt.Sprintf("%d of %d", n, len(f.Ends[i])))
		}
		c.row(b, cells...)
	}
}
