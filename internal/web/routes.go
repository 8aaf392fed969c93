package web

import (
	"net/http"
	"slices"

	"perflab/internal/web/agents"
	"perflab/internal/web/asset"
	"perflab/internal/web/guard"
	"perflab/internal/web/history"
	"perflab/internal/web/intake"
	"perflab/internal/web/openapi"
	"perflab/internal/web/page"
	"perflab/internal/web/runs"
	"perflab/internal/web/start"
	"perflab/internal/web/studies"
	"perflab/internal/web/versus"
)

// routes are all addresses: those of the screens, of the API, and the server's own.
func (s *Server) routes() ([]page.Route, error) {
	all := slices.Concat(
		s.own(),
		s.hardware.Routes(),
		agents.New(agents.Options{Pages: s.pages, Fleet: s.fleet, Audit: s.guard.Audit, ReadOnly: s.o.ReadOnly}).Routes(),
		history.Routes(history.Options{Pages: s.pages, Store: s.index, Audit: s.guard.Audit, ReadOnly: s.o.ReadOnly}),
		versus.Routes(s.pages, s.store, s.guard),
		runs.Routes(runs.Options{Store: s.index, Pages: s.pages, Audit: s.guard.Audit, Launches: s.queue != nil, ReadOnly: s.o.ReadOnly}),
		studies.Routes(studies.Options{Pages: s.pages, Store: s.index, Queue: s.queue, Guard: s.guard}),
		intake.Routes(intake.Options{Pages: s.pages, Store: s.store, Roots: s.o.Roots, State: s.o.State, Disk: &s.disk, ReadOnly: s.o.ReadOnly, Audit: s.guard.Audit}),
		start.Routes(start.Options{Pages: s.pages, Store: s.store, Queue: s.queue, Audit: s.guard.Audit}),
		s.api.Routes(),
	)
	document, err := openapi.Route(all)
	return append(all, document), err
}

// own are the addresses that belong to no screen.
func (s *Server) own() []page.Route {
	assets := asset.Handler()
	return []page.Route{
		{Pattern: "GET " + asset.Root, Open: true, Shared: true, Serve: func(w http.ResponseWriter, r *http.Request) error {
			assets.ServeHTTP(w, r)
			return nil
		}},
		{Pattern: "GET /healthz", Open: true, Serve: func(w http.ResponseWriter, _ *http.Request) error {
			page.WriteJSON(w, http.StatusOK, map[string]string{"version": s.o.Version})
			return nil
		}},
		{Pattern: "GET /", Role: guard.Read, Serve: func(_ http.ResponseWriter, r *http.Request) error {
			return page.NotFound("there is no page " + r.URL.Path)
		}},
	}
}
