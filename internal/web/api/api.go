// Package api is what scripts use of a laboratory's server: JSON under /api/v1, with what perflab push and
// pull speak, and the document that describes all of it.
//
//	a, err := api.New(api.Options{Store: store, Queue: queue, Guard: guard, Roots: roots})
//	routes := a.Routes()
//
// Invariants: what a route takes and gives are Go types, of which the document is made, so that neither
// can say something else; what has no value is absent or null, never zero; what a simulator made says so;
// an error is {"status", "error", "hint"}; what changes something is in the audit log.
//
// Deliberately absent: pages, and the checks of the study editor, which
// belong to their screen.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"perflab/internal/store"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/place"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
	"perflab/internal/web/recall"
	"perflab/internal/web/upload"
)

// Options are what the API works with.
type Options struct {
	Store    *recall.Index
	Queue    *launch.Queue // nil: nothing is launched
	Guard    *guard.Guard
	Roots    []string    // directories of results; what is pushed goes below the first
	Version  string      // of perflab
	ReadOnly bool        // nothing is pushed, marked or removed
	Disk     *place.Disk // that uploads leave room on
	Log      *slog.Logger
}

// API serves the routes.
type API struct {
	o       Options
	uploads *upload.Uploads // nil: read only
	heavy   chan struct{}   // a place for each reading of many calls that goes on
	// arriving is held from the question whether what was pushed is there until the index has it.
	arriving sync.Mutex
}

// atOnce is how many comparisons read calls at the same time: each holds some runs in memory.
const atOnce = 2

// New makes an API, and clears away what was left of uploads that nobody went on with.
func New(o Options) (*API, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &API{o: o, heavy: make(chan struct{}, atOnce)}
	if !o.ReadOnly {
		var err error
		if a.uploads, err = upload.Open(upload.Options{Root: o.Roots[0], Folder: filepath.Join(store.Folder, "uploads"), Disk: o.Disk}); err != nil {
			return nil, err
		}
	}
	a.meters()
	return a, nil
}

// meters adds the figures of store, queue and uploads to those of the server.
func (a *API) meters() {
	a.o.Guard.Meter("perflab_entries", "Runs, series, studies, imports and sites in the index.", a.entries)
	a.o.Guard.Meter("perflab_index_version", "Grows with every change of the index.", func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		v, err := a.o.Store.Version(ctx)
		return known(float64(v), err)
	})
	if a.o.Queue != nil {
		a.o.Guard.Meter("perflab_launches_running", "Launches that run.", func() float64 { return a.launches(launch.Running) })
		a.o.Guard.Meter("perflab_launches_queued", "Launches that wait.", func() float64 { return a.launches(launch.Queued) })
	}
	if a.uploads != nil {
		a.o.Guard.Meter("perflab_uploads", "Uploads that have begun and not ended.", func() float64 { return float64(a.uploads.Open()) })
		a.o.Guard.Meter("perflab_upload_bytes", "Bytes that uploads have brought since the server started.", func() float64 { return float64(a.uploads.Bytes()) })
		a.o.Guard.Meter("perflab_uploads_done", "Uploads that became entries since the server started.", func() float64 { return float64(a.uploads.Done()) })
	}
}

func (a *API) entries() float64 {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p, err := a.o.Store.List(ctx, store.Query{Limit: 1})
	return known(float64(p.Total), err)
}

func (a *API) launches(state launch.State) float64 {
	n := 0
	for _, l := range a.o.Queue.List() {
		if l.State == state {
			n++
		}
	}
	return float64(n)
}

// Routes are the addresses of the API.
func (a *API) Routes() []page.Route {
	routes := []page.Route{{
		Pattern: "GET /api/v1/version", Role: guard.Read, Serve: a.version,
		Doc: page.Doc{Summary: "Which perflab this is, and what the one who asks may do.", Answer: Version{}},
	}, {
		Pattern: "GET /metrics", Role: guard.Read, Serve: a.metrics,
		Doc: page.Doc{Summary: "Figures of the server itself, for Prometheus.", Answers: "text/plain"},
	}}
	routes = append(routes, a.entryRoutes()...)
	routes = append(routes, a.searchRoute())
	routes = append(routes, a.markRoutes()...)
	routes = append(routes, measuring{a}.routes()...)
	routes = append(routes, a.fileRoutes()...)
	routes = append(routes, launching{a}.routes()...)
	routes = append(routes, uploading{a}.routes()...)
	routes = append(routes, a.guardRoutes()...)
	return append(routes, page.Route{
		Pattern: "GET /api/", Role: guard.Read,
		Serve: func(_ http.ResponseWriter, r *http.Request) error {
			return &page.Problem{Status: http.StatusNotFound, Text: "the API has no " + r.Method + " " + r.URL.Path, Hint: "GET /api/v1/openapi.json lists what there is."}
		},
	})
}

// Version is what a client learns first.
type Version struct {
	Version  string `json:"version"` // of perflab
	API      int    `json:"api"`     // of this API
	Name     string `json:"name"`    // of the token
	Role     string `json:"role"`    // that it has: read, launch, administer
	ReadOnly bool   `json:"read_only"`
}

func (a *API) version(w http.ResponseWriter, r *http.Request) error {
	who := guard.From(r.Context())
	page.WriteJSON(w, http.StatusOK, Version{a.o.Version, 1, who.Name, who.Role.String(), a.o.ReadOnly})
	return nil
}

func (a *API) metrics(w http.ResponseWriter, r *http.Request) error {
	a.o.Guard.Metrics().ServeHTTP(w, r)
	return nil
}

// audit writes down what somebody did; where that cannot be, the server's log has it.
func (a *API) audit(r *http.Request, action, object string, err error) {
	e := trail.Event{Action: action, Object: object}
	if err != nil {
		e.Outcome, e.Reason = trail.Failed, page.ProblemOf(problem(err)).Text
	}
	if err := a.o.Guard.Audit(r.Context(), e); err != nil {
		a.o.Log.Error("the audit log cannot be written", "action", action, "error", err)
	}
}

// writable refuses what a server that only reads does not do.
func (a *API) writable() error {
	if a.o.ReadOnly {
		return &page.Problem{Status: http.StatusForbidden, Text: "this server only shows what there is, and changes nothing", Hint: "Start it without --read-only."}
	}
	return nil
}

// number reads a whole number of the query.
func number(r *http.Request, name string, usual, least, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, page.Bad(name + " is a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most) + ", not " + strconv.Quote(text))
	}
	return n, nil
}

// who asks, as marks and launches write it down.
func who(r *http.Request) string { return guard.From(r.Context()).Name }
