// Package read has the commands that take what is there already, of perflab or of others: they
// show, compare, audit and publish it, and turn it into other forms. None sends a request.
package read

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/bench"
	"perflab/internal/block"
	"perflab/internal/cli/console"
	"perflab/internal/cli/flagset"
	"perflab/internal/cli/view"
	"perflab/internal/report"
	"perflab/internal/report/doc"
	"perflab/internal/report/parquet"
	"perflab/internal/rundir"
	"perflab/internal/source"
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
  perflab report runs/after --parquet calls.parquet`,
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
	dirs = source.WithoutImportFiles(dirs)
	for _, dir := range dirs {
		if !rundir.IsStudy(dir) && !rundir.IsRun(dir) && !rundir.IsSeries(dir) && !rundir.IsImport(dir) {
			return view.Forms{}, console.Usage(fmt.Errorf("%s holds no run (header.json), no series of runs (sweep.json, repeat.json), no study (study.json) and no import (import.json)", dir))
		}
	}
	if f.again && slices.ContainsFunc(dirs, func(dir string) bool { return !rundir.IsRun(dir) }) {
		return view.Forms{}, console.Usage(errors.New("--from-calls is of runs: name run directories"))
	}
	switch {
	case slices.ContainsFunc(dirs, rundir.IsImport):
		return f.imported(fs, dirs)
	case len(dirs) > 1:
		return f.runs(fs, dirs)
	case rundir.IsStudy(dirs[0]):
		return f.study(dirs[0])
	case rundir.IsSeries(dirs[0]):
		return f.series(fs, dirs[0])
	}
	return f.run(fs, dirs[0])
}

func (f *reportFlags) study(dir string) (view.Forms, error) {
	if f.block != "" && f.block != "vllm" && f.block != "gpustack" {
		return view.Forms{}, console.Usage(fmt.Errorf("--block %q is not known: vllm or gpustack", f.block))
	}
	s, err := rundir.OpenStudy(dir)
	if err != nil {
		return view.Forms{}, err
	}
	d, err := report.Study(s, view.StudyOptions(dir, s, f.block))
	return view.Of(d), err
}

// openRun reads a run.
func (f *reportFlags) openRun(dir string) (*rundir.Run, error) {
	if f.again {
		return rundir.OpenCalls(dir)
	}
	return rundir.OpenRun(dir)
}

func (f *reportFlags) run(fs *pflag.FlagSet, dir string) (view.Forms, error) {
	r, err := f.openRun(dir)
	if err != nil {
		return view.Forms{}, err
	}
	percentiles := r.Percentiles()
	if f.percentiles != "" {
		if percentiles, err = flagset.Percentiles(f.percentiles); err != nil {
			return view.Forms{}, console.Usage(err)
		}
	}
	r.Header.Invoked = bench.Repeated(r.Header)
	s, err := r.Resummarise(percentiles...)
	if err != nil {
		return view.Forms{}, err
	}
	style := block.Style{Layout: f.block, Sections: strings.Split(f.sections, ","), Percentiles: percentiles}
	if st, ok := report.ImportedStyle(r.Header, percentiles); ok {
		style.Layout = cmp.Or(style.Layout, st.Layout)
		if !fs.Changed("percentile-metrics") {
			style.Sections = st.Sections
		}
	}
	d, err := report.Run(r.Header, s, style, r.Calls, r.Readings)
	if err != nil {
		return view.Forms{}, console.Usage(err)
	}
	v := view.Of(d)
	v.Parquet = func(w io.Writer) error { return parquet.Write(w, r.Header, r.All()) }
	v.Damage = r.Damage
	return v, nil
}

// imported lists the runs of imported files, a row each.
func (f *reportFlags) imported(fs *pflag.FlagSet, dirs []string) (view.Forms, error) {
	var all, names []string
	for _, dir := range dirs {
		if !rundir.IsImport(dir) {
			all, names = append(all, dir), append(names, dir)
			continue
		}
		runs, err := rundir.OpenImport(dir)
		if err != nil {
			return view.Forms{}, err
		}
		if len(runs) == 0 {
			return view.Forms{}, fmt.Errorf("nothing of the file in %s could be imported: its import.json says why", dir)
		}
		all, names = append(all, runs...), append(names, filepath.Base(dir))
	}
	if len(all) == 1 {
		return f.run(fs, all[0])
	}
	sides, damage, err := f.readSides(fs, all)
	if err != nil {
		return view.Forms{}, err
	}
	l := report.List{Title: fmt.Sprintf("%d runs of %s", len(all), strings.Join(names, ", ")), Sides: sides}
	v := view.Of(f.repeated(l.Document()))
	v.Damage = damage
	return v, nil
}

// runs shows run directories side by side.
func (f *reportFlags) runs(fs *pflag.FlagSet, dirs []string) (view.Forms, error) {
	sides, damage, err := f.readSides(fs, dirs)
	if err != nil {
		return view.Forms{}, err
	}
	v := view.Of(f.repeated(report.Runs(sides)))
	v.Damage = damage
	return v, nil
}

// repeated is a list of runs with the command that makes it.
func (f *reportFlags) repeated(d doc.Document) doc.Document {
	report.AddRepeat(&d, f.invoked, report.Fact{Label: "Made by", Value: "perflab " + f.version})
	return d
}

// readSides reads several runs that are shown in one table. damage says what
// of them could not be read.
func (f *reportFlags) readSides(fs *pflag.FlagSet, dirs []string) (sides []report.Side, damage string, err error) {
	for _, name := range []string{"block", "percentile-metrics", "metric-percentiles"} {
		if fs.Changed(name) {
			return nil, "", console.Usage(fmt.Errorf("--%s is of a block, and several runs are shown as one table: give one run directory", name))
		}
	}
	for _, dir := range dirs {
		if rundir.IsStudy(dir) {
			return nil, "", console.Usage(fmt.Errorf("%s is a study: only runs are shown side by side", dir))
		}
		if rundir.IsSeries(dir) {
			return nil, "", console.Usage(fmt.Errorf("%s is a series: name the runs in it to see some side by side, or it alone", dir))
		}
		r, err := f.openRun(dir)
		if err != nil {
			return nil, "", err
		}
		s, err := r.Resummarise()
		if err != nil {
			return nil, "", fmt.Errorf("summarise %s: %w", dir, err)
		}
		if r.Damage != "" {
			damage = dir + ": " + r.Damage
		}
		sides = append(sides, report.Side{Name: dir, Header: r.Header, Summary: s, Calls: r.Calls})
	}
	return sides, damage, nil
}

// series opens a series' directory for a report.
func (f *reportFlags) series(fs *pflag.FlagSet, dir string) (view.Forms, error) {
	if f.block != "" {
		return view.Forms{}, console.Usage(errors.New("--block is of a single run: give one of the run directories in " + dir))
	}
	percentiles, err := flagset.Percentiles(cmp.Or(f.percentiles, "99"))
	if err != nil {
		return view.Forms{}, console.Usage(err)
	}
	facts, damage, err := bench.OpenSeries(dir, percentiles...)
	if err != nil {
		return view.Forms{}, err
	}
	if fs.Changed("percentile-metrics") && facts.Kind != bench.KindRepeat {
		return view.Forms{}, console.Usage(fmt.Errorf("--percentile-metrics is of a block or a repeated run: the table of a %s has all", facts.Kind))
	}
	st := block.Style{Sections: strings.Split(f.sections, ","), Percentiles: percentiles}
	if facts.Percentiles != nil && !fs.Changed("metric-percentiles") {
		st.Percentiles = facts.Percentiles
	}
	if facts.Sections != nil && !fs.Changed("percentile-metrics") {
		st.Sections = facts.Sections
	}
	if err := st.Validate(); err != nil {
		return view.Forms{}, console.Usage(err)
	}
	v := view.Series(facts, dir, st)
	v.Damage = strings.Join(damage, "; ")
	return v, nil
}
