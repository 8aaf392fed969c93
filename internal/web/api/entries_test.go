package api_test

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"perflab/internal/store"
	"perflab/internal/web"
	"perflab/internal/web/api"
)

func TestReading(t *testing.T) {
	l := open(t, web.Options{Version: "9.9"})
	var v api.Version
	l.read(t, "/api/v1/version", &v)
	if v.Version != "9.9" || v.Role != "read" || v.Name != "read" {
		t.Errorf("version: %+v", v)
	}
	var p store.Page
	l.read(t, "/api/v1/entries?q=kind%3Drun+parent%3Dnone&sort=started&columns=output_throughput&limit=1", &p)
	if p.Total != 2 || len(p.Entries) != 1 || p.Entries[0].Name != "one" || len(p.Entries[0].Figures) != 1 {
		t.Errorf("list: %+v", p)
	}
	var e store.Entry
	l.read(t, "/api/v1/entries/two", &e)
	if !e.Simulated || len(e.Figures) < 5 {
		t.Errorf("entry: %+v", e)
	}
	l.read(t, "/api/v1/entries/"+e.ID[:8], &e)
	var parts api.Entries
	l.read(t, "/api/v1/entries/study/parts?columns=*", &parts)
	if len(parts.Entries) != 2 || len(parts.Entries[0].Figures) == 0 {
		t.Errorf("parts: %+v", parts)
	}
	var groups api.Groups
	l.read(t, "/api/v1/groups?by=kind", &groups)
	if len(groups.Groups) != 2 || groups.Groups[0].Count != 4 {
		t.Errorf("groups: %+v", groups)
	}
	var fields api.Fields
	l.read(t, "/api/v1/fields", &fields)
	if !slices.ContainsFunc(fields.Fields, func(f api.Field) bool { return f.Name == "output_throughput" && f.Better == "higher" }) {
		t.Error("fields have no output_throughput")
	}
}

func TestWrong(t *testing.T) {
	l := open(t, web.Options{})
	for path, want := range map[string]string{
		"/api/v1/entries?q=foo%3C3":                          `unknown metric`,
		"/api/v1/entries?sort=nothing":                       "nothing",
		"/api/v1/entries?limit=0":                            "limit is a whole number from 1 to 1000",
		"/api/v1/entries?offset=-1":                          "offset is",
		"/api/v1/entries?columns=x":                          "unknown metric",
		"/api/v1/entries?format=xml":                         "format is json or ndjson",
		"/api/v1/groups":                                     "by is missing",
		"/api/v1/groups?by=started":                          "started",
		"/api/v1/figures":                                    "metrics is missing",
		"/api/v1/figures?metrics=x":                          "unknown metric",
		"/api/v1/figures?metrics=p99_ttft_ms&format=x":       "format is json or csv",
		"/api/v1/compare?ids=one":                            "2 to 20",
		"/api/v1/compare?ids=one,two&metrics=none_such":      "unknown metric",
		"/api/v1/history?metrics=p99_ttft_ms":                "give either",
		"/api/v1/history?metrics=p99_ttft_ms&config=x":       "hexadecimal",
		"/api/v1/history?metrics=p99_ttft_ms&id=one&by=day":  "builds or launches",
		"/api/v1/history?metrics=p99_ttft_ms&id=one&least=x": "least is",
		"/api/v1/entries/one/files?digest=maybe":             "digest is true or false",
	} {
		if a := l.ask(t, "read", http.MethodGet, path, nil); a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %q", path, a.status, a.body, want)
		}
	}
	for _, path := range []string{"/api/v1/entries/none", "/api/v1/entries/none/marks", "/api/v1/entries/none/reduction", "/api/v1/entries/study/reduction",
		"/api/v1/entries/none/standing", "/api/v1/compare?ids=one,none", "/api/v1/launches/none", "/api/v1/launches/none/log"} {
		if a := l.ask(t, "read", http.MethodGet, path, nil); a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := l.ask(t, "read", http.MethodGet, "/api/v1/nothing", nil, "X", "y"); a.status != http.StatusNotFound || !strings.Contains(a.body, "openapi.json") {
		t.Errorf("another version: %d %s", a.status, a.body)
	}
}

// TestLines: a list of all has a line for each, over any number of pages.
func TestLines(t *testing.T) {
	l := open(t, web.Options{})
	a := l.ask(t, "read", http.MethodGet, "/api/v1/entries", nil, "Accept", "application/x-ndjson")
	if got := a.header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("it is %s", got)
	}
	var ids []string
	for s := bufio.NewScanner(strings.NewReader(a.body)); s.Scan(); {
		var e store.Entry
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 5 {
		t.Errorf("%d entries", len(ids))
	}
	a = l.ask(t, "read", http.MethodGet, "/api/v1/entries?format=ndjson&limit=2&offset=1", nil)
	if n := strings.Count(a.body, "\n"); n != 2 {
		t.Errorf("%d lines of 2", n)
	}
	if a := l.ask(t, "read", http.MethodGet, "/api/v1/entries?format=ndjson&q=foo%3C3", nil); a.status != http.StatusBadRequest {
		t.Errorf("a wrong filter: %d", a.status)
	}
}

func TestFigures(t *testing.T) {
	l := open(t, web.Options{})
	var f api.Figures
	l.read(t, "/api/v1/figures?metrics=p99_ttft_ms,output_throughput&q=kind%3Drun+parent%3Dnone&sort=started", &f)
	if len(f.Rows) != 4 || f.Entries != 2 || f.Rows[0].Metric != "output_throughput" || f.Rows[0].Name != "one" || f.Rows[0].Simulated || !f.Rows[2].Simulated {
		t.Errorf("%+v", f)
	}
	if err := l.Store().Mark(t.Context(), "x", l.id(t, "one"), nameOf("=HYPERLINK(1)")); err != nil {
		t.Fatal(err)
	}
	a := l.ask(t, "read", http.MethodGet, "/api/v1/figures?metrics=output_throughput&q=kind%3Drun+parent%3Dnone&sort=started&format=csv", nil)
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != 3 || rows[1][1] != "'=HYPERLINK(1)" {
		t.Errorf("%v: %v", rows, err)
	}
}

func TestPlots(t *testing.T) {
	l := open(t, web.Options{})
	var x any
	for _, path := range []string{"/api/v1/entries/one/reduction", "/api/v1/entries/one/standing", "/api/v1/compare?ids=one,two", "/api/v1/compare?ids=one,two&metrics=p99_ttft_ms",
		"/api/v1/history?metrics=p99_ttft_ms,output_throughput&id=one", "/api/v1/history?metrics=p99_ttft_ms&id=one&by=launches&q=simulated%3Dfalse&least=0.1"} {
		l.read(t, path, &x)
	}
	var h api.Histories
	l.read(t, "/api/v1/history?metrics=p99_ttft_ms&id=one", &h)
	if h.Runs != 2 || len(h.Histories) != 2 || h.Histories[0].Source.Simulated || h.Histories[0].Points[0].Build != "a1" || h.Histories[0].Points[0].Value == nil {
		t.Errorf("what was measured and what was simulated have a history each: %+v", h)
	}
}

// TestSearch: words lead to screens and entries, and words that are no filter to screens alone.
func TestSearch(t *testing.T) {
	l := open(t, web.Options{})
	for q, want := range map[string][]string{
		"compare": {"Compare"},
		"one":     {"one"},
		"study":   {"study"},
		"p99<<":   nil,
	} {
		var found []api.Found
		l.read(t, "/api/v1/search?q="+url.QueryEscape(q), &found)
		var titles []string
		for _, f := range found {
			titles = append(titles, f.Title)
			if !strings.HasPrefix(f.Href, "/") || strings.HasPrefix(f.Href, "//") {
				t.Errorf("%s leads to %q", q, f.Href)
			}
		}
		for _, title := range want {
			if !slices.Contains(titles, title) {
				t.Errorf("%s finds %q, not %s", q, titles, title)
			}
		}
		if want == nil && len(found) > 0 {
			t.Errorf("%s finds %q", q, titles)
		}
	}
}
