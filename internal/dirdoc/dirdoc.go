// Package dirdoc makes the documents of directories: of a run, a series, a study, an import,
// or of several runs side by side, as `perflab report` prints them and the pages of a laboratory
// show them.
//
//	d, err := dirdoc.Open([]string{"perflab-out/quickstart"}, dirdoc.Options{})
//	err = doc.HTML(w, d.Page())
//
// Invariants: a document is made of what the directory holds now; the figures of runs are those
// of their calls. An option that cannot be followed is an *OptionError, most with its path (field.Error);
// a directory that holds nothing of ours is a *NothingError.
//
// The package is apart because report is pure, and both the terminal and the pages need what
// it opens.
package dirdoc

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/block"
	"perflab/internal/field"
	"perflab/internal/outcome"
	"perflab/internal/report"
	"perflab/internal/report/doc"
	"perflab/internal/report/runplot"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/seriesdoc"
	"perflab/internal/source"
)

// Options say how a document is made. The zero value is what a reader expects.
type Options struct {
	Layout      string    // of blocks: vllm or gpustack; "": the study's, or vllm
	Sections    []string  // of blocks; nil: those that are usual
	Percentiles []float64 // of blocks; nil: those of the run
	Again       bool      // of a very long run every call, and not its digest
	Spans       string    // file of the engine's spans of a run; "": the run directory's, where it has one

	Invoked string // the command line that makes the document again; "": none
	Version string // of perflab
}

// sections are those of a block where nobody names others.
var sections = []string{"ttft", "tpot", "itl", "e2el"}

// Document is what a directory has to say.
type Document struct {
	doc.Document
	Damage string      // what could not be read, one sentence
	Run    *rundir.Run // nil: it is not of a single run

	page func() doc.Document // where a page has more than text has
}

// Page is the document that a page shows: it may have plots that cost a reading of calls.
func (d Document) Page() doc.Document {
	if d.page != nil {
		return d.page()
	}
	return d.Document
}

// NothingError is a directory that holds nothing of perflab.
type NothingError struct{ Dir string }

// OptionError is an option that cannot be followed.
type OptionError struct{ err error }

func (e *OptionError) Error() string { return e.err.Error() }

func (e *OptionError) Unwrap() error { return e.err }

// option is the error of the option at a path.
func option(path, format string, args ...any) error {
	return &OptionError{field.Errorf(path, format, args...)}
}

func (e *NothingError) Error() string {
	return e.Dir + " holds no run (header.json), no series of runs (sweep.json, repeat.json), no study (study.json) and no import (import.json)"
}

// Open makes the document of directories. Several must be of runs or imports.
func Open(dirs []string, o Options) (Document, error) {
	dirs = source.WithoutImportFiles(dirs)
	for _, dir := range dirs {
		if !rundir.IsStudy(dir) && !rundir.IsRun(dir) && !rundir.IsSeries(dir) && !rundir.IsImport(dir) {
			return Document{}, &NothingError{Dir: dir}
		}
	}
	if o.Again && slices.ContainsFunc(dirs, func(dir string) bool { return !rundir.IsRun(dir) }) {
		return Document{}, option("from_calls", "is of runs: name run directories")
	}
	if o.Spans != "" && (len(dirs) > 1 || !rundir.IsRun(dirs[0])) {
		return Document{}, option("spans", "is of the calls of one run: give one run directory")
	}
	switch {
	case slices.ContainsFunc(dirs, rundir.IsImport):
		return o.imported(dirs)
	case len(dirs) > 1:
		return o.runs(dirs)
	case rundir.IsStudy(dirs[0]):
		return o.study(dirs[0])
	case rundir.IsSeries(dirs[0]):
		return o.series(dirs[0])
	}
	return o.run(dirs[0])
}

func (o Options) study(dir string) (Document, error) {
	if !slices.Contains([]string{"", result.VLLM, block.GPUStack}, o.Layout) {
		return Document{}, option("block", "%q is not known: vllm or gpustack", o.Layout)
	}
	s, err := rundir.OpenStudy(dir)
	if err != nil {
		return Document{}, err
	}
	d, err := report.Study(s, StudyOptions(dir, s, o.Layout))
	return Document{Document: d}, err
}

// StudyOptions are those of the report of a study, with the plots of the run that stands for
// what it recommends.
func StudyOptions(dir string, s outcome.Study, layout string) report.Options {
	o := report.Options{Dir: dir, Block: cmp.Or(layout, s.Block), Repeat: "perflab tune study.yaml --out NEW"}
	if s.Recommended == nil {
		return o
	}
	for _, t := range s.Trials {
		if t.ID != s.Recommended.Trial || len(t.Runs) == 0 {
			continue
		}
		if r, err := rundir.OpenRun(filepath.Join(dir, t.Runs[0].Dir)); err == nil {
			o.Host = r.Header.Host
			o.Extra = runplot.Plots(r.Header, r.Calls, r.Every, r.Readings, "")
		}
	}
	return o
}

func (o Options) openRun(dir string) (*rundir.Run, error) {
	if o.Again {
		return rundir.OpenCalls(dir)
	}
	return rundir.OpenRun(dir)
}

func (o Options) run(dir string) (Document, error) {
	r, err := o.openRun(dir)
	if err != nil {
		return Document{}, err
	}
	percentiles := o.Percentiles
	if percentiles == nil {
		percentiles = r.Percentiles()
	}
	r.Header.Invoked = bench.Repeated(r.Header)
	s, err := r.Resummarise(percentiles...)
	if err != nil {
		return Document{}, err
	}
	style := block.Style{Layout: o.Layout, Sections: o.Sections, Percentiles: percentiles}
	if st, ok := report.ImportedStyle(r.Header, percentiles); ok {
		style.Layout = cmp.Or(style.Layout, st.Layout)
		if style.Sections == nil {
			style.Sections = st.Sections
		}
	}
	if style.Sections == nil {
		style.Sections = sections
	}
	if err := style.Validate(); err != nil {
		return Document{}, &OptionError{err}
	}
	d, err := report.Run(r.Header, s, style, r.Calls, r.Readings)
	if err != nil {
		return Document{}, err
	}
	damage, err := o.addSpans(&d, r)
	return Document{Document: d, Damage: strings.Trim(r.Damage+"; "+damage, "; "), Run: r}, err
}

// imported lists the runs of imported files, a row each.
func (o Options) imported(dirs []string) (Document, error) {
	var all, names []string
	for _, dir := range dirs {
		if !rundir.IsImport(dir) {
			all, names = append(all, dir), append(names, dir)
			continue
		}
		runs, err := rundir.OpenImport(dir)
		if err != nil {
			return Document{}, err
		}
		if len(runs) == 0 {
			return Document{}, fmt.Errorf("nothing of the file in %s could be imported: its import.json says why", dir)
		}
		all, names = append(all, runs...), append(names, filepath.Base(dir))
	}
	if len(all) == 1 {
		return o.run(all[0])
	}
	sides, damage, err := o.Sides(all)
	if err != nil {
		return Document{}, err
	}
	l := report.List{Title: fmt.Sprintf("%d runs of %s", len(all), strings.Join(names, ", ")), Sides: sides}
	return Document{Document: o.repeated(l.Document()), Damage: damage}, nil
}

// runs shows run directories side by side.
func (o Options) runs(dirs []string) (Document, error) {
	sides, damage, err := o.Sides(dirs)
	if err != nil {
		return Document{}, err
	}
	return Document{Document: o.repeated(report.Runs(sides)), Damage: damage}, nil
}

// repeated is a list of runs with the command that makes it.
func (o Options) repeated(d doc.Document) doc.Document {
	report.AddRepeat(&d, o.Invoked, report.Fact{Label: "Made by", Value: "perflab " + o.Version})
	return d
}

// Sides reads several runs that are shown in one table. damage says what of them could not
// be read.
func (o Options) Sides(dirs []string) (sides []report.Side, damage string, err error) {
	for _, x := range []struct {
		path  string
		given bool
	}{{"block", o.Layout != ""}, {"percentile_metrics", o.Sections != nil}, {"metric_percentiles", o.Percentiles != nil}} {
		if x.given {
			return nil, "", option(x.path, "is of a block, and several runs are shown as one table: give one run directory")
		}
	}
	for _, dir := range dirs {
		if rundir.IsStudy(dir) {
			return nil, "", option("", "%s is a study: only runs are shown side by side", dir)
		}
		if rundir.IsSeries(dir) {
			return nil, "", option("", "%s is a series: name the runs in it to see some side by side, or it alone", dir)
		}
		r, err := o.openRun(dir)
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

// series opens a series' directory.
func (o Options) series(dir string) (Document, error) {
	if o.Layout != "" {
		return Document{}, option("block", "is of a single run: give one of the run directories in %s", dir)
	}
	percentiles := o.Percentiles
	if percentiles == nil {
		percentiles = []float64{99}
	}
	facts, damage, err := bench.OpenSeries(dir, percentiles...)
	if err != nil {
		return Document{}, err
	}
	if o.Sections != nil && facts.Kind != bench.KindRepeat {
		return Document{}, option("percentile_metrics", "is of a block or a repeated run: the table of a %s has all", facts.Kind)
	}
	st := block.Style{Sections: o.Sections, Percentiles: percentiles}
	if facts.Percentiles != nil && o.Percentiles == nil {
		st.Percentiles = facts.Percentiles
	}
	if st.Sections == nil {
		st.Sections = facts.Sections
	}
	if st.Sections == nil {
		st.Sections = sections
	}
	if err := st.Validate(); err != nil {
		return Document{}, &OptionError{err}
	}
	d := Series(facts, dir, st)
	d.Damage = strings.Join(damage, "; ")
	return d, nil
}

// Series is the document of a series. dir is where its runs are; st says which latencies and
// percentiles.
func Series(facts *bench.SeriesFacts, dir string, st block.Style) Document {
	if facts.Kind == bench.KindRepeat {
		r := seriesdoc.Repeat(facts, dir)
		return Document{Document: r.Document(st), page: func() doc.Document { return seriesdoc.AddCalls(r, dir).Document(st) }}
	}
	c := seriesdoc.Curve(facts)
	c.Percentiles = st.Percentiles
	d := c.Document()
	seriesdoc.AddRules(&d, facts)
	return Document{Document: d}
}
