// Package site lays a laboratory out as static pages: an overview, a page for each study,
// model and GPU, a feed, and the index of a search that needs no server.
//
//	s := site.Site{Title: "Laboratory", Entries: []site.Entry{site.OfStudy("qwen3-32b", study, page, findings)}}
//	files, err := s.Files()
//	// files["index.html"] is the overview
//
// Invariants: the same entries give the same bytes: nothing reads a clock. Every link is
// relative, so that the pages work from a disk and below any address. A page loads nothing but
// the index of the search, and is whole without it. What a simulator made says SIMULATED in
// every row. Bodies of studies are the documents of package report, unchanged.
//
// Deliberately absent: themes, templates, and figures that no report has.
package site

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"perflab/internal/interop"
	"perflab/internal/report"
	"perflab/internal/report/audited"
	"perflab/internal/report/doc"
)

// Site is a laboratory.
type Site struct {
	Title   string
	URL     string    // where it will be published, for the feed; "": links of the feed are relative
	Date    time.Time // of this publication: what has no date of its own is dated by it in the feed; zero: not given
	Entries []Entry
}

// Entry is one thing that is published: a study, an import, a series or a run.
type Entry struct {
	Name     string // of its directory
	Title    string
	Date     time.Time // when it was measured; zero: not known
	Document doc.Document
	Audit    audited.Audit
	Results  []Result   // a row of the overview each
	Measured []Measured // its measurements
}

// Result is what an entry comes to for one model on one hardware.
type Result struct {
	Model, GPU, Hardware string // GPU is the name of its page
	Simulated            bool
	report.Headline
}

// Measured is one configuration under one load.
type Measured struct {
	Model, GPU, Hardware string
	Label, Load          string
	Anchor               string // on the page of its entry
	Command              string
	Status               string // of its verdict
	Simulated            bool
	Figures              []string // in the order of figures
}

// page is a file on its way.
type page struct {
	path string
	doc  doc.Document
}

// Files are the files of the site by their paths.
func (s Site) Files() (map[string][]byte, error) {
	entries := s.sorted()
	files := map[string][]byte{}
	var found []doc.Found
	pages := []page{{"index.html", s.overview(entries)}}
	for _, e := range entries {
		pages = append(pages, page{e.path(), e.document()})
		found = append(found, e.found()...)
	}
	for _, k := range []kind{models, gpus} {
		for _, g := range k.groups(entries) {
			pages = append(pages, page{g.path, k.document(g)})
			found = append(found, doc.Found{Title: g.name, Path: g.path, Text: k.title})
		}
	}
	index, err := doc.SearchIndex(found)
	if err != nil {
		return nil, err
	}
	files["search.js"] = index
	feed := s.feed(entries)
	if feed != nil {
		files["feed.xml"] = feed
	}
	for _, p := range pages {
		var b strings.Builder
		if err := doc.Page(&b, p.doc, s.frame(p.path, feed != nil)); err != nil {
			return nil, fmt.Errorf("write %s: %w", p.path, err)
		}
		files[p.path] = []byte(b.String())
	}
	return files, nil
}

// frame is what stands around a page.
func (s Site) frame(path string, feed bool) doc.Frame {
	root := strings.Repeat("../", strings.Count(path, "/"))
	f := doc.Frame{
		Name: s.title(), Home: root + "index.html", Index: root + "search.js", Root: root,
		Links: doc.Spans(doc.Link(root+"index.html#studies", "Studies"), doc.Link(root+"index.html#models", "Models"), doc.Link(root+"index.html#gpus", "GPUs")),
	}
	if feed {
		f.Feed = root + "feed.xml"
		f.Links = append(f.Links, doc.Link(f.Feed, "Feed"))
	}
	return f
}

func (s Site) title() string { return cmp.Or(s.Title, "Performance laboratory") }

// sorted are the entries, the newest first and those without a date last, each under a name of
// its own.
func (s Site) sorted() []Entry {
	out := slices.Clone(s.Entries)
	slices.SortStableFunc(out, func(a, b Entry) int {
		return cmp.Or(b.Date.Compare(a.Date), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Title, b.Title))
	})
	taken := names{}
	for i := range out {
		out[i].Name = taken.slug(out[i].Name, "study")
		out[i].Title = cmp.Or(out[i].Title, out[i].Name)
	}
	return out
}

// names gives every name once.
type names map[string]bool

// slug is a name as a part of a path.
func (n names) slug(name, otherwise string) string {
	base := cmp.Or(interop.Slug(name), otherwise)
	slug := base
	for i := 2; n[slug]; i++ {
		slug = fmt.Sprintf("%s-%d", base, i)
	}
	n[slug] = true
	return slug
}

// Manifest is the file that names all others, so that a later publication can take away what
// it no longer has.
const Manifest = "site.json"

// manifest is what it holds.
type manifest struct {
	Schema string   `json:"schema"` // "perflab.site/1"
	Files  []string `json:"files"`
}

const schema = "perflab.site/1"

// WriteManifest encodes the manifest of files.
func WriteManifest(files map[string][]byte) ([]byte, error) {
	m := manifest{Schema: schema}
	for path := range files {
		m.Files = append(m.Files, path)
	}
	slices.Sort(m.Files)
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", Manifest, err)
	}
	return append(b, '\n'), nil
}

// ReadManifest decodes the files of an earlier publication.
func ReadManifest(b []byte) ([]string, error) {
	var m manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("read %s: %w", Manifest, err)
	}
	if m.Schema != schema {
		return nil, fmt.Errorf("read %s: its schema is %q, and this version knows %s", Manifest, m.Schema, schema)
	}
	return m.Files, nil
}
