// Package webtest serves a laboratory to tests, as perflab serve does: the same routes behind the
// same guard.
//
//	lab := webtest.Open(t, web.Options{Roots: []string{dir}})
//	resp, err := http.Get(lab.URL + "/runs")
//	b := browser.Start(t)
//	b.Visit(t, "runs", lab.URL+"/runs")
package webtest

import (
	"net/http/httptest"
	"testing"

	"perflab/internal/web"
)

// Lab is a laboratory that is served.
type Lab struct {
	*web.Server
	URL string
}

// Open serves a laboratory until the test ends. Without other options of its guard everybody may
// do everything. Its store follows the directories when a test calls Store().Sync.
func Open(t testing.TB, o web.Options) *Lab {
	t.Helper()
	if o.Guard.Listen == "" {
		o.Guard.Listen = "127.0.0.1:0"
	}
	if o.State == "" {
		o.State = t.TempDir()
	}
	s, err := web.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(s.Handler())
	server.Config = s.Guard().Server(s.Handler())
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections() // streams would go on
		server.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Lab{Server: s, URL: server.URL}
}
