package web

import (
	"net/http"
	"slices"

	"perflab/internal/web/asset"
	"perflab/internal/web/guard"
	"perflab/internal/web/history"
	"perflab/internal/web/page"
	"perflab/internal/web/versus"
)

// routes are all addresses: those of the screens, of the API, and the server's own.
func (s *Server) routes() []page.Route {
	return slices.Concat(
		s.own(),
		s.hardware.Routes(),
		history.Routes(history.Options{Pages: s.pages, Store: s.store, Audit: s.guard.Audit, ReadOnly: s.o.ReadOnly}),
		versus.Routes(s.pages, s.store, s.guard),
	)
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
