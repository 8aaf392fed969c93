// Package intake is the screens by which results come in and go out: Import, where files of other
// clients are dropped or pasted, looked at and kept, and Sites, where a selection is published.
//
//	routes := intake.Routes(intake.Options{Pages: pages, Store: store, Roots: roots, State: dir, Disk: disk, Audit: guard.Audit})
//
// Invariants: what is sent is staged outside of the roots, never below the reserve of the disk, and
// kept by a click alone; who never comes back finds it gone after a day. Names and contents are
// somebody else's: they name no file of ours, and are shown as text. A site that is looked at runs
// no script but perflab's own.
//
// Deliberately absent: perflab's own directories, which are pushed, not imported.
package intake

import (
	"context"
	"embed"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perflab/internal/store"
	"perflab/internal/store/scan"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/place"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/page"
)

//go:embed *.html
var files embed.FS

// Options are what the screens are made of.
type Options struct {
	Pages    *page.Pages
	Store    *store.Store
	Roots    []string    // where imports and sites go, the first by default
	State    string      // directory for what was sent and not kept yet
	Disk     *place.Disk // how much of it stays free
	ReadOnly bool        // nothing is imported or published
	Audit    func(context.Context, trail.Event) error
}

// screen is the screens of one server.
type screen struct {
	Options
	reading chan struct{} // held by the one who reads what was sent: it can be large

	drop, look, sites *page.Template
}

// Routes are the addresses of the screens.
func Routes(o Options) []page.Route {
	s := &screen{Options: o, reading: make(chan struct{}, 1)}
	s.Roots = slices.Clone(o.Roots)
	for i, root := range s.Roots { // as the index has them
		if whole, err := filepath.Abs(root); err == nil {
			s.Roots[i] = whole
		}
	}
	s.drop = o.Pages.Template(files, "import.html")
	s.look = o.Pages.Template(files, "look.html")
	s.sites = o.Pages.Template(files, "sites.html")
	return []page.Route{
		{Pattern: "GET /import", Role: guard.Launch, Serve: s.showDrop},
		{Pattern: "POST /import", Role: guard.Launch, Limit: mostSent, Serve: s.take},
		{Pattern: "GET /import/{id}", Role: guard.Launch, Serve: s.showLook},
		{Pattern: "POST /import/{id}/keep", Role: guard.Launch, Serve: s.keep},
		{Pattern: "POST /import/{id}/discard", Role: guard.Launch, Serve: s.discard},
		{Pattern: "GET /sites", Role: guard.Read, Serve: s.showSites},
		{Pattern: "POST /sites", Role: guard.Launch, Serve: s.publish},
		{Pattern: "GET /sites/view/{key}/{path...}", Role: guard.Read, Serve: s.view},
		{Pattern: "GET /sites/download/{key}", Role: guard.Read, Serve: s.download},
	}
}

// closed says why nothing comes in here; nil where it does.
func (s *screen) closed() error {
	if s.ReadOnly {
		return errors.New("this server only shows what is there: it was started with --read-only")
	}
	return nil
}

func (s *screen) open() error {
	if err := s.closed(); err != nil {
		return &page.Problem{Status: http.StatusConflict, Text: err.Error()}
	}
	return nil
}

// root is the root that a form names by its number; the first where it names none.
func (s *screen) root(r *http.Request) (string, error) {
	name := r.PostForm.Get("root")
	if name == "" {
		return s.Roots[0], nil
	}
	i := slices.Index(s.Roots, name)
	if i < 0 {
		return "", page.Bad("this server has no directory of that name: choose one of the list")
	}
	return s.Roots[i], nil
}

// audited writes an event down.
func (s *screen) audited(ctx context.Context, e trail.Event) error {
	if err := s.Audit(ctx, e); err != nil {
		return &page.Problem{Status: http.StatusInternalServerError, Text: "this could not be written into the audit log: " + err.Error(), Hint: "Look into the list: what was asked for may have been done nevertheless."}
	}
	return nil
}

// pageOf is the page of what lies in a directory; the list where the index does not have it.
func (s *screen) pageOf(ctx context.Context, dir string) string {
	if _, err := s.Store.Sync(ctx); err != nil {
		return "/runs"
	}
	e, err := s.Store.Get(ctx, dir)
	if err != nil {
		return "/runs"
	}
	return address(e)
}

// address is the page of an entry.
func address(e store.Entry) string {
	if e.Kind == scan.Study {
		return "/study/" + e.ID
	}
	return "/run/" + e.ID
}

// below is a directory as a reader finds it: by its root and the path below.
func below(root, dir string) string {
	rest, err := filepath.Rel(root, dir)
	if err != nil || strings.HasPrefix(rest, "..") {
		return dir
	}
	return filepath.Join(filepath.Base(root), rest)
}

// keptFor is how long what was sent waits for somebody to keep it.
const keptFor = 24 * time.Hour
