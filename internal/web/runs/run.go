package runs

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"perflab/internal/dirdoc"
	"perflab/internal/report/doc"
	"perflab/internal/report/progress"
	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/store/scan"
	"perflab/internal/web/guard"
	"perflab/internal/web/page"
)

// runView is what the page of an entry shows.
type runView struct {
	entryView
	Base   string
	Shared bool
	May    may
	Here   string

	Title     string // of its report
	Facts     []fact
	Parent    *entryView
	Earlier   *entryView // of the same configuration
	Later     *entryView
	Same      int // runs of the same configuration
	SameURL   string
	History   string
	Baselines []compareLink
	Document  *document
	Trouble   string // why there is no report
	Parts     []entryView
	Known     []fact // figures of the index, where there is no report
	Files     []fileView
	More      bool // files that are not listed
	Live      *liveView
}

type fact struct {
	Name, Text string
	URL        string
}

// compareLink leads to the comparison with an entry.
type compareLink struct {
	Name, URL string
	Pinned    bool
}

// serveRun shows an entry. What names it otherwise than by its ID leads to the address with that,
// which holds for as long as the run is anywhere.
func (s *screen) serveRun(w http.ResponseWriter, r *http.Request) error {
	who := guard.From(r.Context())
	e, err := s.entry(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if !who.Sees(e.ID) && !(e.Early != "" && who.Sees(e.Early)) {
		return page.NotFound("there is no such run among what this link shows")
	}
	if to := href(e, who.Base); who.Base == "" && e.Kind == scan.Study || r.PathValue("id") != e.ID {
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
		return nil
	}
	v, err := s.runView(r, e)
	if err != nil {
		return err
	}
	view := page.View{Title: v.Name, Nav: "runs", Styles: styles, Data: v}
	switch {
	case e.Simulated:
		view.Banner = "SIMULATED: no real engine answered"
		if v.Document != nil && v.Document.Banner != "" {
			view.Banner = v.Document.Banner
		}
	case v.Document != nil:
		view.Banner = v.Document.Banner
	}
	return s.o.Pages.Show(w, r, s.run, view)
}

func (s *screen) runView(r *http.Request, e store.Entry) (*runView, error) {
	ctx, who := r.Context(), guard.From(r.Context())
	v := &runView{entryView: viewOf(e, who.Base), Base: who.Base, Shared: who.Base != "", May: s.may(r)}
	v.Here, v.Title = v.Href, e.Title
	v.Facts = factsOf(e)
	parts, err := s.o.Store.Parts(ctx, e.ID, "output_throughput", "p99_ttft_ms", "p99_tpot_ms")
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if who.Sees(p.ID) || v.Shared {
			v.Parts = append(v.Parts, viewOf(p, who.Base))
		}
	}
	if err := s.report(ctx, v, e, parts); err != nil {
		return nil, err
	}
	if v.Document == nil && v.Live == nil {
		v.Known = figuresKnown(e)
	}
	if v.Shared {
		v.unlinked(who)
		return v, nil
	}
	return v, s.related(ctx, v, e)
}

// unlinked takes away the links that a share link does not open.
func (v *runView) unlinked(who guard.Who) {
	for i := range v.Parts {
		if !who.Sees(v.Parts[i].ID) {
			v.Parts[i].Href = ""
		}
	}
}

// report is the report of the directory, or why there is none: then the page shows what the index
// knows.
func (s *screen) report(ctx context.Context, v *runView, e store.Entry, parts []store.Entry) error {
	dir := e.Dir()
	if dir == "" {
		v.Trouble = "Its directory lies on another machine, " + hostOf(e) + ": here is what the index knows of it."
		return nil
	}
	var err error
	if !v.Shared {
		if v.Files, v.More, err = filesOf(e, dir, parts); err != nil && !errors.Is(err, fs.ErrNotExist) {
			v.Trouble = "Its files cannot be listed: " + err.Error()
		}
	}
	if e.Kind == scan.Site || e.Kind == scan.Folder {
		return nil
	}
	if e.State == scan.Running {
		if v.Live, err = s.live(v.Shared, e); err != nil {
			v.Trouble = "How far it has come cannot be read: " + err.Error()
		}
		return nil
	}
	d, err := s.documents.of(ctx, dir, e.Kind == scan.Import)
	switch _, nothing := errors.AsType[*dirdoc.NothingError](err); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case nothing, errors.Is(err, fs.ErrNotExist):
		v.Trouble = "Its directory " + dir + " was deleted or moved a moment ago: here is what the index knows of it."
	case err != nil:
		v.Trouble = "Its report cannot be made: " + err.Error() + ". Here is what the index knows of it."
	default:
		v.Document = d
		if v.Title == "" || e.Kind != scan.Run {
			v.Title = d.Title
		}
	}
	return nil
}

func hostOf(e store.Entry) string {
	if len(e.Places) == 0 {
		return "which is not known"
	}
	return e.Places[0].Host
}

// factsOf are what the index knows of an entry, in short.
func factsOf(e store.Entry) []fact {
	var out []fact
	add := func(name, text, query string) {
		if text == "" {
			return
		}
		f := fact{Name: name, Text: text}
		if query != "" {
			if p, ok := filter.Equals(query, text); ok {
				f.URL = state{Q: p.Text, Parts: true}.URL("/runs")
			}
		}
		out = append(out, f)
	}
	add("Model", e.Model, "model")
	add("Engine", engineText(e), "")
	add("Image", e.Image, "image")
	add("Hardware", e.Hardware, "hardware")
	add("Load", e.Load, "")
	add("Configuration", e.Label, "")
	add("Build", e.Build, "build")
	add("Measured by", e.Imported, "imported")
	if !e.Started.IsZero() {
		add("Began", page.Date(e.Started), "")
	}
	if e.Duration > 0 {
		add("Took", progress.Brief(time.Duration(e.Duration*float64(time.Second))), "")
	}
	add("Client", e.Host, "host")
	return out
}

// related finds what an entry belongs to and is compared with.
func (s *screen) related(ctx context.Context, v *runView, e store.Entry) error {
	if e.Parent != "" {
		if p, err := s.o.Store.Get(ctx, e.Parent); err == nil {
			one := viewOf(p, "")
			v.Parent = &one
		} else if _, gone := errors.AsType[*store.NotFoundError](err); !gone {
			return err
		}
	}
	if err := s.neighbours(ctx, v, e); err != nil {
		return err
	}
	if e.Kind != scan.Run {
		return nil
	}
	return s.baselines(ctx, v, e)
}

// nearby is how many runs are looked at for the next of the same configuration: more never begin in
// one second.
const nearby = 20

// neighbours are the runs of the same configuration under the same load, before and after one.
func (s *screen) neighbours(ctx context.Context, v *runView, e store.Entry) error {
	p, ok := filter.Equals("config", e.Config)
	if e.Kind != scan.Run || e.Config == "" || !ok {
		return nil
	}
	same := "kind=run " + p.Text
	v.SameURL = state{Q: same, Parts: true}.URL("/runs")
	all, err := s.o.Store.List(ctx, store.Query{Filter: same, Limit: 1})
	if err != nil {
		return err
	}
	v.Same = max(0, all.Total-1)
	if load, ok := filter.Equals("fingerprint", e.Fingerprint); ok && e.Fingerprint != "" {
		same += " " + load.Text // what got another load is no neighbour
	}
	v.History = "/history/" + e.ID
	at := e.Started.UTC().Format(time.RFC3339)
	for _, way := range []struct {
		bound, order string
		to           **entryView
	}{{"started<=" + at, "-started", &v.Earlier}, {"started>=" + at, "started", &v.Later}} {
		if e.Started.IsZero() {
			break
		}
		found, err := s.o.Store.List(ctx, store.Query{Filter: same + " " + way.bound, Order: way.order, Limit: nearby})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(found.Entries, func(x store.Entry) bool { return x.ID == e.ID })
		if i >= 0 && i+1 < len(found.Entries) {
			one := viewOf(found.Entries[i+1], "")
			*way.to = &one
		}
	}
	return nil
}

// baselines are what a run may be compared with: the pinned runs of its model, and the one before it.
func (s *screen) baselines(ctx context.Context, v *runView, e store.Entry) error {
	add := func(x store.Entry, pinned bool) {
		v.Baselines = append(v.Baselines, compareLink{Name: x.Called(), URL: "/compare?ids=" + x.ID + "," + e.ID, Pinned: pinned})
	}
	if v.Earlier != nil {
		add(v.Earlier.Entry, false)
	}
	p, ok := filter.Equals("model", e.Model)
	if !ok || e.Model == "" {
		return nil
	}
	found, err := s.o.Store.List(ctx, store.Query{Filter: "kind=run pinned=true " + p.Text, Limit: nearby})
	if err != nil {
		return err
	}
	for _, x := range found.Entries {
		if x.ID != e.ID {
			add(x, true)
		}
	}
	return nil
}

// Repeat is the command that makes the entry again, and Serving the one that was measured.
func (v *runView) Repeat() string  { return doc.WrapCommand(v.Invoked) }
func (v *runView) Serving() string { return doc.WrapCommand(v.Command) }

// Lies are the directories that the entry lies in.
func (v *runView) Lies() []string {
	var out []string
	for _, p := range v.Places {
		text := filepath.Join(p.Root, filepath.FromSlash(p.Path))
		if p.Host != "" {
			text += " on " + p.Host
		}
		out = append(out, text)
	}
	return out
}

// figuresKnown are the figures that the index has of an entry, in the order of the metric table.
func figuresKnown(e store.Entry) []fact {
	var out []fact
	names := scan.OwnFigures()
	for _, m := range result.Metrics() {
		names = append(names, m.Name)
	}
	for _, name := range names {
		if c, ok := columnOf(name); ok {
			if x := c.of(e); !x.Missing {
				out = append(out, fact{Name: c.Label, Text: x.Text})
			}
		}
	}
	return out
}
