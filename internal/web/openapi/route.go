package openapi

import (
	"net/http"

	"perflab/internal/web/guard"
	"perflab/internal/web/page"
)

// Route serves the document of routes and of itself. Without it the routes would not say of themselves
// where they are described.
func Route(routes []page.Route) (page.Route, error) {
	r := page.Route{Pattern: "GET /api/v1/openapi.json", Role: guard.Read,
		Doc: page.Doc{Summary: "This document.", Answer: map[string]any{}}}
	b, err := Document(append(routes[:len(routes):len(routes)], r))
	r.Serve = func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(b) // a client that left needs none
		return nil
	}
	return r, err
}
