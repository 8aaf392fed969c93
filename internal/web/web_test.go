package web_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
	"perflab/internal/web/launch"
)

func get(t *testing.T, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestOwn: what is open is open, what is not there is said so in a page, and without a token
// there is nothing else to be had.
func TestOwn(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	lab := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}, Version: "9.9", Guard: guard.Options{Token: token}})
	status, body := get(t, lab.URL+"/healthz", "")
	var health struct{ Version string }
	if err := json.Unmarshal([]byte(body), &health); err != nil || status != http.StatusOK || health.Version != "9.9" {
		t.Errorf("/healthz: %d %s (%v)", status, body, err)
	}
	if status, body := get(t, lab.URL+"/nowhere", token); status != http.StatusNotFound || !strings.Contains(body, "there is no page /nowhere") {
		t.Errorf("/nowhere: %d %s", status, body)
	}
	if status, body := get(t, lab.URL+"/nowhere", ""); status != http.StatusUnauthorized || strings.Contains(body, "nowhere") {
		t.Errorf("/nowhere without a token: %d %s", status, body)
	}
}

// TestLaunchesEnd: what a test launched does not go on after it, where its directories are removed.
func TestLaunchesEnd(t *testing.T) {
	t.Parallel()
	var lab *webtest.Lab
	t.Run("a test", func(t *testing.T) {
		lab = webtest.Open(t, web.Options{Roots: []string{t.TempDir()}})
		for range 3 {
			launchBad(t, lab)
		}
	})
	for _, l := range lab.Queue().List() {
		if l.State == launch.Queued || l.State == launch.Running {
			t.Errorf("launch %s goes on: %s", l.ID, l.State)
		}
	}
}
