package versus

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"perflab/internal/bench"
	"perflab/internal/compare"
	"perflab/internal/report"
	"perflab/internal/report/doc"
	"perflab/internal/source"
	"perflab/internal/store"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/page"
)

//go:embed compare.html
var files embed.FS

// screen is the screen.
type screen struct {
	pages    *page.Pages
	store    *store.Store
	guard    *guard.Guard
	template *page.Template
	cache    cache
}

// Routes are the addresses of the screen.
func Routes(p *page.Pages, s *store.Store, g *guard.Guard) []page.Route {
	x := &screen{pages: p, store: s, guard: g, template: p.Template(files, "compare.html")}
	return []page.Route{
		{Pattern: "GET /compare", Role: guard.Read, Shared: true, Serve: x.show},
		{Pattern: "GET /compare.json", Role: guard.Read, Shared: true, Serve: x.json},
		{Pattern: "GET /compare.md", Role: guard.Read, Shared: true, Serve: x.markdown},
		{Pattern: "POST /compare/share", Role: guard.Read, Serve: x.share},
	}
}

// view is what the page shows.
type view struct {
	choice
	Base     string // of addresses
	Who      guard.Who
	Facts    []fact // that differ, or all
	Hidden   int    // facts in which the sides agree
	Sides    []shown
	Heads    []string // names of the sides
	Verdict  []string // the first thing to read
	Ratios   template.HTML
	Fault    string // why there is no comparison
	Notes    []string
	Front    *plot
	CDFs     []plot
	Courses  []plot
	ByKeys   []option
	Found    []store.Entry // of the picker's search
	Search   string
	Links    map[string]string // switches
	Shared   string            // the link that was made just now
	JSON, MD string
}

// option is one of a select.
type option struct{ Value, Label string }

// shown is a side as the page shows it.
type shown struct {
	side
	First   bool
	Void    string
	Basis   string
	Started time.Time
	Remove  string // addresses
	Base    string
}

// Simulated reports whether any run of a side is.
func (s shown) Simulated() bool {
	return slices.ContainsFunc(s.Entries, func(e store.Entry) bool { return e.Simulated || e.Predicted })
}

// Verdicts are those of the runs of a side, each once.
func (s shown) Verdicts() []string {
	var out []string
	for _, e := range s.Entries {
		if v := e.Verdict; v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// Reasons are those of the verdicts, each once.
func (s shown) Reasons() []string {
	var out []string
	for _, e := range s.Entries {
		for _, r := range e.Reasons {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

func (s *screen) show(w http.ResponseWriter, r *http.Request) error {
	who := guard.From(r.Context())
	c, err := parse(r.URL.Query())
	if err != nil {
		return err
	}
	v, picked, err := s.view(r.Context(), who, c)
	if err != nil {
		return err
	}
	v.Shared = strings.TrimSpace(r.URL.Query().Get("shared"))
	if v.Shared != "" && !strings.HasPrefix(v.Shared, "/share/") {
		v.Shared = ""
	}
	if len(v.Sides) < 2 && who.May(guard.Read) {
		v.Search = r.URL.Query().Get("q")
		list, err := s.store.List(r.Context(), store.Query{Filter: pickFilter(v.Search), Limit: 20})
		if err != nil { // most likely an expression that is not finished
			v.Notes = append(v.Notes, "The search found nothing: "+err.Error()+".")
		}
		v.Found = list.Entries
	}
	title := "Compare"
	if len(v.Heads) > 1 {
		title = strings.Join(v.Heads[1:], ", ") + " against " + v.Heads[0]
	}
	banner := ""
	if picked.simulated() {
		banner = "SIMULATED: at least one side was measured on no GPU."
	}
	return s.pages.Show(w, r, s.template, page.View{Title: title, Nav: "compare", Banner: banner, Data: v})
}

// pickFilter finds runs to compare.
func pickFilter(search string) string {
	if search = strings.TrimSpace(search); search != "" {
		return search
	}
	return "kind=run"
}

// view makes what the page shows of a choice.
func (s *screen) view(ctx context.Context, who guard.Who, c choice) (view, *chosen, error) {
	picked, err := s.choose(ctx, who, &c)
	if err != nil {
		return view{}, nil, err
	}
	v := view{choice: c, Base: who.Base, Who: who, Links: map[string]string{}}
	sides := picked.sides(c.Alone)
	var comparison *compare.Comparison
	if len(sides) > 1 {
		got, err := s.compared(sides, c)
		if err != nil {
			v.Fault = err.Error()
		} else {
			comparison = &got.Comparison
			v.Notes = append(v.Notes, got.damage...)
			v.Verdict, v.Ratios = got.verdict, got.html
		}
	}
	v.sides(sides, comparison)
	v.facts(sides, comparison)
	v.switches()
	names, reduced, notes := s.reduced(ctx, sides)
	v.Notes = slices.Concat(v.Notes, picked.notes, notes)
	if err := v.plots(&picked, sides, names, reduced); err != nil {
		return v, nil, err
	}
	return v, &picked, nil
}

// sides are what the page says of each side.
func (v *view) sides(sides []side, c *compare.Comparison) {
	for i, d := range sides {
		x := shown{side: d, First: i == 0, Started: d.Entries[0].Started}
		if c != nil {
			x.Void, x.Basis = c.Sides[i].Void, c.Sides[i].Basis
		}
		x.Remove = v.with(v.choice, func(c *choice) {
			c.IDs = slices.DeleteFunc(c.IDs, func(id string) bool {
				return slices.ContainsFunc(d.Entries, func(e store.Entry) bool { return e.ID == id })
			})
		})
		x.Base = v.with(v.choice, func(c *choice) {
			first := d.Entries[0].ID
			c.IDs = slices.Insert(slices.DeleteFunc(c.IDs, func(id string) bool { return id == first }), 0, first)
		})
		v.Sides, v.Heads = append(v.Sides, x), append(v.Heads, d.Name)
	}
}

func (v *view) with(c choice, change func(*choice)) string { return c.with(v.Base, change) }

func (v *view) facts(sides []side, c *compare.Comparison) {
	if len(sides) == 0 {
		return
	}
	for _, f := range facts(sides, c) {
		if f.Differ || v.Same {
			v.Facts = append(v.Facts, f)
		} else {
			v.Hidden++
		}
	}
	for _, k := range compare.Covariates() {
		if k.Setup {
			v.ByKeys = append(v.ByKeys, option{k.Key, k.Label})
		}
	}
}

// switches are the addresses of what can be switched.
func (v *view) switches() {
	v.Links["same"] = v.with(v.choice, func(c *choice) { c.Same = !c.Same })
	v.Links["alone"] = v.with(v.choice, func(c *choice) { c.Alone = !c.Alone })
	v.Links["all"] = v.with(v.choice, func(c *choice) { c.All = !c.All })
	v.JSON = v.Base + "/compare.json?" + v.query()
	v.MD = v.Base + "/compare.md?" + v.query()
}

// Kept are the hidden fields of a form that keep the choice, but for those that the form has itself.
func (v view) Kept(but ...string) []option {
	values := v.values()
	var out []option
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if slices.Contains(but, key) {
			continue
		}
		for _, value := range values[key] {
			out = append(out, option{key, value})
		}
	}
	return out
}

// MetricText is what the form of figures holds.
func (v view) MetricText() string { return strings.Join(v.Metrics, ", ") }

func (v *view) plots(picked *chosen, sides []side, names []string, reduced []reducedRun) error {
	front, ok, err := picked.front(sides)
	if err != nil {
		return err
	}
	if ok {
		v.Front = &front
	}
	if v.CDFs, err = distributions(names, reduced, v.SLOs); err != nil {
		return err
	}
	v.Courses, err = courses(names, reduced)
	return err
}

// made is a comparison with what is shown of it.
type made struct {
	compare.Comparison
	verdict []string
	html    template.HTML
	damage  []string
}

// compared compares sides; what was compared a moment ago, of files that are as they were, is
// not compared again.
func (s *screen) compared(sides []side, c choice) (made, error) {
	return s.cache.get(cacheKey(sides, c), func() (made, error) { return compareSides(sides, c) })
}

func compareSides(sides []side, c choice) (made, error) {
	o := compare.Options{Metrics: c.Metrics, All: c.All, By: c.By}
	for _, slo := range c.SLOs {
		o.Also = append(o.Also, slo.Metric)
	}
	opened, damage, err := source.GroupedSides(groups(sides), bench.PercentilesOf(append(slices.Clone(o.Metrics), o.Also...)...))
	if err != nil {
		return made{}, err
	}
	got, err := compare.New(opened, o)
	if err != nil {
		return made{}, err
	}
	d := report.Compare(got, nil)
	d.Body.Without("ran") // What differs has it
	return made{Comparison: got, html: template.HTML(doc.Parts(d).Body), damage: byNames(damage, sides)}, nil
}

// byNames are sentences on directories with the names that the page has for them.
func byNames(texts []string, sides []side) []string {
	var out []string
	for _, text := range texts {
		for _, s := range sides {
			for _, e := range s.Entries {
				text = strings.ReplaceAll(text, e.Dir()+":", e.Called()+":")
			}
		}
		out = append(out, strings.TrimSuffix(text, ".")+".")
	}
	return out
}

// comparison is the one of a request, for what is no page.
func (s *screen) comparison(r *http.Request) (made, error) {
	c, err := parse(r.URL.Query())
	if err != nil {
		return made{}, err
	}
	picked, err := s.choose(r.Context(), guard.From(r.Context()), &c)
	if err != nil {
		return made{}, err
	}
	sides := picked.sides(c.Alone)
	if len(sides) < 2 {
		return made{}, page.Bad("a comparison needs two sides at least: name runs as run=ID&run=ID. " + strings.Join(picked.notes, " "))
	}
	got, err := s.compared(sides, c)
	if err != nil {
		return made{}, page.Bad(err.Error())
	}
	return got, nil
}

func (s *screen) json(w http.ResponseWriter, r *http.Request) error {
	got, err := s.comparison(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(got.Comparison) // who left needs none
	return nil
}

// markdown is the comment on a pull request that perflab compare --format md writes.
func (s *screen) markdown(w http.ResponseWriter, r *http.Request) error {
	got, err := s.comparison(r)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := doc.Markdown(&b, report.Compare(got.Comparison, nil)); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	_, _ = w.Write([]byte(b.String())) // who left needs none
	return nil
}

// share makes a link that shows what is compared to everybody who has it.
func (s *screen) share(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return page.Bad("the form cannot be read: " + err.Error())
	}
	c, err := parse(r.PostForm)
	if err != nil {
		return err
	}
	hours := 0
	if _, err := fmt.Sscan(r.PostForm.Get("hours"), &hours); err != nil || hours <= 0 {
		return page.Bad("say for how many hours the link shall hold")
	}
	who := guard.From(r.Context())
	picked, err := s.choose(r.Context(), who, &c)
	if err != nil {
		return err
	}
	ids := slices.Clone(c.IDs)
	for _, e := range picked.entries {
		for _, p := range picked.parts[e.ID] {
			ids = append(ids, p.ID)
		}
	}
	link, _, err := s.guard.Share(ids, time.Duration(hours)*time.Hour)
	if err != nil {
		return page.Bad(err.Error())
	}
	if err := s.guard.Audit(r.Context(), trail.Event{Action: "share", Object: strings.Join(c.IDs, ",")}); err != nil {
		return err
	}
	q := c.query() + "&shared=" + url.QueryEscape(link+"compare?"+c.query())
	http.Redirect(w, r, "/compare?"+q, http.StatusSeeOther)
	return nil
}
