package web_test

import (
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"

	"perflab/internal/test/webtest"
	"perflab/internal/web"
)

var update = flag.Bool("update", false, "write the generated documents")

// TestOpenAPI: docs/openapi.json is what the server says of itself.
func TestOpenAPI(t *testing.T) {
	const file = "../../docs/openapi.json"
	lab := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}})
	status, got := get(t, lab.URL+"/api/v1/openapi.json", "")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, got)
	}
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the routes say: run make docs", file)
	}
}

// TestDescribed: every address of the API is described.
func TestDescribed(t *testing.T) {
	lab := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}})
	n := 0
	for _, r := range lab.Routes() {
		_, path, _ := strings.Cut(r.Pattern, " ")
		if !strings.HasPrefix(path, "/api/") || path == "/api/" {
			continue
		}
		if n++; r.Doc.Summary == "" {
			t.Errorf("%s has no page.Doc", r.Pattern)
		}
	}
	if n < 30 {
		t.Errorf("only %d routes are below /api", n)
	}
}
