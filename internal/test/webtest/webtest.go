// Package webtest serves a laboratory to tests, as perflab serve does: the same routes behind the
// same guard.
//
//	lab := webtest.Open(t, web.Options{Roots: []string{dir}})
//	resp, err := http.Get(lab.URL + "/runs")
//	b := browser.Start(t)
//	b.Visit(t, "runs", lab.URL+"/runs")
package webtest

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"perflab/internal/web"
	"perflab/internal/web/launch"
)

// Lab is a laboratory that is served.
type Lab struct {
	*web.Server
	URL string
}

// Open serves a laboratory until the test ends. Without other options of its guard everybody may
// do everything. Its store follows the directories when a test calls Store().Sync. What was launched
// in it ends with it.
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
		endLaunches(t, s.Queue())
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Lab{Server: s, URL: server.URL}
}

// endLaunches ends what a test launched: it would go on without the server, and write into
// directories that are removed after the test.
func endLaunches(t testing.TB, q *launch.Queue) {
	t.Helper()
	if q == nil || q.ReadOnly() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for version := q.Version(); askToEnd(q) > 0; {
		var err error
		if version, err = q.Wait(ctx, version); err != nil {
			t.Errorf("what the test launched goes on: %v", err)
			return
		}
	}
}

// askToEnd asks what runs or waits to end, and returns how many that were.
func askToEnd(q *launch.Queue) (n int) {
	const who = "webtest"
	for _, l := range q.List() {
		switch {
		case l.State == launch.Queued:
			n++
			_, _ = q.Cancel(l.ID, who) // it may have begun
		case l.State == launch.Running:
			n++
			if len(l.Last().Stops) < 2 { // the second is for at once
				_, _ = q.Stop(l.ID, who) // it may have ended
			}
		}
	}
	return n
}
