package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/store/scan"
	"perflab/internal/web/guard"
	"perflab/internal/web/page"
	"perflab/internal/web/recall"
)

// listView is what the list shows.
type listView struct {
	State   state
	Base    string // that links begin with: of a share link
	Path    string // of the list
	Here    string // the address of this list
	Shared  bool
	May     may
	Wrong   *wrong // of the expression or the order
	Chips   []chip
	Facets  []facet
	Heads   []head
	Rows    []row
	Wide    int // columns, with the one of the ticks
	All     string
	Groups  []groupLink
	Fixed   *fixed
	Total   int
	Inside  int // entries that lie in others, and that the list would have too
	From    int
	To      int
	Earlier string // addresses of pages
	Later   string
	Switch  string // the address of the list with or without what lies in others
	Clear   string
	Unknown []string // columns that nobody knows
	Undo    []store.Removed
	Export  []link
	Running bool
}

// fixed is what stands around every list, made once.
type fixed struct {
	HowTo   page.Main // filter
	Columns page.Main // that can be added, as options
}

// newFixed makes it of the templates of the list.
func newFixed(pages *page.Pages, t *page.Template) *fixed {
	part := func(name string, data any) page.Main {
		text, err := pages.Part(t, name, data)
		if err != nil {
			panic(err) // both are part of the program
		}
		return page.Main(text)
	}
	return &fixed{HowTo: part("howto", filter.Fields()), Columns: part("columns", otherColumns(nil))}
}

type link struct{ Text, URL string }

type groupLink struct {
	Text, URL string
	On        bool
}

// wrong is an error of an expression, at its place.
type wrong struct {
	Of           string // filter or order
	Before, Rest string
	Text         string
}

// head is the head of a column.
type head struct {
	column
	URL    string // of the list in its order
	Sorted string // ascending, descending
	Fixed  bool
}

// row is a row of the list, or the head of a group of them.
type row struct {
	Group *groupHead
	entryView
	Cells []cell
	Pin   bool // who asks may pin it
}

// groupHead stands above the rows that have one value of a fact.
type groupHead struct {
	Text  string
	Count int // of all pages; 0: not known
	URL   string
}

// serveList shows the list.
func (s *screen) serveList(w http.ResponseWriter, r *http.Request) error {
	st, err := readState(r.URL.Query())
	if err != nil {
		return err
	}
	if r.URL.Query().Has("add") {
		http.Redirect(w, r, st.URL("/runs"), http.StatusSeeOther)
		return nil
	}
	now, err := s.o.Store.Now(r.Context())
	if err != nil {
		return err
	}
	make := func(ctx context.Context) (shown, error) { return s.shown(ctx, r, st, now) }
	if guard.From(r.Context()).Base != "" || len(st.Undo) > 0 { // they show what is not of the index alone
		v, err := make(r.Context())
		if err != nil {
			return err
		}
		return s.o.Pages.Show(w, r, s.list, page.View(v))
	}
	v, err := recall.Made(r.Context(), now, fmt.Sprintf("runs %+v %s", s.may(r), st.URL("/runs")), listFresh, make)
	if err != nil {
		return err
	}
	return s.o.Pages.Show(w, r, s.list, page.View(v))
}

// listFresh is for how long a list is shown as it was made: the ages in it are of then.
const listFresh = 5 * time.Second

// shown is a list as it is shown, to one or to several who ask for the same.
type shown page.View

// Size is about how many bytes it takes.
func (v shown) Size() int { return len(v.Main) }

// shown makes the list.
func (s *screen) shown(ctx context.Context, r *http.Request, st state, now recall.Now) (shown, error) {
	v, err := s.listing(ctx, r, st, now)
	if err != nil {
		return shown{}, err
	}
	t, view := s.list, shown{Title: "Runs", Nav: "runs", Styles: styles}
	if v.Total == 0 && v.Inside == 0 && v.State.Q == "" && v.Wrong == nil && !v.Shared && len(v.Undo) == 0 {
		t, view.Title = s.first, "First run"
	} else if all(v.Rows, func(e store.Entry) bool { return e.Simulated }) {
		view.Banner = "SIMULATED: of all that is listed here, no real engine answered"
	}
	view.Main, err = s.o.Pages.Main(t, v)
	return view, err
}

// all reports whether something holds for all entries of a list that has some.
func all(rows []row, holds func(store.Entry) bool) bool {
	some := false
	for _, r := range rows {
		if r.Group != nil {
			continue
		}
		if some = true; !holds(r.Entry) {
			return false
		}
	}
	return some
}

// listing is what a list shows.
func (s *screen) listing(ctx context.Context, r *http.Request, st state, now recall.Now) (*listView, error) {
	who := guard.From(ctx)
	v := &listView{State: st, Base: who.Base, Path: who.Base + "/runs", Shared: who.Base != "", May: s.may(r), Fixed: s.fixed}
	if v.Shared {
		return v, s.sharedListing(ctx, v, who.IDs)
	}
	v.Here = st.URL(v.Path)
	parts, p, columns, err := query(ctx, now, v, st)
	if err != nil {
		return nil, err
	}
	v.Total = p.Total
	v.heads(columns)
	if err := rows(ctx, now, v, p, columns); err != nil {
		return nil, err
	}
	v.pages()
	return v, s.around(ctx, v, parts, now)
}

// sharedListing is the list of what a share link names: all of it, in the order of the link.
func (s *screen) sharedListing(ctx context.Context, v *listView, ids []string) error {
	v.State = state{}
	var p store.Page
	for _, id := range ids {
		e, err := s.o.Store.Get(ctx, id)
		if _, gone := errors.AsType[*store.NotFoundError](err); gone {
			continue
		}
		if err != nil {
			return err
		}
		p.Entries = append(p.Entries, e)
	}
	columns, _ := columnsOf(usualColumns)
	for i := range columns {
		columns[i].Sort = ""
	}
	v.heads(columns)
	v.Total = len(p.Entries)
	v.From, v.To = min(1, v.Total), v.Total
	return rows(ctx, recall.Now{}, v, p, columns)
}

// query asks the store. What is wrong with the expression, or with the order, is kept in the view,
// and the list is then made without it.
func query(ctx context.Context, now recall.Now, v *listView, st state) ([]filter.Part, store.Page, []column, error) {
	columns, unknown := columnsOf(st.columns())
	v.Unknown = unknown
	q := store.Query{Filter: st.condition(st.Q), Order: st.order(), Limit: perPage, Offset: st.Page * perPage, Figures: figuresOf(columns)}
	parts, err := filter.Parts(st.Q, time.Now())
	if bad, ok := errors.AsType[*filter.Error](err); ok {
		v.Wrong = wrongAt("filter", st.Q, bad)
		q.Filter, parts = st.condition(""), nil
	}
	if _, err := filter.ParseOrder(q.Order); err != nil {
		bad, ok := errors.AsType[*filter.Error](err)
		if !ok {
			return nil, store.Page{}, nil, err
		}
		v.Wrong = wrongAt("order", q.Order, bad)
		q.Order = ""
	}
	p, err := now.List(ctx, q)
	if bad, ok := errors.AsType[*filter.Error](err); ok {
		err = page.Bad(bad.Error())
	}
	return parts, p, columns, err
}

func wrongAt(of, text string, e *filter.Error) *wrong {
	all := []rune(text)
	at := min(max(0, e.At-1), len(all))
	return &wrong{Of: of, Before: string(all[:at]), Rest: string(all[at:]), Text: e.Text}
}

// order is that of the store's query.
func (s state) order() string {
	if s.Group == "" {
		return s.Sort
	}
	order := s.Sort
	if order == "" {
		order = "-started"
	}
	return s.Group + "," + order
}

func figuresOf(columns []column) []string {
	var out []string
	for _, c := range columns {
		if c.Metric != "" {
			out = append(out, c.Metric)
		}
	}
	return out
}

// heads are the heads of the columns, with what else could be shown.
func (v *listView) heads(columns []column) {
	for _, c := range columns {
		h := head{column: c, Fixed: c.Name == "name"}
		if c.Sort != "" {
			h.URL = v.State.sorted(c).URL(v.Path)
		}
		switch v.State.Sort {
		case c.Sort:
			h.Sorted = "ascending"
		case "-" + c.Sort:
			h.Sorted = "descending"
		}
		if c.Sort == "" {
			h.Sorted = ""
		}
		v.Heads = append(v.Heads, h)
	}
	v.Wide = len(columns) + 1
}

// rows are those of a page, under the heads of their groups.
func rows(ctx context.Context, now recall.Now, v *listView, p store.Page, columns []column) error {
	counts := map[string]int{}
	if v.State.Group != "" {
		found, err := counted(ctx, now, v.State.condition(v.goodQ()), v.State.Group)
		if err != nil {
			return err
		}
		for _, g := range found {
			counts[g.Value] = g.Count
		}
	}
	last, first := "", true
	for _, e := range p.Entries {
		if g, value, ok := groupOf(v.State, e, v.Path); ok && (first || value != last) {
			g.Count = counts[value]
			v.Rows = append(v.Rows, row{Group: g})
			last, first = value, false
		}
		x := row{entryView: viewOf(e, v.Base), Pin: v.May.Mark}
		for _, c := range columns {
			x.Cells = append(x.Cells, c.of(e))
		}
		v.Running = v.Running || e.State == scan.Running
		v.Rows = append(v.Rows, x)
	}
	return nil
}

// goodQ is the expression by which the list was made.
func (v *listView) goodQ() string {
	if v.Wrong != nil && v.Wrong.Of == "filter" {
		return ""
	}
	return v.State.Q
}

// groupOf is the group of an entry, in a list that is grouped.
func groupOf(st state, e store.Entry, path string) (*groupHead, string, bool) {
	value, text := "", ""
	switch st.Group {
	case "":
		return nil, "", false
	case "model":
		value, text = e.Model, e.Model
	case "workload":
		value, text = e.Workload, e.Workload
	case "config":
		value = e.Config
		text = strings.Join(slices.DeleteFunc([]string{engineText(e), e.Model, e.Hardware, e.Label}, func(s string) bool { return s == "" }), ", ")
		if value != "" {
			text += " (" + page.Short(value) + ")"
		}
	}
	g := &groupHead{Text: text}
	if value == "" {
		g.Text = "without a " + groupLabel(st.Group)
	}
	if p, ok := filter.Equals(st.Group, value); ok {
		next := st.first()
		next.Group, next.Q = "", strings.TrimSpace(st.Q+" "+p.Text)
		g.URL = next.URL(path)
	}
	return g, value, true
}

func groupLabel(name string) string {
	for _, g := range groups {
		if g.Name == name {
			return g.Label
		}
	}
	return name
}

// pages are the links to other pages of the list.
func (v *listView) pages() {
	st := v.State
	v.From = min(v.Total, st.Page*perPage+1)
	v.To = min(v.Total, (st.Page+1)*perPage)
	if st.Page > 0 {
		one := st
		one.Page--
		v.Earlier = one.URL(v.Path)
	}
	if v.To < v.Total {
		one := st
		one.Page++
		v.Later = one.URL(v.Path)
	}
}

// around is what stands around the list for who may see everything.
func (s *screen) around(ctx context.Context, v *listView, parts []filter.Part, now recall.Now) (err error) {
	st := v.State
	v.Chips = chips(st, parts, v.Path)
	if v.Facets, err = facets(ctx, st, parts, v.Path, now); err != nil {
		return err
	}
	in, err := now.List(ctx, store.Query{Filter: strings.TrimSpace(v.goodQ() + " parent!=none"), Limit: 1})
	if err != nil {
		return err
	}
	v.Inside = in.Total
	other := st.first()
	other.Parts = !st.Parts
	v.Switch = other.URL(v.Path)
	v.Clear = state{Columns: st.Columns, Sort: st.Sort, Group: st.Group, Parts: st.Parts}.URL(v.Path)
	v.groupLinks()
	columns := make([]column, len(v.Heads))
	for i, h := range v.Heads {
		columns[i] = h.column
	}
	if v.All, err = menuColumns(otherColumns(columns)); err != nil {
		return err
	}
	for _, f := range exports {
		v.Export = append(v.Export, link{f.Label, exportURL(st, f.Name)})
	}
	return s.undo(ctx, v)
}

func (v *listView) groupLinks() {
	none := v.State.first()
	none.Group = ""
	v.Groups = append(v.Groups, groupLink{"nothing", none.URL(v.Path), v.State.Group == ""})
	for _, g := range groups {
		one := v.State.first()
		one.Group = g.Name
		v.Groups = append(v.Groups, groupLink{g.Label, one.URL(v.Path), v.State.Group == g.Name})
	}
}

// menuColumns are those of the menu of columns, as its script reads them. All figures would be too
// long a menu: further ones are added by name.
func menuColumns(others []column) (string, error) {
	type choice struct {
		Name  string `json:"name"`
		Label string `json:"label"`
	}
	out := []choice{}
	for _, c := range others {
		if c.Metric == "" || slices.Contains(frequent, c.Name) || own[c.Name].Label != "" {
			out = append(out, choice{c.Name, c.Label})
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("encode the columns of a menu: %w", err)
	}
	return string(b), nil
}

// frequent are the figures of the menu of columns.
var frequent = []string{
	"request_throughput", "output_throughput", "total_token_throughput", "mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms",
	"mean_tpot_ms", "median_tpot_ms", "p99_tpot_ms", "mean_itl_ms", "p99_itl_ms", "mean_e2el_ms", "p99_e2el_ms", "request_goodput", "completed", "failed", "duration",
}

// undo finds what was just deleted, and is still in the trash.
func (s *screen) undo(ctx context.Context, v *listView) error {
	if len(v.State.Undo) == 0 || !v.May.Delete {
		return nil
	}
	trash, err := s.o.Store.Trash(ctx)
	if err != nil {
		return err
	}
	for _, x := range trash {
		if slices.Contains(v.State.Undo, x.Trash) {
			v.Undo = append(v.Undo, x)
		}
	}
	return nil
}

// listEvery is how often a list that is open is renewed at most.
const listEvery = 5 * time.Second

// serveListEvents tells a list that is open when something changed.
func (s *screen) serveListEvents(w http.ResponseWriter, r *http.Request) error {
	version, err := s.o.Store.Version(r.Context())
	if err != nil {
		return err
	}
	out, err := page.OpenStream(w)
	if err != nil {
		return err
	}
	for {
		ctx, cancel := context.WithTimeout(r.Context(), 15*time.Second)
		next, err := s.o.Store.Wait(ctx, version)
		quiet := ctx.Err() != nil
		cancel()
		switch {
		case r.Context().Err() != nil:
			return nil
		case quiet:
			err = out.Send("alive", "", struct{}{})
		case err != nil:
			return nil // the store is closed: the browser comes back
		default:
			version = next
			err = out.Send("reload", "", struct{}{})
		}
		if err != nil {
			return nil // the reader left
		}
		if !quiet && !pause(r.Context(), listEvery) {
			return nil
		}
	}
}

// pause waits, and reports whether the context goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
