// Package runs is the screens Runs and Run: what the directories hold, filtered, sorted, grouped and
// paged through, with what people say of it; and the page of one run, series or import, which is the
// report of perflab report within what the index and the directory know besides. A run under way is
// shown as it goes.
//
//	routes := runs.Routes(runs.Options{Store: store, Pages: pages, Audit: guard.Audit})
//
// Invariants: the state of a list is in its URL, and only what is not usual; an expression with an
// error leaves the list as it is and says where the error is; a list opens no file of a run. Of a
// share link nothing is shown but what the link names.
//
// Deliberately absent: figures, which are computed by result and kept by store; comparisons; pages of
// studies, which have their own screen.
package runs

import (
	"context"
	"embed"
	"net/http"
	"net/url"
	"strings"

	"perflab/internal/web/guard"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/page"
	"perflab/internal/web/recall"
	"perflab/internal/web/runs/live"
)

//go:embed *.html
var files embed.FS

// styles are those of the screens, beside those of all pages.
var styles = []string{"runs.css"}

// Options are what the screens are made of.
type Options struct {
	Store    *recall.Index
	Pages    *page.Pages
	Audit    func(context.Context, trail.Event) error
	Launches bool // this server launches: a first visit may begin with the quickstart
	ReadOnly bool // nothing is marked or removed
}

// screen serves the pages.
type screen struct {
	o                              Options
	list, first, marks, trash, run *page.Template
	fixed                          *fixed
	documents                      *documents
	watch                          *live.Watch
}

// Routes are the addresses of the screens.
func Routes(o Options) []page.Route {
	s := &screen{o: o, documents: newDocuments(), watch: live.NewWatch()}
	s.list = o.Pages.Template(files, "list.html", "parts.html")
	s.fixed = newFixed(o.Pages, s.list)
	s.first = o.Pages.Template(files, "first.html")
	s.marks = o.Pages.Template(files, "marks.html", "parts.html")
	s.trash = o.Pages.Template(files, "trash.html")
	s.run = o.Pages.Template(files, "run.html", "parts.html")
	routes := []page.Route{
		{Pattern: "GET /{$}", Role: guard.Read, Shared: true, Serve: s.serveHome},
		{Pattern: "GET /runs", Role: guard.Read, Shared: true, Serve: s.serveList},
		{Pattern: "GET /runs/events", Role: guard.Read, Stream: true, Serve: s.serveListEvents},
		{Pattern: "GET /runs/export", Role: guard.Read, Serve: s.serveExport},
		{Pattern: "GET /runs/compare", Role: guard.Read, Serve: s.serveCompare},
		{Pattern: "GET /run/{id}", Role: guard.Read, Shared: true, Serve: s.serveRun},
		{Pattern: "GET /run/{id}/events", Role: guard.Read, Stream: true, Serve: s.serveRunEvents},
		{Pattern: "GET /run/{id}/live/{plot}", Role: guard.Read, Serve: s.serveLivePlot},
		{Pattern: "GET /run/{id}/files/{path...}", Role: guard.Read, Serve: s.serveFile},
	}
	if o.ReadOnly {
		return routes
	}
	return append(routes,
		page.Route{Pattern: "GET /runs/marks", Role: guard.Launch, Serve: s.serveMarks},
		page.Route{Pattern: "POST /runs/marks", Role: guard.Launch, Serve: s.postMarks},
		page.Route{Pattern: "POST /runs/delete", Role: guard.Administer, Serve: s.postDelete},
		page.Route{Pattern: "GET /runs/trash", Role: guard.Read, Serve: s.serveTrash},
		page.Route{Pattern: "POST /runs/restore", Role: guard.Administer, Serve: s.postRestore},
	)
}

// may are the things that who asks may do here.
type may struct {
	Mark, Delete, Launch bool
}

func (s *screen) may(r *http.Request) may {
	who := guard.From(r.Context())
	return may{
		Mark:   !s.o.ReadOnly && who.May(guard.Launch),
		Delete: !s.o.ReadOnly && who.May(guard.Administer),
		Launch: s.o.Launches && who.May(guard.Launch),
	}
}

// serveHome leads to the list.
func (s *screen) serveHome(w http.ResponseWriter, r *http.Request) error {
	http.Redirect(w, r, guard.From(r.Context()).Base+"/runs", http.StatusSeeOther)
	return nil
}

// serveCompare leads to the comparison of what was ticked, which is named by one list.
func (s *screen) serveCompare(w http.ResponseWriter, r *http.Request) error {
	ids := ticked(r.URL.Query())
	if len(ids) == 0 {
		return page.Bad("nothing is ticked: tick two or more rows of the list, then compare them")
	}
	for i := range ids {
		ids[i] = url.QueryEscape(ids[i])
	}
	http.Redirect(w, r, "/compare?ids="+strings.Join(ids, ","), http.StatusSeeOther)
	return nil
}

// ticked are the rows that a form of the list names.
func ticked(v url.Values) []string {
	var out []string
	seen := map[string]bool{}
	for _, id := range v["run"] {
		if id != "" && !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// back is the page that a form says it came from: one of ours, or the list.
func back(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || strings.Contains(text, "\\") {
		return "/runs"
	}
	if u.Path != "/runs" && !strings.HasPrefix(u.Path, "/run/") {
		return "/runs"
	}
	return u.String()
}
