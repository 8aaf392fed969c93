// Package view makes of what commands show a value with its forms: text, Markdown, a page and,
// where there are calls, rows. The command that measures and the one that reads again later show
// the same by it.
package view

import (
	"cmp"
	"io"
	"path/filepath"

	"perflab/internal/bench"
	"perflab/internal/block"
	"perflab/internal/outcome"
	"perflab/internal/report"
	"perflab/internal/report/doc"
	"perflab/internal/report/runplot"
	"perflab/internal/rundir"
	"perflab/internal/seriesdoc"
)

// Forms are how a thing can be shown. Parquet is nil where there is no single run.
type Forms struct {
	Page                          func() doc.Document // that HTML writes
	Text, Markdown, HTML, Parquet func(io.Writer) error
	Damage                        string // what could not be read, one sentence
}

// Of is a document in its forms.
func Of(d doc.Document) Forms {
	return Forms{
		Page:     func() doc.Document { return d },
		Text:     func(w io.Writer) error { return doc.Text(w, d) },
		Markdown: func(w io.Writer) error { return doc.Markdown(w, d) },
		HTML:     func(w io.Writer) error { return doc.HTML(w, d) },
	}
}

// Series shows a series in the forms there are. dir is where its runs are;
// st says which latencies and percentiles.
func Series(facts *bench.SeriesFacts, dir string, st block.Style) Forms {
	if facts.Kind == bench.KindRepeat {
		r := seriesdoc.Repeat(facts, dir)
		v := Of(r.Document(st))
		v.Page = func() doc.Document { return seriesdoc.AddCalls(r, dir).Document(st) }
		v.HTML = func(w io.Writer) error { return doc.HTML(w, v.Page()) }
		return v
	}
	c := seriesdoc.Curve(facts)
	c.Percentiles = st.Percentiles
	return Of(c.Document())
}

// StudyOptions are what a study's report shows besides its facts: the layout
// of its blocks, and plots of the calls of the recommended run, where they are
// still there.
func StudyOptions(dir string, s outcome.Study, block string) report.Options {
	o := report.Options{Dir: dir, Block: cmp.Or(block, s.Block), Repeat: "perflab tune study.yaml --out NEW"}
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
