package history

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/drift"
	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/trend"
	"perflab/internal/web/guard"
	"perflab/internal/web/page"
)

// oneView is what the page of a history shows.
type oneView struct {
	State   state
	Line    trend.Line
	Title   string
	Made    string
	History *trend.History // of the metric; nil: no run has it
	Metric  string
	Metrics []result.Metric
	Lead    []string // sentences on where it stands, most important first
	Tone    string
	Chart   template.JS
	Still   template.HTML
	Changes []changeRow
	Small   []small
	Points  []pointRow
	Notes   []note
	Others  []other
	Builds  []string
	Path    string
	Query   string // of the state, for exports
	Back    string // for forms
	May     bool   // note
	Least   string
}

// changeRow is a change point.
type changeRow struct {
	drift.Change
	Since, Before time.Time
	From, To      string // names of the points
	FromHref      string
	ToHref        string
	Size          string
	Was, Is       string
	How           string
	Compare       string
	Lasted        string
}

// small is a metric in small.
type small struct {
	Href, Label string
	Standing    trend.Standing
	Tone        string
	Stale       bool
	Plot        template.HTML
	Now         bool
}

// pointRow is a point of the table.
type pointRow struct {
	trend.Point
	Name, Value, Interval, Raw string
	Links                      []link
	Verdict, Host              string
	Note                       string
}

type link struct{ Text, Href string }

// other is a history of the same configuration.
type other struct {
	Title, Href, Why string
	Standing         trend.Standing
	Tone             string
}

func (s *screen) serveOne(w http.ResponseWriter, r *http.Request) error {
	st, l, err := s.asked(r)
	if err != nil {
		return err
	}
	if to, ok := st.tidy(r.URL); !ok {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return nil
	}
	v := oneView{State: st, Line: l, Title: titleOf(l), Made: made(l.Source), Metric: nameOf(st.Metric), Metrics: result.Metrics(), Path: "/history/" + url.PathEscape(l.Key),
		Query: st.query(), Back: strings.TrimPrefix(st.query(), "?"), May: !s.ReadOnly && guard.From(r.Context()).May(guard.Launch), Notes: notesOf(l), Tone: tone(trend.TooFew)}
	for i := range l.Histories {
		if l.Histories[i].Metric == st.Metric {
			v.History = &l.Histories[i]
		}
	}
	if v.History != nil {
		if err := v.fill(); err != nil {
			return err
		}
	}
	v.smalls()
	for _, e := range l.Entries {
		if e.Build != "" && !slices.Contains(v.Builds, e.Build) {
			v.Builds = append(v.Builds, e.Build)
		}
	}
	if err := s.others(r, &v); err != nil {
		return err
	}
	banner := ""
	if v.Made != "" {
		banner = v.Made + ": perflab's simulator made the figures of this history, no real engine"
	}
	return s.Pages.Show(w, r, s.one, page.View{Title: "History of " + v.Title, Nav: "history", Banner: banner, Data: v})
}

// fill makes what the page shows of the metric.
func (v *oneView) fill() error {
	h := v.History
	v.Tone, v.Lead = tone(h.Standing()), lead(*h)
	b, err := chart(v.Line, *h)
	if err != nil {
		return fmt.Errorf("draw the history: %w", err)
	}
	v.Chart = template.JS(b)
	v.Still = still(*h, "still", v.Line.Source)
	for _, c := range slices.Backward(h.Changes) {
		v.Changes = append(v.Changes, changeOf(*h, c, v.State.Persist))
	}
	for _, p := range slices.Backward(h.Points) {
		v.Points = append(v.Points, v.point(p))
	}
	return nil
}

func (v *oneView) point(p trend.Point) pointRow {
	m := v.History.Metric
	text := func(x float64) string { return page.Figure(map[string]float64{m: x}, m) }
	r := pointRow{Point: p, Name: pointName(p), Value: text(p.Value), Interval: page.None, Raw: strconv.FormatFloat(p.Value, 'g', -1, 64), Verdict: "sound"}
	if p.Low != nil && p.High != nil {
		r.Interval = "[" + text(*p.Low) + ", " + text(*p.High) + "]"
	}
	var verdicts []string
	for _, id := range p.Runs {
		e, _ := v.Line.Entry(id)
		r.Links = append(r.Links, link{e.Called(), "/run/" + id})
		if e.Marks.Note != "" {
			r.Note = e.Marks.Note
		}
		if e.Host != "" {
			r.Host = e.Host
		}
		if !slices.Contains(verdicts, e.Verdict) {
			verdicts = append(verdicts, e.Verdict)
		}
	}
	r.Verdict = strings.Join(slices.DeleteFunc(verdicts, func(s string) bool { return s == "" }), ", ")
	return r
}

// changeOf is a change as the table shows it.
func changeOf(h trend.History, c drift.Change, persist int) changeRow {
	text := func(x float64) string { return page.Figure(map[string]float64{h.Metric: x}, h.Metric) }
	after, before := h.Points[c.Index], h.Points[c.Previous]
	r := changeRow{Change: c, Since: after.At, Before: before.At, From: pointName(before), To: pointName(after), FromHref: "/run/" + last(before.Runs), ToHref: "/run/" + after.Runs[0],
		Size: sizeOf(c), Was: text(c.Before), Is: text(c.After), Compare: compareLink(h, c)}
	switch c.Method {
	case drift.EDivisive:
		r.How = "E-divisive"
		if c.P != nil {
			r.How += fmt.Sprintf(", %.2g of random orders cut as strongly", *c.P)
		}
	case drift.Band:
		r.How = "outside of median ± 3 MAD"
	}
	r.Lasted = fmt.Sprintf("%s of %d", page.Plural(c.Builds, "build"), persist)
	if c.Builds >= persist {
		r.Lasted = page.Plural(c.Builds, "build")
	}
	return r
}

func last(all []string) string { return all[len(all)-1] }

// compareLink leads to the runs around a change.
func compareLink(h trend.History, c drift.Change) string {
	q := url.Values{"run": {last(h.Points[c.Previous].Runs), h.Points[c.Index].Runs[0]}, "alone": {"1"}}
	return "/compare?" + q.Encode()
}

// sizeOf writes a change with its interval.
func sizeOf(c drift.Change) string {
	if c.Relative == nil {
		return fmt.Sprintf("%.4g to %.4g", c.Before, c.After)
	}
	text := page.Percent(*c.Relative)
	if i := c.Interval; i != nil {
		text += fmt.Sprintf(" [%+.1f, %+.1f]", 100*i.Low, 100*i.High)
	}
	return text
}

// lead says where a figure stands, in sentences.
func lead(h trend.History) []string {
	var all []string
	name := nameOf(h.Metric)
	switch c := h.Last(); {
	case h.State.Status == drift.TooFew:
		all = append(all, fmt.Sprintf("%s that count: %d are needed before a change can be told from noise. This is not \"no change\".", page.Plural(h.Counted, "point"), drift.MinPoints))
	case c == nil:
		all = append(all, fmt.Sprintf("No change of %s is shown over %s.", name, page.Plural(h.Counted, "point")))
	default:
		word := "another"
		if c.Outcome != "" {
			word = string(c.Outcome)
		}
		of := "is"
		if c.Standing == drift.Suspected {
			of = "may be"
		}
		all = append(all, fmt.Sprintf("%s %s %s since %s: %s.", name, of, word, pointName(h.Points[c.Index]), sizeOf(*c)))
		if c.Standing == drift.Suspected {
			all = append(all, "It is suspected: it has not lasted long enough to be confirmed.")
		}
		if c.Gradual {
			all = append(all, "It is gradual: a straight line describes the points better than this step.")
		}
		if n := len(h.Changes) - 1; n > 0 {
			all = append(all, fmt.Sprintf("Before that there %s.", isOr(n, "was 1 other change", "were %d other changes")))
		}
	}
	if h.Age.Stale {
		all = append(all, fmt.Sprintf("It is stale: the newest point is %s old, and points usually come every %s.", span(h.Age.Age), span(h.Age.Gap)))
	}
	if h.Age.Voids > 0 {
		all = append(all, fmt.Sprintf("Since then %s void and cannot be believed.", isOr(h.Age.Voids, "1 point is", "%d points are")))
	}
	if h.Undated > 0 {
		all = append(all, fmt.Sprintf("%s no date and so no place here.", isOr(h.Undated, "1 run has", "%d runs have")))
	}
	return all
}

func isOr(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}

func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return page.Plural(int(d/(24*time.Hour)), "day")
	case d >= 2*time.Hour:
		return page.Plural(int(d/time.Hour), "hour")
	case d >= time.Minute:
		return page.Plural(int(d/time.Minute), "minute")
	}
	return page.Plural(int(d/time.Second), "second")
}

// smalls draws the metrics beside each other.
func (v *oneView) smalls() {
	for i, name := range v.State.options().Metrics {
		for _, h := range v.Line.Histories {
			if h.Metric != name {
				continue
			}
			v.Small = append(v.Small, small{
				Href: v.Path + with(v.State, func(s *state) { s.Metric = name }), Label: nameOf(name), Standing: h.Standing(), Tone: tone(h.Standing()), Stale: h.Age.Stale,
				Plot: inSmall(h, "small-"+strconv.Itoa(i), v.Line.Source), Now: name == v.State.Metric,
			})
		}
	}
}

// others finds the other histories of the configuration: other loads, and other sources.
func (s *screen) others(r *http.Request, v *oneView) error {
	o := trend.Options{Filter: "config=" + quoted(v.Line.Config), Metrics: []string{v.State.Metric}}
	lines, err := trend.List(r.Context(), s.Store, o)
	if err != nil {
		return problem(err)
	}
	for _, l := range lines[:min(len(lines), mostOthers)] {
		if l.Key == v.Line.Key {
			continue
		}
		why := "another load: " + l.Load
		if l.Source != v.Line.Source {
			why = "measured by perflab, " + l.Load
			if m := made(l.Source); m != "" {
				why = m + ", " + l.Load
			} else if l.Source.Client != "" {
				why = "measured by " + l.Source.Client + ", " + l.Load
			}
		}
		keep := v.State
		keep.From, keep.To, keep.Q = "", "", ""
		v.Others = append(v.Others, other{Title: titleOf(l), Href: "/history/" + url.PathEscape(l.Key) + keep.query(), Why: why, Standing: l.Standing(), Tone: tone(l.Standing())})
	}
	return nil
}

const mostOthers = 20

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "") + "'" }

// NewestText is the newest figure that counts, with its unit.
func (v oneView) NewestText() string {
	p := v.History.Newest()
	text := page.Figure(map[string]float64{v.History.Metric: p.Value}, v.History.Metric)
	if v.History.Unit != "" {
		text += " " + v.History.Unit
	}
	return v.Metric + " " + text + ", " + pointName(*p)
}

// Runs are the runs that a note may be written of, the newest first.
func (v oneView) Runs() []store.Entry {
	all := slices.Clone(v.Line.Entries)
	slices.Reverse(all)
	return all[:min(len(all), mostNoted)]
}

const mostNoted = 200
