// Package history is the screen History: which configurations were measured again and again,
// how their figures went, since which build one is better or worse, and what is out of date.
//
//	routes := history.Routes(history.Options{Pages: pages, Store: store, Audit: guard.Audit})
//
// Invariants: what is a change is said by package drift, and of which runs by package trend;
// void runs are shown and enter nothing; what was simulated is a history of its own, and says so.
//
// Deliberately absent: figures of its own, and any comparison: a change point leads to Compare.
package history

import (
	"context"
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"perflab/docs"
	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/store/mark"
	"perflab/internal/trend"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/page"
	"perflab/internal/web/recall"
)

//go:embed list.html one.html
var files embed.FS

// Options are what the screen needs.
type Options struct {
	Pages    *page.Pages
	Store    *recall.Index
	Audit    func(context.Context, trail.Event) error
	ReadOnly bool // nothing is marked
}

// screen is the screen.
type screen struct {
	Options
	list, one *page.Template
	newest    atomic.Pointer[listed] // the list that was made last
}

// Routes are the addresses of the screen.
func Routes(o Options) []page.Route {
	s := &screen{Options: o, list: o.Pages.Template(files, "list.html"), one: o.Pages.Template(files, "one.html")}
	routes := []page.Route{
		{Pattern: "GET /history", Role: guard.Read, Serve: s.serveList},
		{Pattern: "GET /history/rule", Role: guard.Read, Serve: serveRule},
		{Pattern: "GET /history/{key}", Role: guard.Read, Serve: s.serveOne},
		{Pattern: "GET /history/{key}/points.csv", Role: guard.Read, Serve: s.serveCSV},
		{Pattern: "GET /history/{key}/points.json", Role: guard.Read, Serve: s.serveJSON},
	}
	if !o.ReadOnly {
		routes = append(routes, page.Route{Pattern: "POST /history/{key}/note", Role: guard.Launch, Serve: s.postNote})
	}
	return routes
}

// serveRule is the document that says what a change is, as it is written.
func serveRule(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(docs.History) // a reader that left needs nothing
	return nil
}

// listed are all lines of a filter: to find the changes of a thousand histories takes a while.
type listed []trend.Line

// Size is about how many bytes they take.
func (l listed) Size() (n int) {
	for _, line := range l {
		for _, h := range line.Histories {
			n += 1000 + 200*len(h.Points)
		}
	}
	return n
}

// lines are all lines of the filter, as the index has them.
func (s *screen) lines(ctx context.Context, o trend.Options) ([]trend.Line, error) {
	now, err := s.Store.Now(ctx)
	if err != nil {
		return nil, err
	}
	o.From, o.To = "", ""
	lines, err := recall.Made(recall.Aside(ctx), now, fmt.Sprintf("history %+v", o), 0, func(ctx context.Context) (listed, error) {
		lines, err := trend.List(ctx, s.Store.Store, o)
		for i := range lines {
			lines[i].Entries = nil // a list shows none, and they are most of it
		}
		return lines, err
	})
	if err == nil {
		s.newest.Store(&lines)
	}
	return lines, err
}

// narrowed adds to a filter the configuration of a key, where the list that was made last has it:
// then no others are read.
func (s *screen) narrowed(filter, key string) string {
	newest := s.newest.Load()
	if newest == nil {
		return filter
	}
	for _, l := range *newest {
		if l.Key == key {
			return strings.TrimSpace(filter + " config=" + quoted(l.Config))
		}
	}
	return filter
}

// asked reads the address of a history, and finds it.
func (s *screen) asked(r *http.Request) (state, trend.Line, error) {
	st, err := parse(r.URL.Query())
	if err != nil {
		return st, trend.Line{}, err
	}
	o := st.options()
	o.Filter = s.narrowed(o.Filter, r.PathValue("key"))
	l, err := trend.Find(r.Context(), s.Store.Store, r.PathValue("key"), o)
	return st, l, problem(err)
}

// problem tells a reader what of an address is wrong.
func problem(err error) error {
	if _, ok := errors.AsType[*trend.NotFoundError](err); ok {
		return &page.Problem{Status: http.StatusNotFound, Text: err.Error(), Hint: "A history has another address when its configuration or its workload is another."}
	}
	if _, ok := errors.AsType[*filter.Error](err); ok {
		return page.Bad(err.Error())
	}
	return err
}

// postNote writes a note beside a run, which the history shows at its date; an empty one takes it away.
func (s *screen) postNote(w http.ResponseWriter, r *http.Request) error {
	key, id, text := r.PathValue("key"), r.PostFormValue("run"), strings.TrimSpace(r.PostFormValue("text"))
	l, err := trend.Find(r.Context(), s.Store.Store, key, trend.Options{Filter: s.narrowed("", key)})
	if err != nil {
		return problem(err)
	}
	e, ok := l.Entry(id)
	if !ok {
		return page.Bad("a note needs a run of this history: choose one")
	}
	if err := s.Audit(r.Context(), trail.Event{Action: "note", Object: e.ID}); err != nil {
		return fmt.Errorf("write down who changes a note: %w", err)
	}
	who := guard.From(r.Context()).Name
	if err := s.Store.Mark(r.Context(), who, e.ID, mark.Record{Do: mark.Note, Text: text}); err != nil {
		if _, ok := errors.AsType[*store.ReadOnlyError](err); ok {
			return &page.Problem{Status: http.StatusConflict, Text: err.Error()}
		}
		return err
	}
	back := "/history/" + url.PathEscape(l.Key)
	if st, err := url.ParseQuery(r.PostFormValue("back")); err == nil && len(st) > 0 {
		back += "?" + st.Encode()
	}
	http.Redirect(w, r, back+"#notes", http.StatusSeeOther)
	return nil
}

func (s *screen) serveJSON(w http.ResponseWriter, r *http.Request) error {
	_, l, err := s.asked(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="history-`+l.Key+`.json"`)
	page.WriteJSON(w, http.StatusOK, l)
	return nil
}

// serveCSV writes all points of all histories that are shown. Cells that a spreadsheet would
// compute begin with a quote.
func (s *screen) serveCSV(w http.ResponseWriter, r *http.Request) error {
	_, l, err := s.asked(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="history-`+l.Key+`.csv"`)
	out := csv.NewWriter(w)
	_ = out.Write([]string{"metric", "at", "value", "low", "high", "build", "void", "simulated", "predicted", "client", "change", "runs"})
	for _, h := range l.Histories {
		for i, p := range h.Points {
			_ = out.Write([]string{h.Metric, p.At.UTC().Format(time.RFC3339), float(&p.Value), float(p.Low), float(p.High), plainCell(p.Build), strconv.FormatBool(p.Void),
				strconv.FormatBool(l.Source.Simulated), strconv.FormatBool(l.Source.Predicted), plainCell(l.Source.Client), changeAt(h, i), strings.Join(p.Runs, " ")})
		}
	}
	out.Flush()
	return nil // a reader that left needs nothing
}

func float(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

func plainCell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// changeAt says whether a change begins at a point.
func changeAt(h trend.History, i int) string {
	for _, c := range h.Changes {
		if c.Index == i {
			return string(c.Standing)
		}
	}
	return ""
}
