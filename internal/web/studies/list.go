package studies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/outcome"
	"perflab/internal/report/finding"
	"perflab/internal/rundir"
	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/store/scan"
	"perflab/internal/tune"
	"perflab/internal/web/guard"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
	"perflab/internal/web/recall"
)

// listView is the list of studies.
type listView struct {
	Query  string // the expression of the reader
	Wrong  string // what is wrong with it
	Sort   string
	Heads  []head
	Rows   []listRow
	Waits  []launch.Launch // studies that have no directory yet
	Facets []facet
	Total  int
	From   int
	To     int
	Prev   string // addresses; "": there is none
	Next   string
	Events string
	Empty  bool // there is no study at all
	May    bool // launch one
}

// head is a column that the list may be sorted by.
type head struct {
	Col, Title, About string
	Number            bool
	Href, Sorted      string // "": it cannot be, or is not
}

// facet is a fact with its values, each a link that filters by it.
type facet struct {
	Name   string
	Values []facetValue
}

type facetValue struct {
	Value, Href string
	Count       int
	On          bool
}

// listRow is a study in the list.
type listRow struct {
	store.Entry
	Name, Best, Value, Gain, Tone string
	Trials                        string
	Open                          bool // the gain is of what leads, and not confirmed
	Who                           string
	Live                          string // begins the names of what lives
}

// Conditions of a page of the list.
const (
	onPage    = 50
	ofStudies = "kind=study"
	usual     = "-started"
)

// asked is what a reader asks of the list.
type asked struct {
	query, sort string
	number      int
	state       string // facets
	model       string
	hardware    string
}

func readAsked(r *http.Request) asked {
	q := r.URL.Query()
	n, err := strconv.Atoi(q.Get("page"))
	if err != nil || n < 1 {
		n = 1
	}
	return asked{query: strings.TrimSpace(q.Get("q")), sort: cmp.Or(q.Get("sort"), usual), number: n, state: q.Get("state"), model: q.Get("model"), hardware: q.Get("hardware")}
}

// facets are the facts that the list is narrowed by with a click, with their values.
func (a asked) facets() []struct{ fact, value string } {
	return []struct{ fact, value string }{{"state", a.state}, {"model", a.model}, {"hardware", a.hardware}}
}

// expression is all of it as the store takes it.
func (a asked) expression() string {
	parts := []string{ofStudies}
	for _, f := range a.facets() {
		if f.value != "" {
			parts = append(parts, f.fact+"="+quoted(f.value))
		}
	}
	if a.query != "" {
		parts = append(parts, a.query)
	}
	return strings.Join(parts, ", ")
}

// quoted is a value of an expression. There is no way to write both quotes: of such a value the
// part before the second is looked for.
func quoted(s string) string {
	if !strings.Contains(s, `"`) {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", "") + "'"
}

// href is the address of the list with something else asked; what is as at first is left out.
func (a asked) href(change func(*asked)) string {
	a.number = 1
	change(&a)
	q := url.Values{}
	set := func(name, value, first string) {
		if value != first {
			q.Set(name, value)
		}
	}
	set("q", a.query, "")
	set("sort", a.sort, usual)
	set("state", a.state, "")
	set("model", a.model, "")
	set("hardware", a.hardware, "")
	set("page", strconv.Itoa(a.number), "1")
	if len(q) == 0 {
		return "/studies"
	}
	return "/studies?" + q.Encode()
}

// showList shows the studies.
func (s *screen) showList(w http.ResponseWriter, r *http.Request) error {
	a := readAsked(r)
	v := listView{Query: a.query, Sort: a.sort, Heads: a.heads(), May: guard.From(r.Context()).May(guard.Launch) && s.readOnly() == nil}
	now, err := s.Store.Now(r.Context())
	if err != nil {
		return err
	}
	p, err := now.List(r.Context(), a.page())
	if wrong, ok := errors.AsType[*filter.Error](err); ok { // the list stays, without what is wrong
		v.Wrong = wrong.Text
		plain := a
		plain.query, plain.sort = "", usual
		p, err = now.List(r.Context(), plain.page())
	}
	if err != nil {
		return err
	}
	v.Total = p.Total
	launches := s.launches()
	for _, e := range p.Entries {
		v.Rows = append(v.Rows, newListRow(e, launches))
	}
	v.pages(a, len(p.Entries))
	v.Waits = waiting(launches, p.Entries)
	if v.Facets, err = facets(r.Context(), now, a); err != nil {
		return err
	}
	v.Empty = p.Total == 0 && len(v.Waits) == 0 && a.expression() == ofStudies
	v.Events = "/studies/events?at=" + listShape(p.Entries, v.Waits) + "&" + r.URL.Query().Encode()
	return s.Pages.Show(w, r, s.list, page.View{Title: "Studies", Nav: "studies", Data: v})
}

// page is what is asked of the index.
func (a asked) page() store.Query {
	return store.Query{Filter: a.expression(), Order: a.sort, Limit: onPage, Offset: (a.number - 1) * onPage, Figures: []string{scan.GPUHours}}
}

// listed is the list as it is now.
func (s *screen) listed(ctx context.Context, a asked) (store.Page, error) {
	now, err := s.Store.Now(ctx)
	if err != nil {
		return store.Page{}, err
	}
	return now.List(ctx, a.page())
}

// heads are the columns.
func (a asked) heads() []head {
	all := []head{
		{Col: "name", Title: "Study"}, {Col: "state", Title: "State"}, {Col: "best", Title: "Best", About: "what is recommended, or leads so far"},
		{Col: "value", Title: "Objective", About: "of the best", Number: true}, {Col: "gain", Title: "Gain", About: "over the baseline, with its 95 % interval", Number: true},
		{Col: "trials", Title: "Trials", About: "ended, of at most", Number: true}, {Col: "model", Title: "Model"}, {Col: "hardware", Title: "Hardware"},
		{Col: "started", Title: "Age"}, {Col: "who", Title: "Launched by"},
	}
	down := []string{"gain", "trials", "started"}
	for i := range all {
		h := &all[i]
		if slices.Contains([]string{"best", "value", "who"}, h.Col) {
			continue
		}
		next := h.Col
		if slices.Contains(down, h.Col) {
			next = "-" + h.Col
		}
		switch a.sort {
		case h.Col:
			h.Sorted, next = "ascending", "-"+h.Col
		case "-" + h.Col:
			h.Sorted, next = "descending", h.Col
		}
		h.Href = a.href(func(a *asked) { a.sort = next })
	}
	return all
}

// pages sets which part of the list is shown.
func (v *listView) pages(a asked, n int) {
	if n == 0 {
		return
	}
	v.From = (a.number-1)*onPage + 1
	v.To = v.From + n - 1
	if a.number > 1 {
		v.Prev = a.href(func(x *asked) { x.number = a.number - 1 })
	}
	if v.To < v.Total {
		v.Next = a.href(func(x *asked) { x.number = a.number + 1 })
	}
}

// facets are the values that the studies have, each counted under what else is asked.
func facets(ctx context.Context, now recall.Now, a asked) (out []facet, err error) {
	const most = 8
	for i, f := range a.facets() {
		without := a
		*[]*string{&without.state, &without.model, &without.hardware}[i] = ""
		groups, err := now.Groups(ctx, store.Query{Filter: without.expression(), Limit: most}, f.fact)
		if _, wrong := errors.AsType[*filter.Error](err); wrong {
			return nil, nil // the page says what is wrong
		}
		if err != nil {
			return nil, err
		}
		x := facet{Name: strings.ToUpper(f.fact[:1]) + f.fact[1:]}
		for _, g := range groups {
			if g.Value == "" {
				continue
			}
			on := g.Value == f.value
			value := g.Value
			if on {
				value = ""
			}
			x.Values = append(x.Values, facetValue{g.Value, a.href(func(a *asked) { *[]*string{&a.state, &a.model, &a.hardware}[i] = value }), g.Count, on})
		}
		if len(x.Values) > 1 || f.value != "" {
			out = append(out, x)
		}
	}
	return out, nil
}

// newListRow is a study as the list shows it.
func newListRow(e store.Entry, launches map[string]*launch.Launch) listRow {
	row := listRow{Entry: e, Name: e.Called(), Live: "s" + page.Short(e.ID)}
	if l := launches[e.Dir()]; l != nil {
		row.Who = l.Who
	}
	h := e.Headline
	if h == nil {
		return row
	}
	row.Best = h.Best
	if h.Trials > 0 {
		row.Trials = strconv.Itoa(h.Trials)
	}
	if h.Value != nil {
		row.Value = page.Figure(map[string]float64{h.Metric: *h.Value}, h.Metric)
	}
	if h.Gain != nil && *h.Gain > -1 {
		span := tune.Span{Value: 1 + *h.Gain}
		if h.Low != nil && h.High != nil {
			span.Low, span.High = 1+*h.Low, 1+*h.High
		}
		row.Gain = finding.Ratio(span, h.Higher)
		switch {
		case span.Low > 1:
			row.Tone = "up"
		case span.High > 0 && span.High < 1:
			row.Tone = "down"
		}
	}
	if e.State == scan.Running || e.State == scan.Stopped {
		row.goesOn(e.Dir())
	}
	return row
}

// goesOn adds what a study says of itself that has not come to its end: a small file, of the few
// that do.
func (row *listRow) goesOn(dir string) {
	var u outcome.Underway
	if dir == "" || rundir.ReadJSON(filepath.Join(dir, rundir.UnderwayFile), &u) != nil {
		return // it says nothing: what the index has is shown
	}
	row.Trials = strconv.Itoa(u.Ended)
	if u.Most > 0 {
		row.Trials = fmt.Sprintf("%d of at most %d", u.Ended, max(u.Most, u.Ended))
	}
	if l := u.Leader; l != nil {
		row.Best = l.Label
		if l.Ratio != nil {
			row.Gain, row.Tone, row.Open = finding.Ratio(*l.Ratio, l.Higher), "", true
		}
	}
}

// waiting are the launched studies that have no directory yet.
func waiting(launches map[string]*launch.Launch, have []store.Entry) (out []launch.Launch) {
	for dir, l := range launches {
		there := slices.ContainsFunc(have, func(e store.Entry) bool { return e.Dir() == dir })
		if !there && (l.State == launch.Queued || l.State == launch.Running) {
			out = append(out, *l)
		}
	}
	slices.SortFunc(out, func(a, b launch.Launch) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// listShape is a digest of which rows the list has, and in which state.
func listShape(all []store.Entry, waits []launch.Launch) string {
	h := fnv.New64a()
	for _, e := range all {
		fmt.Fprint(h, e.ID, e.State, e.Called(), e.Marks.Tags, ";")
	}
	for _, l := range waits {
		fmt.Fprint(h, l.ID, l.State, l.Waits, ";")
	}
	return fmt.Sprintf("%x", h.Sum64())
}

// streamList tells the page of the list what changes: the figures of those that run, and that there
// are others.
func (s *screen) streamList(w http.ResponseWriter, r *http.Request) error {
	stream, err := page.OpenStream(w)
	if err != nil {
		return nil // whoever asked has left
	}
	a, shown := readAsked(r), r.URL.Query().Get("at")
	told := map[string]any{}
	every := time.NewTicker(2 * lookEvery)
	defer every.Stop()
	beat := page.Beat()
	defer beat.Stop()
	var seen listVersion
	for {
		if now, err := s.listVersion(r.Context()); err != nil || now != seen {
			if p, err := s.listed(r.Context(), a); err == nil { // an expression that is wrong is said on the page
				if shown, err = s.tellList(stream, p.Entries, shown, told); err != nil {
					return nil
				}
				seen = now
			}
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-every.C:
		case <-beat.C:
			if err := stream.Send("alive", "", struct{}{}); err != nil {
				return nil
			}
			seen = listVersion{} // ages have grown, of which an expression may speak
		}
	}
}

// listVersion is another one whenever the index or the queue is.
type listVersion struct {
	index int64
	queue uint64
}

// listVersion is that of now; it costs a small part of a look at the list.
func (s *screen) listVersion(ctx context.Context) (v listVersion, err error) {
	v.index, err = s.Store.Version(ctx)
	if s.Queue != nil {
		v.queue = s.Queue.Version()
	}
	return v, err
}

// tellList sends what a page does not have of the list, and returns the shape that it has then.
func (s *screen) tellList(stream *page.Stream, all []store.Entry, shown string, told map[string]any) (string, error) {
	launches := s.launches()
	changed := map[string]any{}
	for _, e := range all {
		if e.State != scan.Running {
			continue
		}
		row := newListRow(e, launches)
		for name, text := range map[string]string{"trials": row.Trials, "best": row.Best, "gain": row.Gain} {
			key := row.Live + "-" + name
			if text = cmp.Or(text, page.None); told[key] != text {
				told[key], changed[key] = text, text
			}
		}
	}
	if len(changed) > 0 {
		if err := stream.Send("set", "", changed); err != nil {
			return shown, err
		}
	}
	if now := listShape(all, waiting(launches, all)); now != shown {
		return now, stream.Send("reload", "", struct{}{})
	}
	return shown, nil
}
