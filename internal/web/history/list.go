package history

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/trend"
	"perflab/internal/web/page"
)

// perPage is how many lines a page of the list has.
const perPage = 100

// row is a line of the list.
type row struct {
	trend.Line
	Href    string
	Title   string
	Made    string // SIMULATED, PREDICTED, or ""
	Value   string // newest figure of the metric
	Raw     string // as it is exported
	Change  string // the newest change of the metric
	Spark   template.HTML
	Of      []string // metrics that make the standing what it is
	StaleIt bool
}

// listView is what the list shows.
type listView struct {
	State    state
	Wrong    string // with the filter
	Rows     []row
	Total    int // rows of all pages
	From, To int
	Once     int // lines with one run, that are left out
	Lines    int // there are
	Runs     int
	Metric   string
	Metrics  []result.Metric
	Counts   []count
	Earlier  string
	Later    string
	Switch   string
	Clear    string
}

// count is a standing with the number of its lines.
type count struct {
	Name, URL string
	N         int
	On        bool
}

const stale = "stale"

func (s *screen) serveList(w http.ResponseWriter, r *http.Request) error {
	st, err := parse(r.URL.Query())
	if err != nil {
		return err
	}
	if to, ok := st.tidy(r.URL); !ok {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return nil
	}
	v := listView{State: st, Metric: nameOf(st.Metric), Metrics: result.Metrics(), Clear: "/history" + state{Metric: st.Metric, Least: st.Least, Level: st.Level, Persist: st.Persist, Builds: st.Builds}.query()}
	status := http.StatusOK
	o := st.options()
	lines, err := s.lines(r.Context(), o)
	if wrong, ok := errors.AsType[*filter.Error](err); ok {
		v.Wrong, status = wrong.Error(), http.StatusBadRequest
		o.Filter = ""
		lines, err = s.lines(r.Context(), o)
	}
	if err != nil {
		return problem(err)
	}
	if len(lines) == 0 && st.Q == "" {
		p, err := s.Store.List(r.Context(), store.Query{Filter: "kind=run", Limit: 1})
		if err != nil {
			return err
		}
		v.Runs = p.Total
	}
	v.fill(lines)
	return s.Pages.ShowStatus(w, r, status, s.list, page.View{Title: "History", Nav: "history", Banner: banner(lines), Data: v})
}

// banner says it where all that is shown was simulated.
func banner(lines []trend.Line) string {
	if len(lines) > 0 && !slices.ContainsFunc(lines, func(l trend.Line) bool { return made(l.Source) == "" }) {
		return "SIMULATED: all of these histories were made by perflab's simulator, none by a real engine"
	}
	return ""
}

// fill chooses what of the lines is shown.
func (v *listView) fill(lines []trend.Line) {
	v.Lines = len(lines)
	st := v.State
	repeated := slices.DeleteFunc(slices.Clone(lines), func(l trend.Line) bool { return l.Runs < 2 })
	v.Once = len(lines) - len(repeated)
	if st.Single {
		repeated = lines
	}
	v.Switch = "/history" + with(st, func(s *state) { s.Single, s.Page = !s.Single, 1 })
	v.count(repeated)
	if st.Is != "" {
		repeated = slices.DeleteFunc(slices.Clone(repeated), func(l trend.Line) bool { return string(l.Standing()) != st.Is && (st.Is != stale || !l.Stale()) })
	}
	v.Total = len(repeated)
	first := min((st.Page-1)*perPage, max(0, (v.Total-1)/perPage*perPage))
	last := min(first+perPage, v.Total)
	v.From, v.To = first+1, last
	for _, l := range repeated[first:last] {
		v.Rows = append(v.Rows, rowOf(l, st))
	}
	if first > 0 {
		v.Earlier = "/history" + with(st, func(s *state) { s.Page = first / perPage })
	}
	if last < v.Total {
		v.Later = "/history" + with(st, func(s *state) { s.Page = first/perPage + 2 })
	}
}

// with is the address of a state that differs.
func with(s state, change func(*state)) string {
	change(&s)
	return s.query()
}

// count counts the standings.
func (v *listView) count(lines []trend.Line) {
	n := map[string]int{}
	for _, l := range lines {
		n[string(l.Standing())]++
		if l.Stale() {
			n[stale]++
		}
	}
	names := []string{}
	for _, s := range slices.Backward(trend.Standings()) {
		names = append(names, string(s))
	}
	for _, name := range append(names, stale) {
		if n[name] == 0 && v.State.Is != name {
			continue
		}
		on := v.State.Is == name
		url := "/history" + with(v.State, func(s *state) {
			s.Is, s.Page = name, 1
			if on {
				s.Is = ""
			}
		})
		v.Counts = append(v.Counts, count{name, url, n[name], on})
	}
}

// rowOf is a line as the list shows it.
func rowOf(l trend.Line, st state) row {
	one := st
	one.Single, one.Is, one.Page = false, "", 1
	r := row{Line: l, Title: titleOf(l), Made: made(l.Source), Value: page.None, StaleIt: l.Stale()}
	r.Href = "/history/" + url.PathEscape(l.Key) + one.query()
	for _, h := range l.Histories {
		if h.Standing() == l.Standing() && h.Last() != nil {
			r.Of = append(r.Of, nameOf(h.Metric))
		}
		if h.Metric != st.Metric {
			continue
		}
		r.Spark = spark(h)
		if p := h.Newest(); p != nil {
			r.Value = page.Figure(map[string]float64{h.Metric: p.Value}, h.Metric)
			r.Raw = strconv.FormatFloat(p.Value, 'g', -1, 64)
		}
		if c := h.Last(); c != nil {
			r.Change = sizeOf(*c)
		}
	}
	return r
}

// titleOf is what a line is called.
func titleOf(l trend.Line) string {
	parts := []string{l.Model}
	if l.Model == "" {
		parts[0] = "a model that no run names"
	}
	if l.Label != "" {
		parts = append(parts, l.Label)
	}
	if l.Engine != "" {
		parts = append(parts, strings.TrimSpace(l.Engine+" "+l.Version))
	}
	return strings.Join(parts, ", ")
}

// Tone is the class of the tag of a standing.
func (r row) Tone() string { return tone(r.Standing()) }

func tone(s trend.Standing) string {
	switch s {
	case trend.SuspectedWorse, trend.Worse:
		return "void"
	case trend.Suspected, trend.SuspectedBetter, trend.Changed:
		return "noted"
	case trend.Better, trend.Steady:
		return "sound"
	}
	return ""
}
