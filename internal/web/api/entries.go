package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/store/scan"
	"perflab/internal/web/guard"
	"perflab/internal/web/page"
)

// Parameters of lists.
var (
	filterParameter  = page.Parameter{Name: "q", Doc: "A filter, as perflab list takes it: engine=vllm, p99_ttft_ms<=200, age<7d.", Example: "kind=run p99_ttft_ms<=200"}
	sortParameter    = page.Parameter{Name: "sort", Doc: "Names of facts and figures joined by commas, - before one for the most first. Pinned ones and then the newest come first otherwise.", Example: "-output_throughput"}
	columnsParameter = page.Parameter{Name: "columns", Doc: "Metrics that come with the entries, joined by commas; * is all.", Example: "output_throughput,p99_ttft_ms"}
	limitParameter   = page.Parameter{Name: "limit", Doc: "Entries of a page: 50 without it, 1000 at most.", Example: "100"}
	offsetParameter  = page.Parameter{Name: "offset", Doc: "Entries that come before the page.", Example: "0"}
	idParameter      = page.Parameter{Name: "id", Doc: "The ID of an entry, the beginning of it, or the name that somebody gave it."}
)

func (a *API) entryRoutes() []page.Route {
	return []page.Route{{
		Pattern: "GET /api/v1/entries", Role: guard.Read, Serve: served(a.list),
		Doc: page.Doc{Summary: "A page of runs, series, studies, imports and sites; all of them, a line each, where application/x-ndjson is accepted or format=ndjson.",
			Query:  []page.Parameter{filterParameter, sortParameter, columnsParameter, limitParameter, offsetParameter, {Name: "format", Doc: "json or ndjson.", Example: "json"}},
			Answer: store.Page{}},
	}, {
		Pattern: "GET /api/v1/entries/{id}", Role: guard.Read, Serve: served(a.entry),
		Doc: page.Doc{Summary: "An entry with all of its figures.", Query: []page.Parameter{idParameter}, Answer: store.Entry{}},
	}, {
		Pattern: "GET /api/v1/entries/{id}/parts", Role: guard.Read, Serve: served(a.parts),
		Doc: page.Doc{Summary: "The runs of a study, a series or an import.", Query: []page.Parameter{idParameter, columnsParameter}, Answer: Entries{}},
	}, {
		Pattern: "DELETE /api/v1/entries/{id}", Role: guard.Administer, Serve: served(a.remove),
		Doc: page.Doc{Summary: "Moves the directory of an entry to the trash of its root.", Query: []page.Parameter{idParameter}, Answer: store.Removed{},
			Errors: map[int]string{409: "It goes on, or its root cannot be written to."}},
	}, {
		Pattern: "GET /api/v1/trash", Role: guard.Read, Serve: served(a.trash),
		Doc: page.Doc{Summary: "What is in the trash, the newest first.", Answer: Trash{}},
	}, {
		Pattern: "POST /api/v1/trash/restore", Role: guard.Administer, Serve: served(a.restore),
		Doc: page.Doc{Summary: "Moves a directory from the trash back to where it lay.", Body: store.Removed{}, Answer: store.Removed{},
			Errors: map[int]string{409: "Something else lies there."}},
	}, {
		Pattern: "GET /api/v1/groups", Role: guard.Read, Serve: served(a.groups),
		Doc: page.Doc{Summary: "How many entries there are, by the values of a fact.",
			Query:  []page.Parameter{{Name: "by", Doc: "A fact: engine, model, config, verdict.", Example: "engine"}, filterParameter, limitParameter, offsetParameter},
			Answer: Groups{}},
	}, {
		Pattern: "GET /api/v1/fields", Role: guard.Read, Serve: served(a.fields),
		Doc: page.Doc{Summary: "The facts and metrics that filters, sort and columns know.", Answer: Fields{}},
	}}
}

// Entries is a list of all that there is.
type Entries struct {
	Entries []store.Entry `json:"entries"`
}

// Trash is what was removed.
type Trash struct {
	Removed []store.Removed `json:"removed"`
}

// Groups are counts of entries.
type Groups struct {
	By     string        `json:"by"`
	Groups []store.Group `json:"groups"`
}

// Field is something that filters know.
type Field struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"` // fact or metric
	Type   string   `json:"type"`
	Unit   string   `json:"unit,omitempty"`
	Label  string   `json:"label,omitempty"` // in tables
	Doc    string   `json:"doc"`
	Values []string `json:"values,omitempty"` // that there can be
	Better string   `json:"better,omitempty"` // of a metric: higher or lower
}

// Fields are all of them.
type Fields struct {
	Fields []Field `json:"fields"`
}

// query reads what a list is asked for.
func query(r *http.Request) (q store.Query, err error) {
	v := r.URL.Query()
	q = store.Query{Filter: v.Get("q"), Order: v.Get("sort")}
	if q.Limit, err = number(r, "limit", 0, 1, store.MostPage); err != nil {
		return q, err
	}
	if q.Offset, err = number(r, "offset", 0, 0, 1<<30); err != nil {
		return q, err
	}
	q.Figures, err = metrics(v.Get("columns"))
	return q, err
}

// metrics reads names of metrics joined by commas.
func metrics(text string) ([]string, error) {
	var out []string
	for name := range strings.SplitSeq(text, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "":
		case name == "*", isOwn(name):
			out = append(out, name)
		default:
			m, err := result.Lookup(name)
			if err != nil {
				return nil, page.Bad(err.Error())
			}
			out = append(out, m.Name)
		}
	}
	if len(out) > 200 {
		return nil, page.Bad("more than 200 columns were asked for: * is all of them")
	}
	return out, nil
}

func isOwn(name string) bool {
	return slices.Contains(scan.OwnFigures(), name)
}

// wantsLines reports whether a client wants a line for each entry.
func wantsLines(r *http.Request) (bool, error) {
	switch f := r.URL.Query().Get("format"); f {
	case "":
		return strings.Contains(r.Header.Get("Accept"), "application/x-ndjson"), nil
	case "json":
		return false, nil
	case "ndjson":
		return true, nil
	default:
		return false, page.Bad(fmt.Sprintf("format is json or ndjson, not %q", f))
	}
}

func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	lines, err := wantsLines(r)
	if err != nil {
		return err
	}
	if lines {
		return a.lines(w, r, q)
	}
	now, err := a.o.Store.Now(r.Context())
	if err != nil {
		return err
	}
	p, err := now.List(r.Context(), q)
	if err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, p)
	return nil
}

// lines writes all entries of a list, one in a line. What changes in the meantime may come twice or not at
// all, as it would to who asks page by page.
func (a *API) lines(w http.ResponseWriter, r *http.Request, q store.Query) error {
	most := q.Limit // 0: all
	out := json.NewEncoder(w)
	for sent := 0; most == 0 || sent < most; {
		q.Limit = store.MostPage
		if most > 0 {
			q.Limit = min(q.Limit, most-sent)
		}
		p, err := a.o.Store.List(r.Context(), q)
		if err != nil {
			if sent == 0 {
				return err
			}
			panic(http.ErrAbortHandler) // the client sees that the list was cut off
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		for _, e := range p.Entries {
			if err := out.Encode(e); err != nil {
				return nil // the client is gone
			}
		}
		sent += len(p.Entries)
		q.Offset += len(p.Entries)
		if len(p.Entries) == 0 || q.Offset >= p.Total {
			break
		}
	}
	return nil
}

func (a *API) entry(w http.ResponseWriter, r *http.Request) error {
	e, err := a.o.Store.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, e)
	return nil
}

func (a *API) parts(w http.ResponseWriter, r *http.Request) error {
	names, err := metrics(r.URL.Query().Get("columns"))
	if err != nil {
		return err
	}
	e, err := a.o.Store.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	all, err := a.o.Store.Parts(r.Context(), e.ID, names...)
	if err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, Entries{all})
	return nil
}

func (a *API) remove(w http.ResponseWriter, r *http.Request) error {
	if err := a.writable(); err != nil {
		return err
	}
	e, err := a.o.Store.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	out, err := a.o.Store.Remove(r.Context(), who(r), e.ID)
	a.audit(r, "delete", e.ID, err)
	if err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, out)
	return nil
}

func (a *API) trash(w http.ResponseWriter, r *http.Request) error {
	all, err := a.o.Store.Trash(r.Context())
	if err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, Trash{append([]store.Removed{}, all...)})
	return nil
}

func (a *API) restore(w http.ResponseWriter, r *http.Request) error {
	if err := a.writable(); err != nil {
		return err
	}
	var what store.Removed
	if err := page.ReadJSON(r, &what); err != nil {
		return err
	}
	err := a.o.Store.Restore(r.Context(), who(r), what)
	a.audit(r, "restore", what.Entry, err)
	if err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, what)
	return nil
}

func (a *API) groups(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	by := r.URL.Query().Get("by")
	if by == "" {
		return page.Bad("by is missing: give a fact such as engine, model or verdict")
	}
	now, err := a.o.Store.Now(r.Context())
	if err != nil {
		return err
	}
	all, err := now.Groups(r.Context(), q, by)
	if err != nil {
		return err
	}
	page.WriteJSON(w, http.StatusOK, Groups{by, all})
	return nil
}

func (a *API) fields(w http.ResponseWriter, _ *http.Request) error {
	out := Fields{}
	for _, f := range filter.Fields() {
		out.Fields = append(out.Fields, Field{Name: f.Name, Kind: "fact", Type: string(f.Type), Doc: f.Doc, Values: f.Values})
	}
	for _, m := range result.Metrics() {
		f := Field{Name: m.Name, Kind: "metric", Type: "number", Unit: m.Unit, Label: m.Label, Doc: m.Doc}
		switch {
		case m.Better > 0:
			f.Better = "higher"
		case m.Better < 0:
			f.Better = "lower"
		}
		out.Fields = append(out.Fields, f)
	}
	page.WriteJSON(w, http.StatusOK, out)
	return nil
}
