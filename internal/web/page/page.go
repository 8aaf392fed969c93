// Package page is what the screens of the laboratory have in common: the frame around each,
// how addresses are served, how figures, ages and verdicts are written, how errors are shown,
// and streams of events.
//
//	//go:embed *.html
//	var files embed.FS
//
//	t := pages.Template(files, "runs.html") // defines "main"
//	routes := []page.Route{{Pattern: "GET /runs", Role: guard.Read, Serve: func(w http.ResponseWriter, r *http.Request) error {
//		return pages.Show(w, r, t, page.View{Title: "Runs", Nav: "runs", Data: rows})
//	}}}
//
// Invariants: all text is escaped where it is written (html/template); no page has a script or
// a style inside, nor needs a script to be read. A figure is written by its row of the metric
// table. What has no value is a dash, never zero.
//
// Deliberately absent: knowledge of runs and studies.
package page

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"perflab/internal/redact"
	"perflab/internal/web/guard"
)

// Options say what all pages share.
type Options struct {
	Lab     string                   // the name of the laboratory
	Version string                   // of perflab
	Asset   func(name string) string // the address of an embedded file
	Tokens  bool                     // who comes has to log in, and can log out
}

// Pages shows pages.
type Pages struct {
	o       Options
	problem *Template
}

// New makes pages.
func New(o Options) *Pages {
	o.Lab = cmp.Or(o.Lab, "perflab")
	if o.Asset == nil {
		o.Asset = func(name string) string { return "/assets/" + name }
	}
	p := &Pages{o: o}
	p.problem = p.Template(frames, "problem.html")
	return p
}

// Screen is an entry of the navigation.
type Screen struct {
	Name  string // View.Nav of its pages
	Title string
	Path  string
	Key   string // g and this key lead to it
	Role  guard.Role
}

// Screens are the entries of the navigation.
func Screens() []Screen {
	return []Screen{
		{"runs", "Runs", "/runs", "r", guard.Read},
		{"studies", "Studies", "/studies", "s", guard.Read},
		{"compare", "Compare", "/compare", "c", guard.Read},
		{"history", "History", "/history", "h", guard.Read},
		{"launch", "Launch", "/launch", "l", guard.Read},
		{"fleet", "Fleet", "/fleet", "f", guard.Read},
		{"hardware", "Models and hardware", "/hardware", "m", guard.Read},
		{"import", "Import", "/import", "i", guard.Launch},
		{"sites", "Sites", "/sites", "p", guard.Read},
	}
}

// screens are those that somebody may see.
func screens(who guard.Who) []Screen {
	return slices.DeleteFunc(Screens(), func(s Screen) bool { return !who.May(s.Role) })
}

// View is what one page shows.
type View struct {
	Title   string
	Nav     string   // the Screen that it belongs to
	Banner  string   // above everything else, as for what a simulator made
	Styles  []string // assets beside app.css
	Modules []string // assets: ES modules beside app.js
	Data    any      // for the template "main"
	Main    Main     // what that template made of it before; "": it is made now
}

// Main is what stands between the frame of a page, made by Pages.Main.
type Main = template.HTML

// Template is a page's template, within the frame.
type Template struct{ t *template.Template }

// Template reads templates of a screen; one of them defines "main". It panics on one that
// cannot be parsed: they are part of the program.
func (p *Pages) Template(files fs.FS, names ...string) *Template {
	t := template.New("frame.html").Funcs(p.functions())
	t = template.Must(t.ParseFS(frames, "*.html"))
	return &Template{template.Must(t.ParseFS(files, names...))}
}

// frame is what the frame's template takes.
type frame struct {
	View
	Lab, Version string
	Screens      []Screen
	Tokens       bool
	Who          guard.Who
	Path         string // with its query: where a login leads back to
}

// Show writes a page. Nothing is written where the template fails.
func (p *Pages) Show(w http.ResponseWriter, r *http.Request, t *Template, v View) error {
	return p.ShowStatus(w, r, http.StatusOK, t, v)
}

// ShowStatus is Show with a status.
func (p *Pages) ShowStatus(w http.ResponseWriter, r *http.Request, status int, t *Template, v View) error {
	var b bytes.Buffer
	who := guard.From(r.Context())
	f := frame{View: v, Lab: p.o.Lab, Version: p.o.Version, Screens: screens(who), Tokens: p.o.Tokens, Who: who, Path: r.URL.RequestURI()}
	if err := t.t.ExecuteTemplate(&b, "frame.html", f); err != nil {
		return fmt.Errorf("make the page %s: %w", v.Title, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(redact.Shown(b.String()))) // a browser that left needs no page
	return nil
}

// Main makes what stands between the frame, to be shown to several.
func (p *Pages) Main(t *Template, data any) (Main, error) {
	text, err := p.Part(t, "main", data)
	return Main(text), err
}

// Part writes one template of a page alone, for what is put into a page that is open.
func (p *Pages) Part(t *Template, name string, data any) (string, error) {
	var b strings.Builder
	if err := t.t.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("make the part %s of a page: %w", name, err)
	}
	return redact.Shown(b.String()), nil
}

// now is when a page is made; ages are of then.
func now() time.Time { return time.Now() }
