package web_test

import (
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
)

var (
	tags    = regexp.MustCompile(`<([a-zA-Z!][^\s/>]*)((?:[^">]|"[^"]*")*)>`)
	values  = regexp.MustCompile(`"[^"]*"`)
	handler = regexp.MustCompile(`(?i)[\s/](on[a-z]+|style|srcdoc)\s*=`)
	links   = regexp.MustCompile(`\s(href|src|action|formaction|data-src|data-url)="([^"]*)"`)
	steers  = regexp.MustCompile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
)

// faults are what of a page could run something, or deceive its reader.
func faults(page string) (out []string) {
	for _, m := range tags.FindAllStringSubmatch(page, -1) {
		name, rest := strings.ToLower(m[1]), m[2]
		switch {
		case name == "script" && strings.Contains(rest, `type="application/json"`): // data, which no browser runs
		case name == "script" && !strings.Contains(rest, `src="/`), name == "style", name == "iframe" && !strings.Contains(rest, `src="/`), name == "object", name == "embed", name == "base":
			out = append(out, "the element "+m[0])
		case name == "img" && strings.Contains(rest, "onerror"):
			out = append(out, "an element of a name: "+m[0])
		case handler.MatchString(values.ReplaceAllString(rest, `""`)):
			out = append(out, "a handler or style inside: "+m[0])
		}
	}
	for _, m := range links.FindAllStringSubmatch(page, -1) {
		u, err := url.Parse(html.UnescapeString(m[2]))
		if err != nil || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" {
			out = append(out, "the link "+m[0])
		}
	}
	if strings.Contains(strings.ToLower(page), "<script>alert") || strings.Contains(page, "<img src=x") {
		out = append(out, "a name as it is")
	}
	if s := steers.FindString(page); s != "" {
		at := strings.Index(page, s)
		out = append(out, "a character that steers: "+page[max(0, at-60):min(len(page), at+20)])
	}
	return out
}

// TestFaults: what must not stand in a page is found.
func TestFaults(t *testing.T) {
	for _, page := range []string{
		`<p>"'><script>alert(1)</script>`, `<p title="x" onclick=alert(1)>`, `<p style="color:red">`, `<a href="javascript:alert(1)">`, "<p>\x1b[31m", `<p>` + webtest.Bad,
		`<svg/onload=alert(1)>`, `<iframe srcdoc="x">`, "<p>\u202e", `<style>p{}</style>`, `<base href="/x">`, `<script src="https://evil.example/x.js"></script>`,
	} {
		if len(faults(page)) == 0 {
			t.Errorf("nothing is found wrong in %s", page)
		}
	}
	for _, page := range []string{
		`<p title="a onclick=x style=y">on a style = of`, `<p>&lt;script&gt;alert(1)&lt;/script&gt;`, `<a href="/runs?q=a%3Cb">`, `<script type="module" src="/assets/app.js"></script>`, `<a href="https://example.com/">`, `<!doctype html><input value="&#34;&gt;">`,
	} {
		if got := faults(page); len(got) > 0 {
			t.Errorf("%s: %q", page, got)
		}
	}
}

var ids = regexp.MustCompile(`[0-9a-f]{8,}|[0-9]+`)

// kindOf is an address without what tells it from others of its kind: IDs, numbers, values of its query.
func kindOf(address string) string {
	at, query, _ := strings.Cut(address, "?")
	q, _ := url.ParseQuery(query)
	return ids.ReplaceAllString(at, "1") + "?" + strings.Join(slices.Sorted(maps.Keys(q)), "&")
}

// walk gets pages and all pages that they lead to, and gives each to a function: of each kind of
// address a few.
func walk(t *testing.T, lab *webtest.Lab, first []string, few int, see func(path string, a answer)) {
	t.Helper()
	seen, kinds := map[string]bool{}, map[string]int{}
	for len(first) > 0 {
		path := first[0]
		first = first[1:]
		if seen[path] || kinds[kindOf(path)] == few {
			continue
		}
		seen[path] = true
		kinds[kindOf(path)]++
		a := send(t, request(t, http.MethodGet, lab.URL+path, guard.Administer, nil))
		see(path, a)
		if to := a.header.Get("Location"); strings.HasPrefix(to, "/") {
			first = append(first, to)
		}
		if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || strings.Contains(path, "/files/") {
			continue
		}
		for _, m := range links.FindAllStringSubmatch(a.body, -1) {
			to, _, _ := strings.Cut(html.UnescapeString(m[2]), "#")
			if m[1] == "action" || m[1] == "formaction" {
				continue // of forms, most of which change something
			}
			switch {
			case strings.HasPrefix(to, "/assets/"), strings.HasPrefix(to, "//"), strings.HasPrefix(to, "/logout"):
			case strings.HasPrefix(to, "/"):
				first = append(first, to)
			case strings.HasPrefix(to, "?"):
				at, _, _ := strings.Cut(path, "?")
				first = append(first, at+to)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d pages were found", len(seen))
	}
	t.Logf("%d addresses", len(seen))
}

// TestHostile looks at every page there is of a laboratory in which every text is hostile: it runs
// nothing, deceives nobody, leads nowhere that is not there, and has the headers that keep it so.
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*web.Options){"": nil, "read only": func(o *web.Options) { o.ReadOnly = true }} {
		lab := hostileLab(t, change)
		var first []string
		for _, r := range lab.Routes() {
			sample := map[string]string{}
			if !lab.ReadOnly() {
				sample = samples(t, lab)
			}
			if method, path := address(r.Pattern, sample, -1, ""); method == http.MethodGet {
				first = append(first, path, path+"?q="+url.QueryEscape(webtest.Bad), path+"?ids="+url.QueryEscape(webtest.Bad)+"&sort="+url.QueryEscape(webtest.Bad)+"&columns="+url.QueryEscape(webtest.Bad)+"&group="+url.QueryEscape(webtest.Bad))
			}
		}
		walk(t, lab, first, 4, func(path string, a answer) {
			t.Helper()
			at := name + " " + path
			if a.status >= http.StatusInternalServerError {
				t.Errorf("%s: %d %.500s", at, a.status, a.body)
			}
			for _, h := range []string{"Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"} {
				if a.header.Get(h) == "" {
					t.Errorf("%s has no header %s", at, h)
				}
			}
			policy := a.header.Get("Content-Security-Policy")
			if strings.Contains(policy, "unsafe-eval") || strings.Contains(policy, "unsafe-inline") && !strings.Contains(policy, "sandbox") {
				t.Errorf("%s: policy %s", at, policy)
			}
			kind := a.header.Get("Content-Type")
			if a.body != "" && kind == "" {
				t.Errorf("%s has no content type", at)
			}
			if strings.HasPrefix(kind, "text/html") && !strings.Contains(policy, "sandbox") {
				for _, f := range faults(a.body) {
					t.Errorf("%s: %.300s", at, f)
				}
			}
		})
	}
}
