package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// HTML writes a study as one page that needs no other file: style, script and
// plots are inside, and its content policy forbids the browser to fetch
// anything.
func HTML(w io.Writer, s result.Study, o Options) error {
	if err := o.style(metric(s.Objective.Metric)).Validate(); err != nil {
		return err
	}
	return page(w, "study.html", "the study "+s.Name, newDocument(s, o))
}

// RunHTML writes a run as one page that needs no other file, with the plots of
// its calls and of the readings beside them.
func RunHTML(w io.Writer, h result.Header, s result.Summary, st result.Style, calls []result.Call, readings []result.Reading) error {
	if err := st.Validate(); err != nil {
		return err
	}
	r := newRun(h, s, st, calls)
	r.Plots = RunPlots(h, calls, readings, s.Compat)
	return page(w, "run.html", "the run of "+h.Model, r)
}

//go:embed page
var pageFiles embed.FS

func page(w io.Writer, name, what string, data any) error {
	t, err := template.New(name).Funcs(template.FuncMap{
		"style": func() (template.CSS, error) {
			b, err := pageFiles.ReadFile("page/page.css")
			return template.CSS(string(b) + plot.Style), err
		},
		"script": func() (template.JS, error) { b, err := pageFiles.ReadFile("page/page.js"); return template.JS(b), err },
		"svg":    func(p plot.Plot) template.HTML { return template.HTML(p.Inline()) },
		"half":   func(p plot.Plot) bool { return p.Half },
		"bench":  benchScript,
		"load":   loadLine,
		"join":   strings.Join,
		"wrap":   wrapCommand,
	}).ParseFS(pageFiles, "page/*.html")
	if err != nil {
		return fmt.Errorf("parse the templates of the page: %w", err)
	}
	if err := t.ExecuteTemplate(w, name, data); err != nil {
		return fmt.Errorf("write %s as HTML: %w", what, err)
	}
	return nil
}
