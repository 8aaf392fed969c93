package guard

import (
	"html/template"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAllowInline(t *testing.T) {
	h := http.Header{}
	AllowInline(h, Inline{Styles: []string{"b{}", "a{}", "a{}"}, Scripts: []string{"alert('Hello, world.');"}})
	policy := h.Get("Content-Security-Policy")
	// The hash is the one of the example in the standard.
	for _, want := range []string{"script-src 'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=';", "default-src 'none'", "frame-ancestors 'self'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("there is no %s in %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Count(policy, "sha256-") != 3 {
		t.Errorf("%s", policy)
	}
	AllowInline(h, Inline{})
	if policy := h.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'none'; style-src 'none'") {
		t.Errorf("without any: %s", policy)
	}
}

// A foreign page has its styles, and neither script nor origin nor network.
func TestSandbox(t *testing.T) {
	h := http.Header{}
	setHeaders(h, "id")
	Sandbox(h)
	policy := h.Get("Content-Security-Policy")
	if !strings.HasSuffix(policy, "; sandbox") || strings.Contains(policy, "script-src") || !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "'self';") && !strings.Contains(policy, "frame-ancestors 'self';") {
		t.Errorf("%s", policy)
	}
}

// Whatever a token is called, its name stays text in a page and one line in a header.
func TestScriptInNames(t *testing.T) {
	const name = `<script>alert(1)</script>"'><b>`
	g := open(t, Options{Token: testTokens[Administer]})
	page := template.Must(template.New("").Parse(`<p title="{{.Name}}">{{.Name}} {{.Role}}</p>`))
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil)
	r = r.WithContext(With(r.Context(), Who{Name: name, Role: Read}))
	if err := page.Execute(w, From(r.Context())); err != nil || strings.Contains(w.Body.String(), "<script") {
		t.Errorf("%v: %s", err, w.Body)
	}
	w = httptest.NewRecorder()
	g.Need(Administer, http.NotFoundHandler()).ServeHTTP(w, r)
	if kind := w.Header().Get("Content-Type"); w.Code != 403 || !strings.HasPrefix(kind, "text/plain") {
		t.Errorf("%d, %s: %s", w.Code, kind, w.Body)
	}
	r.Header.Set("Accept", "application/json")
	w = httptest.NewRecorder()
	g.Need(Administer, http.NotFoundHandler()).ServeHTTP(w, r)
	if strings.Contains(w.Body.String(), "<") {
		t.Errorf("%s", w.Body)
	}
}
