package science

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/stat"
)

// Markdown are the tables of a comparison.
func (c Comparison) Markdown() string {
	var b strings.Builder
	tuned := 0
	for _, k := range c.Classes {
		if !k.equal {
			tuned++
		}
	}
	fmt.Fprintf(&b, "%d classes with something to find, %d without, %d landscapes of each (seeds %d to %d). SIMULATED throughout.\n\n",
		tuned, len(c.Classes)-tuned, c.Seeds, c.First, c.First+uint64(c.Seeds)-1)
	if tuned > 0 {
		c.summary(&b)
		for i := range c.Budgets {
			b.WriteString("\n")
			c.classes(&b, i)
		}
		b.WriteString("\n")
		c.coverage(&b)
	}
	if tuned < len(c.Classes) {
		b.WriteString("\n")
		c.equals(&b)
	}
	return b.String()
}

func row(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func rule(b *strings.Builder, left, right int) {
	b.WriteString("|" + strings.Repeat(" --- |", left) + strings.Repeat(" ---: |", right) + "\n")
}

func percent(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*x)
}

func ratio(a, b float64) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}

func (t tally) String() string {
	if t.all == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", t.yes, t.all)
}

func (t tally) percent() string {
	if t.all == 0 {
		return "-"
	}
	return percent(t.share())
}

// summary has a line for each budget and strategy.
func (c Comparison) summary(b *strings.Builder) {
	b.WriteString("All classes with something to find:\n\n")
	row(b, "budget", "strategy", "median regret", "mean", "P90", "P95", "within 2 %", "all lost", "best launched, mean", "launches", "gain shown", "at launch", "interval holds", "a setting too many", "ended short")
	rule(b, 2, 13)
	for k, budget := range c.Budgets {
		for i, e := range c.Entrants {
			ends := c.ends(i, k, -1)
			s := spreadOf(ends, final)
			launches := spreadOf(ends, func(e End) float64 { return float64(e.Launches) }).Mean
			shown := slices.DeleteFunc(slices.Clone(ends), func(e End) bool { return e.ShownAt == 0 })
			proof, at := "-", "-"
			if len(shown) > 0 {
				proof = counted(ends, proven).percent()
				at = fmt.Sprintf("%.1f", spreadOf(shown, func(e End) float64 { return float64(e.ShownAt) }).Mean)
			}
			row(b, fmt.Sprint(budget), e.Name, percent(s.Median), percent(s.Mean), percent(s.P90), percent(s.P95), counted(ends, near).percent(), counted(ends, lost).percent(),
				percent(spreadOf(ends, reached).Mean), fmt.Sprintf("%.1f", launches), proof, at, counted(ends, covered).percent(), counted(ends, idle).percent(), fmt.Sprint(counted(ends, ended).yes))
		}
	}
}

// named is the place of a strategy, -1 where it does not take part.
func (c Comparison) named(name string) int {
	return slices.IndexFunc(c.Entrants, func(e Entrant) bool { return e.Name == name })
}

// classes have a line each.
func (c Comparison) classes(b *strings.Builder, budget int) {
	fmt.Fprintf(b, "Regret with %d launches, median / mean / P90 / P95:\n\n", c.Budgets[budget])
	race, tpe := c.named("race"), c.named("tpe")
	head := []string{"class", "what it is"}
	for _, e := range c.Entrants {
		head = append(head, e.Name)
	}
	if race >= 0 && tpe >= 0 {
		head = append(head, "race / tpe, means")
	}
	row(b, head...)
	rule(b, 2, len(head)-2)
	for k, class := range c.Classes {
		if class.equal {
			continue
		}
		cells := []string{class.Name, class.About}
		for i := range c.Entrants {
			s := spreadOf(c.ends(i, budget, k), final)
			cells = append(cells, fmt.Sprintf("%.1f / %.1f / %.1f / %.1f %%", 100*s.Median, 100*s.Mean, 100*s.P90, 100*s.P95))
		}
		if race >= 0 && tpe >= 0 {
			cells = append(cells, ratio(spreadOf(c.ends(race, budget, k), final).Mean, spreadOf(c.ends(tpe, budget, k), final).Mean))
		}
		row(b, cells...)
	}
}

// coverage is of the strategies that state an interval.
func (c Comparison) coverage(b *strings.Builder) {
	b.WriteString("Stated intervals of the gain that hold the true gain, all budgets:\n\n")
	var stating []int
	head := []string{"class"}
	for i, e := range c.Entrants {
		if c.all(i, -1, covered).all > 0 {
			stating, head = append(stating, i), append(head, e.Name)
		}
	}
	row(b, head...)
	rule(b, 1, len(stating))
	total := make([]tally, len(stating))
	for k, class := range c.Classes {
		cells := []string{class.Name}
		for n, i := range stating {
			t := c.all(i, k, covered)
			total[n] = total[n].with(t)
			cells = append(cells, t.String())
		}
		row(b, cells...)
	}
	cells := []string{"all"}
	for _, t := range total {
		cells = append(cells, t.String()+" ("+t.percent()+")")
	}
	row(b, cells...)
}

// equals have the classes without a difference.
func (c Comparison) equals(b *strings.Builder) {
	b.WriteString("Studies that call something better where nothing is, all budgets:\n\n")
	head := []string{"class", "what it is"}
	for _, e := range c.Entrants {
		head = append(head, e.Name)
	}
	row(b, head...)
	rule(b, 2, len(c.Entrants))
	total := make([]tally, len(c.Entrants))
	for k, class := range c.Classes {
		if !class.equal {
			continue
		}
		cells := []string{class.Name, class.About}
		for i := range c.Entrants {
			t := c.all(i, k, claimed)
			total[i] = total[i].with(t)
			cells = append(cells, t.String())
		}
		row(b, cells...)
	}
	cells := []string{"all", ""}
	for _, t := range total {
		cells = append(cells, t.String()+" ("+t.percent()+")")
	}
	row(b, cells...)
}

// behind names the classes in which the race loses more than so many times what TPE does.
func (c Comparison) behind(b *strings.Builder) {
	const most = 1.2
	race, tpe := c.named("race"), c.named("tpe")
	if race < 0 || tpe < 0 {
		return
	}
	for i, budget := range c.Budgets {
		var names []string
		for k, class := range c.Classes {
			mine, others := spreadOf(c.ends(race, i, k), final).Mean, spreadOf(c.ends(tpe, i, k), final).Mean
			if !class.equal && mine > most*others {
				names = append(names, fmt.Sprintf("%s (%s)", class.Name, ratio(mine, others)))
			}
		}
		fmt.Fprintf(b, "race over %g times tpe with %d launches: %s\n", most, budget, cmp.Or(strings.Join(names, ", "), "in no class"))
	}
}

// Brief has a line for each class, budget and strategy: what a developer looks at.
func (c Comparison) Brief() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-17s %6s %-12s %7s %7s %6s %7s %7s | %8s %8s | %6s %8s %6s %6s | %5s %s\n", "class", "budget", "strategy", "median", "mean", "+-", "P90", "P95", "launched", "within2%", "shown", "covered", "false", "idle", "n", "short")
	line := func(name string, class int) {
		for k, budget := range c.Budgets {
			for i, e := range c.Entrants {
				ends := c.ends(i, k, class)
				s := spreadOf(ends, final)
				wrong := "-"
				if class >= 0 && c.Classes[class].equal {
					wrong = counted(ends, claimed).percent()
				}
				fmt.Fprintf(&b, "%-17s %6d %-12s %7.2f %7.2f %6.2f %7.2f %7.2f | %8.2f %8s | %6s %8s %6s %6s | %5.1f %d\n", name, budget, e.Name, 100*s.Median, 100*s.Mean, 100*s.Error, 100*s.P90, 100*s.P95,
					100*spreadOf(ends, reached).Mean, counted(ends, near).percent(), counted(ends, proven).percent(), counted(ends, covered), wrong, counted(ends, idle).percent(),
					spreadOf(ends, func(e End) float64 { return float64(e.Launches) }).Mean, counted(ends, ended).yes)
			}
		}
	}
	for k, class := range c.Classes {
		line(class.Name, k)
	}
	line("ALL", -1)
	c.behind(&b)
	c.paired(&b)
	return b.String()
}

// paired has what the race loses less on each landscape than the untaught one, with the standard
// error of the mean.
func (c Comparison) paired(b *strings.Builder) {
	race, untaught := c.named("race"), c.named(Untaught().Name)
	if race < 0 || untaught < 0 {
		return
	}
	for k, budget := range c.Budgets {
		for class := -1; class < len(c.Classes); class++ {
			name := "ALL"
			if class >= 0 {
				name = c.Classes[class].Name
			}
			taught, less := c.ends(race, k, class), []float64(nil)
			for n, e := range c.ends(untaught, k, class) {
				less = append(less, e.Regret-taught[n].Regret)
			}
			fmt.Fprintf(b, "%-17s %6d race loses less than untaught by %+6.2f +- %.2f\n", name, budget, 100*stat.Mean(less), 100*stat.StdDev(less)/math.Sqrt(float64(len(less))))
		}
	}
}
