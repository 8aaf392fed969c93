package listing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/store/scan"
)

// File is a file of an entry.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Show is all that is known of an entry, with what lies in it and the files of its directory.
func Show(e store.Entry, parts []store.Entry, files []File, now time.Time) doc.Document {
	banner := ""
	if s, ok := sourceOf(e).(string); ok && (e.Simulated || e.Predicted) {
		banner = s + ": these are figures of a model of engine and device, not of hardware"
	}
	d := doc.New(e.Called(), banner, "the entry")
	d.Body.Textf("%s %s", e.Kind, doc.OneLine(e.Called()))
	d.Body.Text("")
	d.Body.Add(doc.Everywhere, factsOf(e, now))
	if h := headline(e); len(h) > 0 {
		d.Body.Text("")
		d.Body.Add(doc.Everywhere, h)
	}
	if t := figures(e); len(t.Rows) > 0 {
		d.Body.Text("")
		d.Body.Add(doc.Everywhere, t)
	}
	if m := marks(e); len(m) > 0 {
		d.Body.Text("")
		d.Body.Add(doc.Everywhere, m)
	}
	if len(parts) > 0 {
		d.Body.Text("", fmt.Sprintf("What lies in it (%d; perflab list --all parent=%s):", len(parts), ShortID(e.ID)))
		d.Body.Add(doc.Everywhere, partsOf(parts))
	}
	if len(files) > 0 {
		d.Body.Text("")
		t := doc.Table{Columns: doc.Columns("file", ">size"), Trimmed: true}
		for _, f := range files {
			t.Rows = append(t.Rows, doc.Dashed(f.Name, size(float64(f.Bytes))))
		}
		d.Body.Add(doc.Everywhere, t)
	}
	return d
}

// told are the facts in the order in which they are shown; what stands elsewhere is not among them.
var told = []string{"id", "title", "state", "verdict", "fault", "started", "duration", "imported", "engine", "engine_version", "image", "model", "hardware", "gpus",
	"config", "workload", "fingerprint", "rate", "limit", "command", "build", "host", "version", "parent", "trial", "size"}

func factsOf(e store.Entry, now time.Time) doc.Definitions {
	var out doc.Definitions
	add := func(name, s string) {
		if s != "" {
			out = append(out, doc.Definition{Name: name, Text: doc.OneLine(s)})
		}
	}
	for _, name := range told {
		v := facts[name](e)
		s, isText := v.(string)
		if !isText {
			c, _ := column(name) // a fact always has one
			s = c.shown(v, now)
		}
		switch name {
		case "verdict":
			if len(e.Reasons) > 0 {
				s += ": " + strings.Join(e.Reasons, "; ")
			}
		case "started":
			if !e.Started.IsZero() {
				s += " UTC (" + Age(now, e.Started) + ")"
			}
		case "workload":
			if strings.HasPrefix(strings.ToLower(e.Load), strings.ToLower(s)) { // which says it again
				s = e.Load
			} else if e.Load != "" {
				s += ": " + e.Load
			}
		}
		add(name, s)
	}
	add("invoked", e.Invoked)
	for _, p := range e.Places {
		where := p.Dir()
		if where == "" {
			where = p.Host + ":" + p.Root + "/" + p.Path
		}
		add("place", where)
	}
	return out
}

// headline is what a study or a series came to.
func headline(e store.Entry) doc.Definitions {
	h := e.Headline
	if h == nil {
		return nil
	}
	var out doc.Definitions
	for _, x := range []doc.Definition{{Name: "objective", Text: h.Objective}, {Name: "SLOs", Text: strings.Join(h.SLOs, ", ")}, {Name: "best", Text: h.Best}, {Name: "conclusion", Text: h.Text}, {Name: "goes on by", Text: h.Resume}} {
		if x.Text != "" {
			out = append(out, x)
		}
	}
	return out
}

// figures are the entry's own and those that people look for first, with their intervals.
func figures(e store.Entry) doc.Table {
	t := doc.Table{Columns: doc.Columns("figure", ">value", "95 % interval"), Trimmed: true}
	add := func(name, label string) {
		f, ok := e.Figure(name)
		if !ok {
			return
		}
		between := ""
		if f.Low != nil && f.High != nil {
			between = Figure(name, *f.Low) + " to " + Figure(name, *f.High)
		}
		t.Rows = append(t.Rows, doc.Dashed(label, Figure(name, f.Value), between))
	}
	for _, name := range scan.OwnFigures() {
		add(name, name)
	}
	for _, m := range result.Metrics() {
		if m.Headline() || slices.Contains([]string{"ttft", "tpot", "itl", "e2el"}, m.Family) && slices.Contains([]string{"mean", "median", "p99"}, m.Stat) {
			add(m.Name, m.Label)
		}
	}
	return t
}

func marks(e store.Entry) doc.Definitions {
	var out doc.Definitions
	if len(e.Marks.Tags) > 0 {
		out = append(out, doc.Definition{Name: "tags", Text: strings.Join(e.Marks.Tags, " ")})
	}
	if e.Marks.Pinned {
		out = append(out, doc.Definition{Name: "pinned", Text: "yes"})
	}
	if e.Marks.Note != "" {
		by := ""
		if e.Marks.By != "" {
			by = " (" + e.Marks.By + ", " + e.Marks.At.UTC().Format("2006-01-02 15:04") + ")"
		}
		out = append(out, doc.Definition{Name: "note", Text: e.Marks.Note + by})
	}
	for _, i := range e.Marks.Issues {
		out = append(out, doc.Definition{Name: "known issue", Text: strings.TrimSpace(i.ID + ": " + i.Text + " " + i.Link)})
	}
	return out
}

// mostParts is how many parts are shown with an entry.
const mostParts = 20

func partsOf(parts []store.Entry) doc.Table {
	t := doc.Table{Columns: doc.Columns("id", "name", "state", "verdict", "label"), Trimmed: true}
	for _, p := range parts[:min(len(parts), mostParts)] {
		t.Rows = append(t.Rows, doc.Dashed(ShortID(p.ID), clip(p.Called()), string(p.State), p.Verdict, clip(doc.OneLine(p.Label))))
	}
	return t
}
