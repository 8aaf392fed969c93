package api

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/compare"
	"perflab/internal/drift"
	"perflab/internal/lineage"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/source"
	"perflab/internal/store"
	"perflab/internal/store/reduction"
	"perflab/internal/store/scan"
	"perflab/internal/trend"
	"perflab/internal/web/guard"
	"perflab/internal/web/page"
)

// measuring is the part of the API that gives figures.
type measuring struct{ *API }

func (a measuring) routes() []page.Route {
	names := page.Parameter{Name: "metrics", Doc: "Names of metrics joined by commas.", Example: "output_throughput,p99_ttft_ms"}
	return []page.Route{{
		Pattern: "GET /api/v1/figures", Role: guard.Read, Serve: served(a.figures),
		Doc: page.Doc{Summary: "Figures of entries, a row for each that there is; as CSV with format=csv.",
			Query:  []page.Parameter{names, filterParameter, sortParameter, limitParameter, offsetParameter, {Name: "format", Doc: "json or csv.", Example: "json"}},
			Answer: Figures{}},
	}, {
		Pattern: "GET /api/v1/entries/{id}/reduction", Role: guard.Read, Serve: served(a.reduction),
		Doc: page.Doc{Summary: "A run as plots draw it: latencies as up to 512 quantiles, and its course by the second.", Query: []page.Parameter{idParameter}, Answer: reduction.Reduction{}},
	}, {
		Pattern: "GET /api/v1/entries/{id}/standing", Role: guard.Read, Serve: served(a.progress),
		Doc: page.Doc{Summary: "How far a study, a series or a run has come, as perflab status has it.", Query: []page.Parameter{idParameter}, Answer: outcome.Standing{},
			Errors: map[int]string{409: "It lies on another machine."}},
	}, {
		Pattern: "GET /api/v1/compare", Role: guard.Read, Serve: served(a.compare),
		Doc: page.Doc{Summary: "Runs, or series of the same run, compared with the first of them: ratios with intervals, and what else differs.",
			Query: []page.Parameter{{Name: "ids", Doc: "IDs or names of two to 20 entries, joined by commas; the first is what the others are compared with."}, names,
				{Name: "by", Doc: "Key of the fact in which the sides differ on purpose; found where it is one."}},
			Answer: compare.Comparison{}, Errors: map[int]string{409: "One of them lies on another machine."}},
	}, {
		Pattern: "GET /api/v1/history", Role: guard.Read, Serve: served(a.series),
		Doc: page.Doc{Summary: "Figures of one configuration over time, with what changed: see docs/history.md.",
			Query: []page.Parameter{{Name: "config", Doc: "The key of a configuration: config of an entry."}, {Name: "id", Doc: "An entry, in place of the key of its configuration."}, names,
				{Name: "by", Doc: "builds or launches: what a point is.", Example: "builds"}, {Name: "least", Doc: "The least relative change that is told: 0.02 without it.", Example: "0.02"},
				{Name: "q", Doc: "A filter that the runs also have to meet."}},
			Answer: Histories{}},
	}}
}

// FigureRow is one figure of one entry.
type FigureRow struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Kind      scan.Kind `json:"kind"`
	Started   time.Time `json:"started,omitzero"`
	Model     string    `json:"model,omitempty"`
	Engine    string    `json:"engine,omitempty"`
	Hardware  string    `json:"hardware,omitempty"`
	Config    string    `json:"config,omitempty"`
	Build     string    `json:"build,omitempty"`
	Workload  string    `json:"workload,omitempty"`
	Verdict   string    `json:"verdict,omitempty"`
	Simulated bool      `json:"simulated"`
	Predicted bool      `json:"predicted"`
	Imported  string    `json:"imported,omitempty"` // the client that measured it; "": perflab
	Metric    string    `json:"metric"`
	Unit      string    `json:"unit,omitempty"`
	Value     float64   `json:"value"`
	Low       *float64  `json:"low,omitempty"` // ends of its 95 % interval
	High      *float64  `json:"high,omitempty"`
}

// Figures are rows of them.
type Figures struct {
	Rows    []FigureRow `json:"rows"`
	Entries int         `json:"entries"` // that were looked at for this page
	Total   int         `json:"total"`   // entries that the filter holds for
}

func (a measuring) figures(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	if q.Figures, err = needed(r); err != nil {
		return err
	}
	format := r.URL.Query().Get("format")
	if format != "" && format != "json" && format != "csv" {
		return page.Bad("format is json or csv, not " + strconv.Quote(format))
	}
	p, err := a.o.Store.List(r.Context(), q)
	if err != nil {
		return err
	}
	out := Figures{Rows: []FigureRow{}, Entries: len(p.Entries), Total: p.Total}
	for _, e := range p.Entries {
		out.Rows = append(out.Rows, rowsOf(e)...)
	}
	if format == "csv" {
		return writeCSV(w, out.Rows)
	}
	page.WriteJSON(w, http.StatusOK, out)
	return nil
}

// needed reads the metrics that have to be named.
func needed(r *http.Request) ([]string, error) {
	names, err := metrics(r.URL.Query().Get("metrics"))
	if err == nil && len(names) == 0 {
		err = page.Bad("metrics is missing: give names joined by commas, such as output_throughput,p99_ttft_ms")
	}
	return names, err
}

func rowsOf(e store.Entry) (out []FigureRow) {
	for _, f := range e.Figures {
		row := FigureRow{ID: e.ID, Name: e.Called(), Kind: e.Kind, Started: e.Started, Model: e.Model, Engine: e.Engine, Hardware: e.Hardware, Config: e.Config,
			Build: e.Build, Workload: e.Workload, Verdict: e.Verdict, Simulated: e.Simulated, Predicted: e.Predicted, Imported: e.Imported,
			Metric: f.Metric, Value: f.Value, Low: f.Low, High: f.High}
		if m, err := result.Lookup(f.Metric); err == nil {
			row.Unit = m.Unit
		}
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b FigureRow) int { return strings.Compare(a.Metric, b.Metric) })
	return out
}

func writeCSV(w http.ResponseWriter, rows []FigureRow) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	out := csv.NewWriter(w)
	_ = out.Write([]string{"id", "name", "kind", "started", "model", "engine", "hardware", "config", "build", "workload", "verdict", "simulated", "predicted", "imported", "metric", "unit", "value", "low", "high"})
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	for _, r := range rows {
		started := ""
		if !r.Started.IsZero() {
			started = r.Started.UTC().Format(time.RFC3339)
		}
		_ = out.Write([]string{r.ID, harmless(r.Name), string(r.Kind), started, harmless(r.Model), harmless(r.Engine), harmless(r.Hardware), r.Config, harmless(r.Build), harmless(r.Workload),
			r.Verdict, strconv.FormatBool(r.Simulated), strconv.FormatBool(r.Predicted), harmless(r.Imported), r.Metric, r.Unit, number(&r.Value), number(r.Low), number(r.High)})
	}
	out.Flush() // a client that left needs no rest
	return nil
}

// harmless keeps a spreadsheet from taking a name for a formula.
func harmless(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// heavily does what reads many calls, a few at a time.
func (a *API) heavily(ctx context.Context, do func() error) error {
	select {
	case a.heavy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-a.heavy }()
	return do()
}

func (a measuring) reduction(w http.ResponseWriter, r *http.Request) error {
	return a.heavily(r.Context(), func() error {
		x, err := a.o.Store.Reduction(r.Context(), r.PathValue("id"))
		if err != nil {
			return err
		}
		page.WriteJSON(w, http.StatusOK, x)
		return nil
	})
}

// here finds an entry whose files are on this machine.
func (a *API) here(ctx context.Context, what string) (store.Entry, error) {
	e, err := a.o.Store.Get(ctx, what)
	if err != nil {
		return e, err
	}
	if e.Dir() == "" {
		return e, &page.Problem{Status: http.StatusConflict, Text: e.Called() + " lies on another machine", Hint: "Ask the server that runs there, or push it here."}
	}
	return e, nil
}

func (a measuring) progress(w http.ResponseWriter, r *http.Request) error {
	e, err := a.here(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	s, err := source.Standing(e.Dir())
	if err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, s)
	return nil
}

// mostSides is how many entries are compared at once.
const mostSides = 20

func (a measuring) compare(w http.ResponseWriter, r *http.Request) error {
	o := compare.Options{By: r.URL.Query().Get("by")}
	var err error
	if o.Metrics, err = metrics(r.URL.Query().Get("metrics")); err != nil {
		return err
	}
	var dirs []string
	for what := range strings.SplitSeq(r.URL.Query().Get("ids"), ",") {
		if what = strings.TrimSpace(what); what == "" {
			continue
		}
		e, err := a.here(r.Context(), what)
		if err != nil {
			return err
		}
		dirs = append(dirs, e.Dir())
	}
	if len(dirs) < 2 || len(dirs) > mostSides {
		return page.Bad(fmt.Sprintf("ids has 2 to %d entries, joined by commas", mostSides))
	}
	return a.heavily(r.Context(), func() error {
		sides, damage, err := source.Sides(dirs, nil)
		if err != nil {
			return err
		}
		c, err := compare.New(sides, o)
		if err != nil {
			return page.Bad(err.Error())
		}
		c.Warnings = append(c.Warnings, damage...)
		page.WriteJSON(w, http.StatusOK, c)
		return nil
	})
}

// Histories are figures of a configuration over time.
type Histories struct {
	Config    string    `json:"config"`
	By        string    `json:"by"` // builds or launches
	Runs      int       `json:"runs"`
	Histories []History `json:"histories"`
}

// History is one metric over time, from one source.
type History struct {
	Metric  string         `json:"metric"`
	Unit    string         `json:"unit,omitempty"`
	Source  lineage.Source `json:"source"`
	Points  []HistoryPoint `json:"points"`
	Found   drift.Found    `json:"found"`
	Newest  time.Time      `json:"newest,omitzero"`
	Stale   bool           `json:"stale"`
	Undated int            `json:"undated,omitzero"` // runs that have the figure and no date
}

// HistoryPoint is a launch or a build.
type HistoryPoint struct {
	Time  time.Time `json:"time"`
	Build string    `json:"build,omitempty"`
	Value *float64  `json:"value"` // null: there is none that can be believed
	Low   *float64  `json:"low,omitempty"`
	High  *float64  `json:"high,omitempty"`
	Void  bool      `json:"void,omitempty"` // it was measured and cannot be believed
	Runs  []string  `json:"runs"`           // IDs
}

// mostRuns is how many runs of a configuration a history is made of: the newest.
const mostRuns = 10_000

func (a measuring) series(w http.ResponseWriter, r *http.Request) error {
	names, err := needed(r)
	if err != nil {
		return err
	}
	by, byText := lineage.Builds, "builds"
	switch v := r.URL.Query().Get("by"); v {
	case "", "builds":
	case "launches":
		by, byText = lineage.Launches, v
	default:
		return page.Bad("by is builds or launches, not " + strconv.Quote(v))
	}
	config, err := a.configuration(r)
	if err != nil {
		return err
	}
	runs, err := a.runsOf(r, config, names)
	if err != nil {
		return err
	}
	o := drift.Options{}
	if text := r.URL.Query().Get("least"); text != "" {
		if o.Least, err = strconv.ParseFloat(text, 64); err != nil {
			return page.Bad("least is a relative change such as 0.02, not " + strconv.Quote(text))
		}
	}
	out := Histories{Config: config, By: byText, Runs: len(runs), Histories: []History{}}
	all, err := lineage.Of(runs, names, by)
	if err != nil {
		return page.Bad(err.Error())
	}
	for _, h := range all {
		x, err := historyOf(h, o)
		if err != nil {
			return page.Bad(err.Error())
		}
		out.Histories = append(out.Histories, x)
	}
	page.WriteJSON(w, http.StatusOK, out)
	return nil
}

// configuration is the key that is asked for.
func (a measuring) configuration(r *http.Request) (string, error) {
	config, id := r.URL.Query().Get("config"), r.URL.Query().Get("id")
	if (config == "") == (id == "") {
		return "", page.Bad("give either config, the key of a configuration, or id, an entry that has it")
	}
	if config != "" {
		if strings.Trim(config, "0123456789abcdef") != "" {
			return "", page.Bad("config is the key of a configuration, in hexadecimal digits: config of an entry")
		}
		return config, nil
	}
	e, err := a.o.Store.Get(r.Context(), id)
	if err == nil && e.Config == "" {
		err = page.NotFound(e.Called() + " has no configuration of its own")
	}
	return e.Config, err
}

func (a measuring) runsOf(r *http.Request, config string, names []string) (out []lineage.Run, err error) {
	filter := "kind=run config=" + config
	if q := r.URL.Query().Get("q"); q != "" {
		filter += ", " + q
	}
	for q := (store.Query{Filter: filter, Order: "-started", Limit: store.MostPage, Figures: names}); ; {
		p, err := a.o.Store.List(r.Context(), q)
		if err != nil {
			return nil, err
		}
		for _, e := range p.Entries {
			out = append(out, trend.RunOf(e))
		}
		q.Offset += len(p.Entries)
		if len(p.Entries) == 0 || q.Offset >= min(p.Total, mostRuns) {
			return out, nil
		}
	}
}

func historyOf(h lineage.History, o drift.Options) (History, error) {
	found, err := h.Find(o)
	if err != nil {
		return History{}, err
	}
	age := drift.Age(h.Values(), time.Now())
	x := History{Metric: h.Metric.Name, Unit: h.Metric.Unit, Source: h.Source, Points: []HistoryPoint{}, Found: found, Newest: age.Newest, Stale: age.Stale, Undated: h.Undated}
	x.Found.Segments = append([]drift.Segment{}, found.Segments...)
	x.Found.Changes = append([]drift.Change{}, found.Changes...)
	for _, p := range h.Points {
		y := HistoryPoint{Time: p.Time, Build: p.Build, Void: p.Void, Runs: p.Runs}
		if !math.IsNaN(p.Value) {
			y.Value = new(p.Value)
		}
		if p.Interval != nil {
			y.Low, y.High = new(p.Interval.Low), new(p.Interval.High)
		}
		x.Points = append(x.Points, y)
	}
	return x, nil
}
