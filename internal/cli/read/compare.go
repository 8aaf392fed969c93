package read

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/compare"
	"perflab/internal/load"
	"perflab/internal/report"
	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/source"
)

type compareFlags struct {
	metrics string
	all     bool
	by      string
	failIf  []string
	format  string
	out     string
	html    string
	junit   string
}

// NewCompare is perflab compare: runs held against each other.
func NewCompare(env console.Env) *cobra.Command {
	f := &compareFlags{}
	c := &cobra.Command{
		Use:   "compare A B [C...]",
		Short: "Compare runs: ratios with intervals, what else differs, and a check that fails on a regression",
		Long: `Compare runs with the first of them. Each argument is a run directory, the
directory of bench --repeat, another client's result file, or NAME=A,B,...:
several runs that are one side, each one observation. Of a file with several
results, FILE#3 is the third and FILE:86 the one on line 86. The directory of
an import stands for all its runs when it is the only argument.

The interval of a ratio is of 95 %: Welch's over the runs of a side where there
are several, else from one run each, cut into blocks of time, each block beside
the one at the same place of the other run; it errs on the wide side, and does
not hold what a restart of the server would change. Where none can be had (a
burst, an overloaded server, figures without calls) the row says why. Figures
of different definitions are never compared; facts in which the sides differ
besides the one compared (--by, or the only one) are warnings.

--fail-if METRIC > LIMIT makes it a check, held against every side but the
first: 1.05x or +5% is a ratio to the first side and fails when a difference is
shown too; a plain limit is of the figure itself. What is missing or cannot be
compared fails.

Exit status: 0 done, 3 a condition failed, 4 a side is void.`,
		Example: `  perflab compare runs/before runs/after
  perflab compare runs/before runs/after --fail-if 'p99_ttft_ms > 1.05x' --fail-if 'output_throughput < 0.95x'
  perflab compare old=runs/a1,runs/a2,runs/a3 new=runs/b1,runs/b2,runs/b3 --html compare.html
  perflab compare perflab-out/imported/published
  perflab compare vllm-old.json vllm-new.json --format md
  perflab compare runs/mine guidellm/benchmarks.json
  perflab compare report.md#1 report.md#4 --by engine`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 1 && !rundir.IsImport(args[0]) {
				return console.WantArgs(2, "two sides at least, a run each")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return runCompare(env, f, c.Flags(), args)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.metrics, "metrics", "", "figures to compare, with commas (default those of the block)")
	fs.BoolVar(&f.all, "all", false, "compare every figure that a side has")
	fs.StringVar(&f.by, "by", "", "the fact that is compared, as engine, model, rate; all others that differ are warnings")
	fs.StringArrayVar(&f.failIf, "fail-if", nil, "exit 3 when this holds, as 'p99_ttft_ms > 1.05x' (may be repeated)")
	fs.StringVar(&f.format, "format", "text", "what to print: text, md (a pull-request comment) or json")
	fs.StringVar(&f.out, "out", "", "file to print it to (default standard output)")
	fs.StringVar(&f.html, "html", "", "write the comparison as one self-contained HTML file")
	fs.StringVar(&f.junit, "junit", "", "write the conditions as a JUnit file, one test case each")
	return c
}

// comparison is what a command line compares, with its rulings.
type comparison struct {
	compare.Comparison
	rulings []compare.Ruling
}

func runCompare(env console.Env, f *compareFlags, fs *pflag.FlagSet, args []string) error {
	if f.format != "text" && f.format != "md" && f.format != "json" {
		return console.Usage(errors.New("--format is text, md or json; for a page give --html FILE"))
	}
	o, conditions, err := f.parse()
	if err != nil {
		return console.Usage(err)
	}
	if f.junit != "" && len(conditions) == 0 {
		return console.Usage(errors.New("--junit is of conditions, and there is none: give --fail-if"))
	}
	sides, damage, err := source.Sides(args, bench.PercentilesOf(append(slices.Clone(o.Metrics), o.Also...)...))
	if err != nil {
		return err
	}
	for _, text := range damage {
		fmt.Fprintf(env.Stderr, "perflab: not everything could be read: %s\n", text)
	}
	c := comparison{}
	if c.Comparison, err = compare.New(sides, o); err != nil {
		return console.Usage(err)
	}
	c.rulings = c.Rule(conditions)
	if f.html == "" && f.junit == "" || fs.Changed("format") || fs.Changed("out") {
		if err := f.print(env, c); err != nil {
			return err
		}
	}
	page := func(w io.Writer) error {
		d := report.Compare(c.Comparison, c.rulings)
		report.AddRepeat(&d, env.Invocation(), report.Fact{Label: "Compared by", Value: "perflab " + env.Version})
		return doc.HTML(w, d)
	}
	junit := func(w io.Writer) error { return report.JUnit(w, c.Comparison, c.rulings) }
	for _, x := range []struct {
		path, what string
		write      func(io.Writer) error
	}{{f.html, "comparison", page}, {f.junit, "conditions", junit}} {
		if x.path == "" {
			continue
		}
		if err := env.WriteText(x.path, x.write); err != nil {
			return err
		}
		fmt.Fprintf(env.Stderr, "%s: %s\n", x.what, x.path)
	}
	return c.end()
}

// parse reads the options and the conditions, whose figures are compared too.
func (f *compareFlags) parse() (compare.Options, []compare.Condition, error) {
	o := compare.Options{All: f.all, By: f.by}
	if f.metrics != "" {
		for name := range strings.SplitSeq(f.metrics, ",") {
			if _, err := result.Lookup(name); err != nil {
				return o, nil, err
			}
			o.Metrics = append(o.Metrics, name)
		}
	}
	var conditions []compare.Condition
	for _, text := range f.failIf {
		k, err := compare.ParseCondition(text)
		if err != nil {
			return o, nil, err
		}
		conditions = append(conditions, k)
		o.Also = append(o.Also, k.Metric.Name)
	}
	return o, conditions, nil
}

func (f *compareFlags) print(env console.Env, c comparison) error {
	d := report.Compare(c.Comparison, c.rulings)
	write := func(w io.Writer) error { return doc.Text(w, d) }
	switch f.format {
	case "md":
		write = func(w io.Writer) error { return doc.Markdown(w, d) }
	case "json":
		write = c.json
	}
	if f.out == "" {
		return write(env.Stdout)
	}
	return env.WriteText(f.out, write)
}

// json writes the comparison with the conditions held against it.
func (c comparison) json(w io.Writer) error {
	b, err := json.MarshalIndent(struct {
		compare.Comparison
		Rulings []compare.Ruling `json:"conditions"`
	}{c.Comparison, c.rulings}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the comparison: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}

// end is how the command ends when all was shown.
func (c comparison) end() error {
	for _, s := range c.Sides {
		if s.Void != "" {
			return &load.VoidError{Reason: s.Name + ": " + s.Void}
		}
	}
	failed := 0
	for _, r := range c.rulings {
		if r.Failed {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d conditions failed: %w", failed, len(c.rulings), console.ErrRegression)
	}
	return nil
}
