package intake

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perflab/internal/dirdoc"
	"perflab/internal/durable"
	"perflab/internal/interop"
	"perflab/internal/redact"
	"perflab/internal/site"
	"perflab/internal/store"
	"perflab/internal/store/scan"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/page"
)

// published is a site that lies below a root.
type published struct {
	Key   string // in addresses
	Name  string
	Where string // below its root
	Pages string
	At    time.Time // of its publication
	dir   string
}

// keyOf names a directory in addresses. Two sites of the same pages are two, which their IDs are not.
func keyOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:8])
}

// mostSites is how many sites are listed, and mostChoices how many things may be chosen from.
const (
	mostSites   = 500
	mostChoices = 100
)

// all are the sites below the roots.
func (s *screen) all(ctx context.Context) ([]published, error) {
	found, err := s.Store.List(ctx, store.Query{Filter: "kind=" + string(scan.Site), Limit: mostSites})
	if err != nil {
		return nil, err
	}
	var out []published
	for _, e := range found.Entries {
		for _, p := range e.Places {
			dir := p.Dir()
			info, err := os.Stat(filepath.Join(dir, site.Manifest))
			if dir == "" || err != nil {
				continue // it is on another machine, or gone since
			}
			out = append(out, published{keyOf(dir), filepath.Base(dir), below(p.Root, dir), e.Title, info.ModTime(), dir})
		}
	}
	slices.SortFunc(out, func(a, b published) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.dir, b.dir)) })
	return out, nil
}

// siteOf is the site of a key.
func (s *screen) siteOf(ctx context.Context, key string) (published, error) {
	all, err := s.all(ctx)
	if err != nil {
		return published{}, err
	}
	for _, p := range all {
		if p.Key == key {
			return p, nil
		}
	}
	return published{}, page.NotFound("there is no such site: it may have been deleted, or a directory of that name was moved")
}

// sitesView is what the page of the sites shows.
type sitesView struct {
	May    bool
	Why    string // nothing is published here, though the role allows it; "": it is
	Sites  []published
	Chosen []choice
	Others []choice
	More   int // others that are not listed
	Roots  []string
	Form   siteForm
	Wrong  map[string]string // by the form's names
}

// choice is something that can be published.
type choice struct {
	store.Entry
	Page   string
	Ticked bool
}

// siteForm is what somebody asks to be published.
type siteForm struct{ Title, Name, URL, Root string }

func (s *screen) showSites(w http.ResponseWriter, r *http.Request) error {
	return s.listed(w, r, http.StatusOK, idsOf(r.URL.Query()), sitesView{Form: siteForm{Title: r.URL.Query().Get("title"), Name: r.URL.Query().Get("name")}})
}

// idsOf are the entries that an address or a form names: id=A&id=B, or ids=A,B as lists have it.
func idsOf(q url.Values) []string {
	ids := slices.Concat(q["id"], strings.Split(q.Get("ids"), ","))
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return strings.TrimSpace(id) == "" })
}

// listed shows the sites, and what may be published with what is ticked.
func (s *screen) listed(w http.ResponseWriter, r *http.Request, status int, ids []string, v sitesView) error {
	v.May = guard.From(r.Context()).May(guard.Launch)
	if err := s.closed(); err != nil {
		v.May, v.Why = false, err.Error()
	}
	v.Roots = s.Roots
	var err error
	if v.Sites, err = s.all(r.Context()); err != nil {
		return err
	}
	if v.May {
		if err := s.choose(r.Context(), ids, &v); err != nil {
			return err
		}
	}
	return s.Pages.ShowStatus(w, r, status, s.sites, page.View{Title: "Sites", Nav: "sites", Data: v})
}

// choose lists what was chosen, and what else could be.
func (s *screen) choose(ctx context.Context, ids []string, v *sitesView) error {
	ticked := map[string]bool{}
	for _, id := range ids {
		e, err := s.Store.Get(ctx, id)
		if err != nil {
			return page.NotFound("there is no entry " + redact.Printable(id) + " to be published")
		}
		if ticked[e.ID] {
			continue
		}
		ticked[e.ID] = true
		v.Chosen = append(v.Chosen, choice{e, address(e), true})
	}
	found, err := s.Store.List(ctx, store.Query{Filter: "kind=study|series|import|run parent=none", Limit: mostChoices})
	if err != nil {
		return err
	}
	for _, e := range found.Entries {
		if !ticked[e.ID] && e.Dir() != "" && e.State != scan.Running {
			v.Others = append(v.Others, choice{e, address(e), false})
		}
	}
	v.More = max(0, found.Total-mostChoices)
	return nil
}

// publish writes a site of what was ticked.
func (s *screen) publish(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	ids := idsOf(r.PostForm)
	f := siteForm{Title: strings.TrimSpace(r.PostForm.Get("title")), Name: strings.TrimSpace(r.PostForm.Get("name")), URL: strings.TrimSpace(r.PostForm.Get("url")), Root: r.PostForm.Get("root")}
	root, err := s.root(r)
	if err != nil {
		return err
	}
	slug := interop.Slug(cmp.Or(f.Name, f.Title))
	wrong := map[string]string{}
	if len(ids) == 0 {
		wrong["id"] = "tick what is to be published"
	}
	if slug == "" {
		wrong["name"] = "give the site a name, which its directory gets"
	}
	if u, err := url.Parse(f.URL); f.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		wrong["url"] = "this is no address: write it as https://lab.example.org/"
	}
	if len(wrong) > 0 {
		return s.listed(w, r, http.StatusUnprocessableEntity, ids, sitesView{Form: f, Wrong: wrong})
	}
	dir := filepath.Join(root, "sites", slug)
	err = s.lay(r.Context(), dir, ids, site.Site{Title: f.Title, URL: f.URL, Date: time.Now().UTC().Truncate(24 * time.Hour)})
	e := trail.Event{Action: "publish site", Object: dir, Detail: map[string]string{"entries": strings.Join(ids, ", ")}}
	if err != nil {
		e.Outcome, e.Reason = trail.Failed, err.Error()
	}
	if audited := s.audited(r.Context(), e); err == nil && audited != nil {
		return audited
	}
	if refused, ok := errors.AsType[*dirdoc.OptionError](err); ok {
		return s.listed(w, r, http.StatusConflict, ids, sitesView{Form: f, Wrong: map[string]string{"name": refused.Error()}})
	}
	if err != nil {
		return err
	}
	if _, err := s.Store.Sync(r.Context()); err != nil {
		return err
	}
	http.Redirect(w, r, "/sites#site-"+keyOf(dir), http.StatusSeeOther)
	return nil
}

// lay lays entries out as a site in a directory.
func (s *screen) lay(ctx context.Context, dir string, ids []string, x site.Site) error {
	for _, id := range ids {
		e, err := s.Store.Get(ctx, id)
		if err != nil {
			return page.NotFound("there is no entry " + redact.Printable(id) + " to be published")
		}
		if e.Dir() == "" {
			return &page.Problem{Status: http.StatusConflict, Text: e.Called() + " lies on another machine: publish it there"}
		}
		entry, _, err := dirdoc.Entry(e.Dir()) // what of it cannot be read stands in its document
		if err != nil {
			return fmt.Errorf("publish %s: %w", e.Called(), err)
		}
		x.Entries = append(x.Entries, entry)
	}
	files, err := x.Files()
	if err != nil {
		return err
	}
	var bytes int64
	for _, b := range files {
		bytes += int64(len(b))
	}
	manifest, err := site.WriteManifest(files)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("make the directory of sites: %w", err)
	}
	release, err := s.Disk.Reserve(filepath.Dir(dir), bytes)
	if err != nil {
		return &page.Problem{Status: http.StatusInsufficientStorage, Text: err.Error()}
	}
	defer release()
	tree := dirdoc.Tree{Dir: dir, Manifest: site.Manifest, Read: site.ReadManifest}
	return tree.Write(files, manifest, func(path string, b []byte) error {
		if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
			return err
		}
		return durable.WriteFile(path, b, 0o644)
	})
}
