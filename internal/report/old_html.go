package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"perflab/internal/report/plot"
)

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
