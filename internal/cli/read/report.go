// Package read has the commands that take what is there already, of perflab or of others: they
// show, compare, audit and publish it, and turn it into other forms. None sends a request.
package read

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/cli/console"
	"perflab/internal/cli/flagset"
	"perflab/internal/cli/view"
	"perflab/internal/dirdoc"
)

type reportFlags struct {
	format      string
	out         string
	html        string
	parquet     string
	block       string
	sections    string
	percentiles string
	again       bool // every call, and no digest
	spans       string

	invoked string // this command line
	version string
}

// NewReport is perflab report: what a directory holds as a document.
func NewReport(env console.Env) *cobra.Command {
	f := &reportFlags{}
	c := &cobra.Command{
		Use:   "report DIR...",
		Short: "Render a run, several runs, a series, a study or an import as text, Markdown or HTML",
		Long: `Render a run directory, the directory of a series (bench --sweep, --find-max,
--repeat), a study directory or the directory of an imported file again, or
several run directories side by side.
The figures of runs are computed from their calls; a partial run (DIR.tmp) is
summarised as far as it got. The figures of an imported run are those of its
file, each with the definition of the client that measured it.

With --html or --parquet the file is written and nothing is printed, unless
--format or --out ask for it too.`,
		Example: `  perflab report perflab-out/quickstart
  perflab report perflab-out/quickstart --html report.html
  perflab report perflab-out/quickstart/trials/001/chat --format md
  perflab report runs/before runs/after
  perflab report perflab-out/sweep-20260102-030405.000 --html curve.html
  perflab report runs/after --parquet calls.parquet
  perflab report runs/after --spans spans.jsonl --html report.html`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.WantArgs(1, "a run, series, study or import directory")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f.invoked, f.version = env.Invocation(), env.Version
			return runReport(env, f, c.Flags(), args)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.format, "format", "text", "what to print: text or md")
	fs.StringVar(&f.out, "out", "", "file to print it to (default standard output)")
	flagset.AddFiles(fs, &f.html, &f.parquet)
	fs.StringVar(&f.block, "block", "", "layout of result blocks: vllm or gpustack (default the study's, or vllm)")
	fs.StringVar(&f.sections, "percentile-metrics", "ttft,tpot,itl,e2el", "sections of the block")
	fs.StringVar(&f.percentiles, "metric-percentiles", "", "percentiles of the block (default those of the run)")
	fs.BoolVar(&f.again, "from-calls", false, "of a very long run, read every call again instead of its calls.digest")
	fs.StringVar(&f.spans, "spans", "", "file of the engine's spans of a run with --traceparent, as a collector writes them (OTLP/JSON): shows where slow calls spent their time (default engine-spans.jsonl in the run directory)")
	return c
}

func runReport(env console.Env, f *reportFlags, fs *pflag.FlagSet, dirs []string) error {
	if f.format == "html" {
		return console.Usage(errors.New("--format is text or md; for a page give --html FILE"))
	}
	if f.format != "text" && f.format != "md" {
		return console.Usage(errors.New("--format is text or md"))
	}
	v, err := f.open(fs, dirs)
	if err != nil {
		return err
	}
	if f.parquet != "" && v.Parquet == nil {
		return console.Usage(errors.New("--parquet is of the calls of one run: give one run directory"))
	}
	if v.Damage != "" {
		fmt.Fprintf(env.Stderr, "perflab: not everything could be read: %s\n", v.Damage)
	}
	if (f.html == "" && f.parquet == "") || fs.Changed("format") || fs.Changed("out") {
		print := v.Text
		if f.format == "md" {
			print = v.Markdown
		}
		if f.out == "" {
			err = print(env.Stdout)
		} else {
			err = env.WriteText(f.out, print)
		}
		if err != nil {
			return err
		}
	}
	return console.WriteFiles(env, f.html, v.HTML, f.parquet, v.Parquet)
}

// open reads what is to be shown.
func (f *reportFlags) open(fs *pflag.FlagSet, dirs []string) (view.Forms, error) {
	o := dirdoc.Options{Layout: f.block, Again: f.again, Spans: f.spans, Invoked: f.invoked, Version: f.version}
	if fs.Changed("percentile-metrics") {
		o.Sections = strings.Split(f.sections, ",")
	}
	if f.percentiles != "" {
		var err error
		if o.Percentiles, err = flagset.Percentiles(f.percentiles); err != nil {
			return view.Forms{}, console.Usage(err)
		}
	}
	d, err := dirdoc.Open(dirs, o)
	if err != nil {
		return view.Forms{}, usage(err)
	}
	return view.OfDirectory(d), nil
}

// usage is an error of what was asked for as one of the command line.
func usage(err error) error {
	if _, ok := errors.AsType[*dirdoc.OptionError](err); ok {
		return console.Usage(err)
	}
	if _, ok := errors.AsType[*dirdoc.NothingError](err); ok {
		return console.Usage(err)
	}
	return err
}
