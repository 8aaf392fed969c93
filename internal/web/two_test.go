package web_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perflab/internal/store"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
	"perflab/internal/web/launch"
)

// tag tags an entry by the page of a laboratory.
func tag(t *testing.T, lab *webtest.Lab, id, tag string) answer {
	t.Helper()
	r := request(t, http.MethodPost, lab.URL+"/api/v1/entries/"+id+"/marks", guard.Nobody, strings.NewReader(`{"marks":[{"do":"tag","value":"`+tag+`"}]}`))
	r.Header.Set("Content-Type", "application/json")
	return send(t, r)
}

// TestTwoServers: two servers on one directory both serve, each sees what was marked by the other, one
// runs the queue, and the other says so and takes it over when the first ends.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	storetest.Many(t, root, 5, 1)
	o := web.Options{Roots: []string{root}, State: filepath.Join(root, ".perflab", "server")}
	first, second := webtest.Open(t, o), webtest.Open(t, o)
	id := storetest.List(t, first.Store(), store.Query{Filter: "kind=run"}).Entries[0].ID
	for n, pair := range [][2]*webtest.Lab{{first, second}, {second, first}} {
		name := []string{"of-first", "of-second"}[n]
		heard := openStream(t, pair[1], "/runs/events")
		if a := tag(t, pair[0], id, name); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		storetest.Sync(t, pair[1].Store())
		if a := send(t, request(t, http.MethodGet, pair[1].URL+"/runs?q="+url.QueryEscape("tag="+name), guard.Nobody, nil)); a.status != http.StatusOK || !strings.Contains(a.body, name) || !strings.Contains(a.body, id) {
			t.Errorf("the other server does not show %s: %d", name, a.status)
		}
		heard.want(t, "reload")
	}
	if err := first.Queue().ReadOnly(); err != nil {
		t.Fatalf("the first server does not run the queue: %v", err)
	}
	why := second.Queue().ReadOnly()
	if why == nil {
		t.Fatal("both servers run the queue")
	}
	page := func(lab *webtest.Lab) string {
		return send(t, request(t, http.MethodGet, lab.URL+"/launch", guard.Nobody, nil)).body
	}
	if body := page(second); !strings.Contains(body, "another perflab") {
		t.Errorf("the page of the queue does not say %q", why)
	}
	if a := send(t, request(t, http.MethodPost, second.URL+"/launch/quickstart", guard.Nobody, nil)); a.status != http.StatusConflict || !strings.Contains(a.body, "another perflab") {
		t.Errorf("a launch at the second server: %d %.300s", a.status, a.body)
	}
	if a := send(t, request(t, http.MethodPost, first.URL+"/launch/quickstart", guard.Nobody, nil)); a.status != http.StatusSeeOther {
		t.Errorf("a launch at the first server: %d %.300s", a.status, a.body)
	}
	until(t, "the second server shows what the first has launched", func() bool { return len(second.Queue().List()) == 1 })
	first.Queue().Close()
	until(t, "the second server takes the queue over", func() bool { return second.Queue().ReadOnly() == nil })
	if body := page(second); strings.Contains(body, "another perflab") {
		t.Error("the page of the queue still says that another server runs it")
	}
	if a := send(t, request(t, http.MethodPost, second.URL+"/launch/quickstart", guard.Nobody, nil)); a.status != http.StatusSeeOther {
		t.Errorf("a launch at the second server: %d %.300s", a.status, a.body)
	}
	until(t, "all launches end", func() bool {
		return !slices.ContainsFunc(second.Queue().List(), func(l launch.Launch) bool { return l.State != "ended" })
	})
}

// TestPostgresGoneAndBack: while the database of the index is gone, pages say so in a sentence, and
// when it is back they work again, and so do streams that were open.
func TestPostgresGoneAndBack(t *testing.T) {
	t.Parallel()
	server := storetest.StartPostgres(t)
	root := t.TempDir()
	storetest.Many(t, root, 3, 1)
	lab := webtest.Open(t, web.Options{Roots: []string{root}, DSN: server.Database(t)})
	run := storetest.List(t, lab.Store(), store.Query{Filter: "kind=run parent=none"}).Entries[0].ID
	heard := openStream(t, lab, "/runs/events")
	pages := []string{"/runs", "/studies", "/compare", "/run/" + run, "/api/v1/entries", "/runs/export?format=csv"}
	get := func(path string) answer { return send(t, request(t, http.MethodGet, lab.URL+path, guard.Nobody, nil)) }
	for _, path := range pages {
		if a := get(path); a.status != http.StatusOK {
			t.Errorf("%s with the database: %d %.300s", path, a.status, a.body)
		}
	}
	server.Stop(t)
	for _, path := range pages {
		if path == "/compare" { // asks nothing as long as nothing is chosen
			continue
		}
		a := get(path)
		if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "the index postgres://") || !strings.Contains(a.body, "cannot be asked") || !strings.Contains(a.body, "as soon as its database does") || strings.Contains(a.body, "secret-word") {
			t.Errorf("%s without the database: %d %.1500s", path, a.status, a.body)
		}
	}
	if a := get("/healthz"); a.status != http.StatusOK {
		t.Errorf("/healthz: %d", a.status)
	}
	server.Start(t)
	for _, path := range pages {
		until(t, path+" works again", func() bool { return get(path).status == http.StatusOK })
	}
	storetest.Run{N: 77}.Write(t, root, "after")
	until(t, "directories are followed again", func() bool {
		_, err := lab.Store().Sync(t.Context())
		return err == nil
	})
	heard.want(t, "reload")
	if a := get("/runs?q=after"); !strings.Contains(a.body, "after") {
		t.Error("what came after is not listed")
	}
}
