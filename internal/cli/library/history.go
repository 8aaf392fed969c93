package library

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/field"
	"perflab/internal/lineage"
	"perflab/internal/listing"
	"perflab/internal/report/doc"
	"perflab/internal/store"
	"perflab/internal/trend"
)

const historyLong = `Show how a configuration went over time: for each metric the runs that were made of it
under one workload, since when it is another, by how much, and how sure that is.
docs/history.md says what is taken for a change and how often that is wrong.

Without an argument, and with expressions as perflab list has them, it lists the
configurations, those first that need somebody. A key of that list, or the ID of a run,
shows one; expressions behind it choose among its runs.

--fail-if ends with exit status 3, for CI: worse, where the newest change of a metric is a
confirmed one for the worse; suspected, where it is one that has not lasted long enough
yet; stale, where the newest figure is unusually old. After a change that is meant to
stay, an expression such as started>=2026-11-01 has the history begin behind it.`

type historyFlags struct {
	place
	o       trend.Options
	launch  bool
	failIf  []string
	all     bool
	asJSON  bool
	percent float64
}

// NewHistory is perflab history: a configuration over time.
func NewHistory(env console.Env) *cobra.Command {
	f := &historyFlags{}
	c := &cobra.Command{
		Use:   "history [KEY|ID|EXPR...]",
		Short: "A configuration over time: since when it is faster or slower, and how sure that is",
		Long:  historyLong,
		Example: `  perflab history
  perflab history engine=vllm model=~qwen3-8b --metric p99_ttft_ms
  perflab history 4be1c20b77 'started>=2026-11-01'
  perflab history tag=nightly --fail-if worse,suspected`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), env, args) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&f.o.Metrics, "metric", nil, "figures to follow, by commas (default "+strings.Join(trend.DefaultMetrics(), ",")+")")
	fs.BoolVar(&f.launch, "launches", false, "a point is a launch, and not the median of a build's launches")
	fs.Float64Var(&f.percent, "least", 2, "least change in per cent that is reported")
	fs.IntVar(&f.o.Persist, "persist", 3, "over how many builds a change must last to be confirmed")
	fs.StringSliceVar(&f.failIf, "fail-if", nil, "end with status 3 if a metric is worse, suspected or stale; several by commas")
	fs.BoolVar(&f.all, "all", false, "list configurations with a single run too")
	fs.BoolVar(&f.asJSON, "json", false, "print points, changes and standings as JSON")
	f.add(c)
	return c
}

func (f *historyFlags) run(ctx context.Context, env console.Env, args []string) error {
	for _, x := range f.failIf {
		if x != "worse" && x != "suspected" && x != "stale" {
			return console.Usage(fmt.Errorf("--fail-if %q is none: it takes worse, suspected and stale", x))
		}
	}
	if !(f.percent > 0) || f.o.Persist < 1 {
		return console.Usage(errors.New("--least and --persist must be above 0"))
	}
	f.o.Now, f.o.Least, f.o.By = time.Now(), f.percent/100, lineage.Builds
	if f.launch {
		f.o.By = lineage.Launches
	}
	return f.with(ctx, env, func(s *store.Store) error {
		lines, err := f.lines(ctx, s, args)
		if _, ok := errors.AsType[*field.Error](err); ok {
			return console.Usage(err)
		}
		if err != nil {
			return err
		}
		if err := f.print(env, lines); err != nil {
			return err
		}
		return f.judge(lines)
	})
}

// key is how an argument looks that is no expression.
var key = regexp.MustCompile(`^[0-9a-f]{4,}$`)

// lines are what the arguments ask for: one line by its key or by a run, or those of an expression.
func (f *historyFlags) lines(ctx context.Context, s *store.Store, args []string) ([]trend.Line, error) {
	if len(args) > 0 && key.MatchString(args[0]) {
		f.o.Filter = strings.Join(args[1:], " ")
		l, err := trend.Find(ctx, s, args[0], f.o)
		if _, none := errors.AsType[*trend.NotFoundError](err); none {
			return nil, console.Usage(fmt.Errorf("there is no configuration and no run %q with a history: perflab history lists what there is", args[0]))
		}
		return []trend.Line{l}, err
	}
	f.o.Filter = strings.Join(args, " ")
	return trend.List(ctx, s, f.o)
}

func (f *historyFlags) print(env console.Env, lines []trend.Line) error {
	switch {
	case f.asJSON:
		return console.WriteJSON(env.Stdout, lines)
	case len(lines) == 0:
		fmt.Fprintln(env.Stderr, "no run has a history: one begins with the first run of a configuration (perflab bench, perflab tune)")
		return nil
	case len(lines) == 1:
		return doc.Text(env.Stdout, listing.History(lines[0], f.o.Now))
	}
	shown := lines
	if !f.all {
		shown = slices.DeleteFunc(slices.Clone(lines), func(l trend.Line) bool { return l.Runs < 2 })
	}
	if len(shown) > 0 {
		if err := doc.Text(env.Stdout, listing.Histories(shown, f.o.Now)); err != nil {
			return err
		}
		fmt.Fprintln(env.Stderr, "perflab history KEY shows one")
	}
	if n := len(lines) - len(shown); n > 0 {
		fmt.Fprintf(env.Stderr, "%d more with a single run: --all lists them\n", n)
	}
	return nil
}

// judge says what --fail-if asks for.
func (f *historyFlags) judge(lines []trend.Line) error {
	var found []string
	for _, l := range lines {
		for _, h := range l.Histories {
			is := map[string]bool{"worse": h.Standing() == trend.Worse, "suspected": h.Standing() == trend.SuspectedWorse, "stale": h.Age.Stale}
			for _, x := range f.failIf {
				if is[x] {
					found = append(found, fmt.Sprintf("%s of %s is %s", h.Metric, listing.ShortID(l.Key), map[string]string{"worse": "worse", "suspected": "suspected to be worse", "stale": "stale"}[x]))
				}
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", strings.Join(found, ", "), console.ErrWorse)
}
