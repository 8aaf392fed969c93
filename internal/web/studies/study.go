package studies

import (
	"html/template"
	"net/http"
	"path/filepath"
	"sync"

	"perflab/internal/dirdoc"
	"perflab/internal/report/doc"
	"perflab/internal/rundir"
	"perflab/internal/web/guard"
	"perflab/internal/web/page"
)

// banner is above every page of what a simulator made.
const banner = "SIMULATED: an engine made by perflab, no real one"

// showStudy shows a study as it stands, and its report after its end.
func (s *screen) showStudy(w http.ResponseWriter, r *http.Request) error {
	sub, err := s.subject(r)
	if err != nil {
		return err
	}
	if sub.Dir == "" {
		return s.elsewhere(w, r, sub)
	}
	now := s.watchers.seen(sub.Dir)
	if now.missing && sub.Launch == nil {
		return &page.Problem{Status: http.StatusGone, Text: "the directory of this study is gone: " + sub.Dir,
			Hint: "The index still has it until it looks again; a backup put back in its place is found by itself."}
	}
	v := s.view(r, sub, now)
	if now.finished() {
		d, err := s.documents.of(sub.Dir)
		if err != nil {
			v.Fault = joinSentences(v.Fault, "the report cannot be made: "+err.Error())
		}
		v.Contents, v.Report = template.HTML(d.part.Contents), template.HTML(d.part.Body)
		if v.Report != "" {
			v.Lead = "" // the report begins with it
		}
	}
	view := page.View{Title: v.Title, Nav: "studies", Data: v}
	if v.Simulated {
		view.Banner = banner
	}
	return s.Pages.Show(w, r, s.study, view)
}

// elsewhere shows what the index knows of a study on another machine.
func (s *screen) elsewhere(w http.ResponseWriter, r *http.Request, sub subject) error {
	now := &scene{}
	v := studyView{Base: guard.From(r.Context()).Base, Key: sub.Key, State: string(sub.Entry.State)}
	v.heading(sub, now)
	e := sub.Entry
	v.Began, v.Title = e.Started, e.Title
	v.Facts = []fact{{"Model", e.Model}, {"Hardware", e.Hardware}}
	if h := e.Headline; h != nil {
		v.Lead = h.Text
	}
	v.Fault = "its directory lies on another machine, and this is what the index has of it"
	if len(e.Places) > 0 {
		v.Fault = "its directory lies on " + e.Places[0].Host + ", in " + e.Places[0].Root + ": this is what the index has of it"
	}
	view := page.View{Title: v.Title, Nav: "studies", Data: v}
	if v.Simulated {
		view.Banner = banner
	}
	return s.Pages.Show(w, r, s.study, view)
}

// mostDocuments is how many reports are kept ready.
const mostDocuments = 16

// documents are the reports that were made lately: one costs a reading of calls.
type documents struct {
	mu sync.Mutex
	by map[string]document
	n  int // of the last use
}

type document struct {
	part  doc.Fragment
	stamp string
	used  int
}

// of is the report of a study, made anew where its file is another.
func (d *documents) of(dir string) (document, error) {
	now := stamp(filepath.Join(dir, rundir.StudyFile))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	if x, ok := d.by[dir]; ok && x.stamp == now {
		x.used = d.n
		d.by[dir] = x
		return x, nil
	}
	made, err := dirdoc.Open([]string{dir}, dirdoc.Options{})
	if err != nil {
		return document{}, err
	}
	x := document{part: doc.Parts(made.Page()), stamp: now, used: d.n}
	d.by[dir] = x
	if len(d.by) > mostDocuments {
		d.forget()
	}
	return x, nil
}

// forget drops the one that was used longest ago.
func (d *documents) forget() {
	oldest := ""
	for dir, x := range d.by {
		if oldest == "" || x.used < d.by[oldest].used {
			oldest = dir
		}
	}
	delete(d.by, oldest)
}
