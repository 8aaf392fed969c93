package web_test

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"perflab/internal/fleet/order"
	"perflab/internal/store"
	"perflab/internal/test/fleettest"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/asset"
	"perflab/internal/web/guard"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
)

// decisions say of every address who may use it, once more and by hand: a route that is added, or
// whose role is changed, fails TestDecisions until somebody has decided it here too. "open" is for
// everybody, "shared" for share links beside.
const decisions = `
open shared   GET /assets/
open          GET /healthz
read          GET /

read shared   GET /{$}
read shared   GET /runs
read          GET /runs/events
read          GET /runs/export
read          GET /runs/compare
launch        GET /runs/marks
launch        POST /runs/marks
read          GET /runs/trash
administer    POST /runs/delete
administer    POST /runs/restore
read shared   GET /run/{id}
read          GET /run/{id}/events
read          GET /run/{id}/live/{plot}
read          GET /run/{id}/files/{path...}

read shared   GET /compare
read shared   GET /compare.json
read shared   GET /compare.md
read          POST /compare/share

read          GET /history
read          GET /history/rule
read          GET /history/{key}
read          GET /history/{key}/points.csv
read          GET /history/{key}/points.json
launch        POST /history/{key}/note
read          GET /hardware
read          GET /hardware/events

read          GET /fleet
read          GET /fleet/events
administer    POST /fleet/invite
administer    GET /fleet/remove/{id}
administer    POST /fleet/remove/{id}
read          GET /api/v1/fleet
administer    POST /api/v1/fleet/invitations
administer    DELETE /api/v1/fleet/agents/{id}

read          GET /studies
read          GET /studies/events
read shared   GET /study/{id}
read shared   GET /study/{id}/events
read shared   GET /study/{id}/chart/{name}
read shared   GET /study/{id}/study.yaml
read shared   GET /study/{id}/trial/{n}
read shared   GET /study/{id}/trial/{n}/log/{name}
launch        POST /study/{id}/stop
launch        POST /study/{id}/resume
read          POST /study/{id}/share

read          GET /launch
read          GET /launch/events
read          GET /launch/{id}
read          GET /launch/{id}/events
read          GET /launch/{id}/log/{stream}
launch        POST /launch/{id}/{act}
launch        GET /launch/study
launch        POST /launch/study
launch        POST /launch/study/ranking
launch        GET /launch/bench
launch        POST /launch/bench
launch        POST /launch/bench/check
launch        POST /launch/quickstart
launch        POST /api/v1/studies/check
launch        POST /api/v1/studies/complete

read          GET /history
read          GET /history/rule
read          GET /history/{key}
read          GET /history/{key}/points.csv
read          GET /history/{key}/points.json
launch        POST /history/{key}/note

read          GET /hardware
read          GET /hardware/events

launch        GET /import
launch        POST /import
launch        GET /import/{id}
launch        POST /import/{id}/keep
launch        POST /import/{id}/discard
read          GET /sites
launch        POST /sites
read          GET /sites/view/{key}/{path...}
read          GET /sites/download/{key}

read          GET /metrics
read          GET /api/
read          GET /api/v1/openapi.json
read          GET /api/v1/version
read          GET /api/v1/entries
read          GET /api/v1/entries/{id}
read          GET /api/v1/entries/{id}/parts
read          GET /api/v1/entries/{id}/marks
launch        POST /api/v1/entries/{id}/marks
read          GET /api/v1/entries/{id}/reduction
read          GET /api/v1/entries/{id}/standing
read          GET /api/v1/entries/{id}/files
read          GET /api/v1/entries/{id}/files/{path...}
read          GET /api/v1/entries/{id}/tar
administer    DELETE /api/v1/entries/{id}
read          GET /api/v1/trash
administer    POST /api/v1/trash/restore
read          GET /api/v1/groups
read          GET /api/v1/fields
read          GET /api/v1/search
read          GET /api/v1/figures
read          GET /api/v1/compare
read          GET /api/v1/history
read          GET /api/v1/events
read          POST /api/v1/shares
administer    GET /api/v1/audit
read          GET /api/v1/launches
launch        POST /api/v1/launches
launch        POST /api/v1/launches/{id}/stop
launch        POST /api/v1/launches/{id}/resume
launch        POST /api/v1/launches/{id}/cancel
launch        POST /api/v1/launches/{id}/retry
read          GET /api/v1/launches/{id}
read          GET /api/v1/launches/{id}/log
launch        POST /api/v1/uploads
launch        GET /api/v1/uploads/{id}
launch        DELETE /api/v1/uploads/{id}
launch        HEAD /api/v1/uploads/{id}/files/{n}
launch        PUT /api/v1/uploads/{id}/files/{n}
launch        POST /api/v1/uploads/{id}/commit
`

// decided are the decisions, by pattern.
func decided() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(decisions) {
		words := strings.Fields(line)
		if n := len(words); n > 2 {
			out[words[n-2]+" "+words[n-1]] = strings.Join(words[:n-2], " ")
		}
	}
	return out
}

// TestDecisions: every address has the role that somebody decided that it needs, and its pattern names its method.
func TestDecisions(t *testing.T) {
	t.Parallel()
	lab := webtest.Open(t, guarded(t, t.TempDir()))
	left := decided()
	for _, r := range lab.Routes() {
		says := r.Role.String()
		if r.Open {
			says = "open"
		}
		if r.Shared {
			says += " shared"
		}
		method, _, _ := strings.Cut(r.Pattern, " ")
		switch want, ok := left[r.Pattern]; {
		case !ok:
			t.Errorf("nobody decided who may use %q, which is for %s: add it to the decisions of this test", r.Pattern, says)
		case want != says:
			t.Errorf("%q is for %s, and was decided to be for %s", r.Pattern, says, want)
		case method != http.MethodGet && method != http.MethodHead && !changes(method):
			t.Errorf("%q has no method that this test knows", r.Pattern)
		case method == http.MethodGet && r.Role == guard.Nobody && !r.Open:
			t.Errorf("%q is for nobody", r.Pattern)
		}
		delete(left, r.Pattern)
	}
	for pattern := range left {
		t.Errorf("%q was decided and is not there", pattern)
	}
}

// changes says that a method is for what changes something.
func changes(method string) bool {
	return slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, method)
}

// canary is in files that nobody may get.
const canary = "CANARY-of-a-file-outside"

// hostileLab is a laboratory whose every text is hostile, beside which there is a file that nobody may
// get, with things that links may lead to it.
func hostileLab(t testing.TB, change func(*web.Options)) *webtest.Lab {
	t.Helper()
	top := t.TempDir()
	root := filepath.Join(top, "root")
	storetest.WriteFile(t, filepath.Join(top, "secret.txt"), []byte(canary))
	webtest.Hostile(t, root)
	for _, dir := range []string{"run0", "study"} {
		found, err := filepath.Glob(filepath.Join(root, dir+"*"))
		if err != nil || len(found) == 0 {
			t.Fatal(found, err)
		}
		if err := os.Symlink(filepath.Join(top, "secret.txt"), filepath.Join(found[0], "outside")); err != nil {
			t.Fatal(err)
		}
	}
	o := guarded(t, root)
	f := fleettest.Open(t)
	o.Fleet = f.Leader
	if change != nil {
		change(&o)
	}
	lab := webtest.Open(t, o)
	f.Join(t, order.Facts{Name: webtest.Bad, Doing: webtest.Bad, Epoch: 1, Labels: map[string]string{webtest.Bad: webtest.Bad}}).Here(t)
	if !o.ReadOnly {
		lab.HostileMarks(t)
		launchBad(t, lab)
	}
	return lab
}

// launchBad launches a study and a bench that have hostile names.
func launchBad(t testing.TB, lab *webtest.Lab) {
	t.Helper()
	for _, form := range []struct{ at, name string }{{"/launch/bench", "name"}, {"/launch/quickstart", "name"}} {
		r := request(t, http.MethodPost, lab.URL+form.at, guard.Launch, strings.NewReader(url.Values{form.name: {webtest.Bad}, "base-url": {"http://127.0.0.1:9"}, "model": {"m"}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if a := send(t, r); a.status >= http.StatusInternalServerError {
			t.Errorf("%s: %d %.300s", form.at, a.status, a.body)
		}
	}
	if _, err := lab.Queue().Submit(launch.Request{Who: "who" + webtest.Bad, Bench: &launch.BenchRequest{Name: "bench" + webtest.Bad, Flags: map[string][]string{
		"base-url": {"http://127.0.0.1:9"}, "model": {"model"}, "num-prompts": {"1"},
	}}}); err != nil {
		t.Errorf("a hostile bench: %v", err)
	}
}

// samples are values for the parts of a pattern, by what stands before them in it.
func samples(t testing.TB, lab *webtest.Lab) map[string]string {
	t.Helper()
	out := map[string]string{
		"{act}": "none", "{n}": "1", "{name}": "replica-0.log", "{stream}": "stderr", "{plot}": "ttft", "{path...}": "header.json",
		"/chart/{name}": "history", "{id}": "1",
	}
	for _, e := range storetest.List(t, lab.Store(), store.Query{Limit: store.MostPage}).Entries {
		switch {
		case string(e.Kind) == "study":
			out["/study/{id}"] = e.ID
		case strings.HasPrefix(e.Name, "run0"):
			out["/run/{id}"], out["/entries/{id}"] = e.ID, e.ID
		}
	}
	for _, l := range lab.Queue().List() {
		out["/launch/{id}"], out["/launches/{id}"] = l.ID, l.ID
	}
	if out["/run/{id}"] == "" || out["/study/{id}"] == "" || out["/launch/{id}"] == "" {
		t.Fatalf("there are not all samples: %q", out)
	}
	return out
}

var wild = regexp.MustCompile(`/([^/{}]*)/(\{[^}]*\})|(\{[^}]*\})`)

// address is an address of a pattern: its parts are samples, one of them another text, percent-encoded.
func address(pattern string, values map[string]string, replaced int, by string) (method, path string) {
	if pattern == "GET /" {
		return http.MethodGet, "/nowhere"
	}
	method, path, _ = strings.Cut(strings.TrimSuffix(pattern, "{$}"), " ")
	n := 0
	return method, wild.ReplaceAllStringFunc(path, func(found string) string {
		at := strings.Index(found, "{")
		before, name := found[:at], found[at:]
		if n++; n-1 == replaced {
			return before + by
		}
		return before + url.PathEscape(cmp.Or(values[before+name], values[name], "1"))
	})
}

// each calls a function for every route, with an address of it.
func each(t *testing.T, lab *webtest.Lab, values map[string]string, do func(t *testing.T, r page.Route, method, path string)) {
	t.Helper()
	for _, r := range lab.Routes() {
		method, path := address(r.Pattern, values, -1, "")
		t.Run(r.Pattern, func(t *testing.T) { do(t, r, method, path) })
	}
}

// TestNobody: who has no token, or a wrong one, gets what is open and nothing else; a browser is led to the login.
func TestNobody(t *testing.T) {
	t.Parallel()
	lab := hostileLab(t, nil)
	each(t, lab, samples(t, lab), func(t *testing.T, route page.Route, method, path string) {
		if route.Open {
			return
		}
		for _, token := range []string{"", "Bearer wrong-0123456789abcdef0123456789", "Basic YTpi", "Bearer "} {
			r := request(t, method, lab.URL+path, guard.Nobody, nil)
			if token != "" {
				r.Header.Set("Authorization", token)
			}
			a := send(t, r)
			if a.status != http.StatusUnauthorized || strings.Contains(a.body, "alert") || strings.Contains(a.body, "vllm") {
				t.Errorf("with %q: %d %.300s", token, a.status, a.body)
			}
		}
		r := request(t, method, lab.URL+path, guard.Nobody, nil)
		r.Header.Set("Accept", "text/html")
		r.AddCookie(&http.Cookie{Name: "perflab_session", Value: "forged"})
		a := send(t, r)
		toLogin := a.status == http.StatusSeeOther && strings.HasPrefix(a.header.Get("Location"), "/login")
		if !toLogin && a.status != http.StatusUnauthorized {
			t.Errorf("a browser: %d to %q", a.status, a.header.Get("Location"))
		}
	})
	for _, path := range []string{"/healthz", "/login", asset.Path("app.css")} {
		if a := send(t, request(t, http.MethodGet, lab.URL+path, guard.Nobody, nil)); a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	for _, path := range []string{"/share/", "/share/x/runs", "/share/e30.e30/runs", "/assets/../runs", "/assets/%2e%2e/runs", "/healthz/../runs", "//runs", "/assets//../runs"} {
		if a := send(t, raw(t, http.MethodGet, lab.URL, path, guard.Nobody)); a.status < 300 {
			t.Errorf("%s: %d %.200s", path, a.status, a.body)
		}
	}
}

// TestRoles: every role below the one that an address needs is refused, and that one is not.
func TestRoles(t *testing.T) {
	t.Parallel()
	lab := hostileLab(t, nil)
	each(t, lab, samples(t, lab), func(t *testing.T, route page.Route, method, path string) {
		for _, role := range []guard.Role{guard.Read, guard.Launch, guard.Administer} {
			r := request(t, method, lab.URL+path, role, nil)
			if changes(method) {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			a := send(t, r)
			switch refused := a.status == http.StatusForbidden; {
			case a.status == http.StatusUnauthorized || a.status >= http.StatusInternalServerError:
				t.Errorf("%s: %d %.500s", role, a.status, a.body)
			case !route.Open && role < route.Role && !refused:
				t.Errorf("%s: %d, and it needs %s", role, a.status, route.Role)
			case role >= route.Role && refused:
				t.Errorf("%s is refused: %.500s", role, a.body)
			}
		}
	})
}

// TestOtherSites: under another name, or for a page of another site, nothing is done or told.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	lab := hostileLab(t, nil)
	each(t, lab, samples(t, lab), func(t *testing.T, route page.Route, method, path string) {
		for name, change := range map[string]func(*http.Request){
			"another host":       func(r *http.Request) { r.Host = "evil.example" },
			"a host that begins": func(r *http.Request) { r.Host = "localhost.evil.example" },
			"a fetch": func(r *http.Request) {
				r.Header.Set("Sec-Fetch-Site", "cross-site")
				r.Header.Set("Sec-Fetch-Mode", "cors")
			},
			"a neighbour": func(r *http.Request) {
				r.Header.Set("Sec-Fetch-Site", "same-site")
				r.Header.Set("Sec-Fetch-Mode", "no-cors")
			},
			"a frame": func(r *http.Request) {
				r.Header.Set("Sec-Fetch-Site", "cross-site")
				r.Header.Set("Sec-Fetch-Mode", "navigate")
				r.Header.Set("Sec-Fetch-Dest", "iframe")
			},
			"a form": func(r *http.Request) {
				r.Header.Set("Sec-Fetch-Site", "cross-site")
				r.Header.Set("Sec-Fetch-Mode", "navigate")
			},
			"a origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
			"no known": func(r *http.Request) { r.Header.Set("Origin", "null") },
		} {
			if !changes(method) && (name == "a form" || name == "a origin" || name == "no known") {
				continue // a link to a page may be followed
			}
			r := request(t, method, lab.URL+path, guard.Administer, nil)
			change(r)
			if a := send(t, r); a.status != http.StatusForbidden || strings.Contains(a.body, "vllm") {
				t.Errorf("%s: %d %.300s", name, a.status, a.body)
			}
		}
	})
}

// raw is a request whose path is sent as it is.
func raw(t testing.TB, method, base, path string, role guard.Role) *http.Request {
	t.Helper()
	r := request(t, method, base, role, nil)
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	r.URL = &url.URL{Scheme: u.Scheme, Host: u.Host, Opaque: path}
	return r
}

// tricks are texts in place of a part of an address, as they stand in it.
func tricks() []string {
	return []string{
		"..", "%2e%2e", "..%2f..%2fsecret.txt", "..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd", "..%5c..%5csecret.txt", "%2fetc%2fpasswd", "outside", "./outside", ".",
		"%00", "header.json%00.txt", "%ff%fe", "%0d%0aSet-Cookie:%20a=b", "-rf", "~", "C:%5csecret.txt", "%24(id)", "%27%20OR%201=1--", "%25", "*", strings.Repeat("a", 5000), strings.Repeat("..%2f", 500), "%E2%80%AE", "1e9", "-1", "99999999999999999999",
		".perflab", ".perflab%2fserver%2fkey", "..%2f.perflab%2findex.db",
	}
}

// TestPaths: whatever stands in a part of an address, nothing outside of what is served comes, and
// nothing breaks.
func TestPaths(t *testing.T) {
	t.Parallel()
	lab := hostileLab(t, nil)
	values := samples(t, lab)
	for _, route := range lab.Routes() {
		parts := len(wild.FindAllString(strings.TrimSuffix(route.Pattern, "{$}"), -1))
		if strings.HasSuffix(route.Pattern, "/") {
			route.Pattern += "{path...}"
			parts++
		}
		if parts == 0 {
			continue
		}
		t.Run(route.Pattern, func(t *testing.T) {
			for n := range parts {
				for _, trick := range tricks() {
					method, path := address(route.Pattern, values, n, trick)
					a := send(t, raw(t, method, lab.URL, path, guard.Administer))
					switch {
					case strings.Contains(a.body, canary) || strings.Contains(a.body, "root:x:0"):
						t.Errorf("%.200s: a file from outside came", path)
					case a.status >= http.StatusInternalServerError:
						t.Errorf("%.200s: %d %.500s", path, a.status, a.body)
					case a.header.Get("Set-Cookie") != "":
						t.Errorf("%.200s: a header came from the address", path)
					}
				}
			}
		})
	}
}

// counted counts what is read of it.
type counted struct {
	left, read int64
}

func (c *counted) Read(b []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), c.left)
	for i := range b[:n] {
		b[i] = 'a'
	}
	c.left -= n
	c.read += n
	return int(n), nil
}

const forms = "application/x-www-form-urlencoded"

// bodiless are addresses that change something and never look at a body.
var bodiless = map[string]bool{
	"POST /study/{id}/share": true, "DELETE /api/v1/fleet/agents/{id}": true, "POST /launch/quickstart": true, "DELETE /api/v1/entries/{id}": true, "DELETE /api/v1/uploads/{id}": true, "POST /api/v1/uploads/{id}/commit": true,
	"POST /api/v1/launches/{id}/stop": true, "POST /api/v1/launches/{id}/resume": true, "POST /api/v1/launches/{id}/cancel": true, "POST /api/v1/launches/{id}/retry": true,
}

// TestBodies: a body above the limit of an address is refused, and not taken: neither where its length
// is said, nor where it only comes and comes.
func TestBodies(t *testing.T) {
	t.Parallel()
	lab := hostileLab(t, nil)
	const (
		usual = 1 << 20  // guard's own limit
		more  = 32 << 20 // above it
		slack = 16 << 20 // of sockets' buffers on the way
	)
	each(t, lab, samples(t, lab), func(t *testing.T, route page.Route, method, path string) {
		limit := cmp.Or(route.Limit, usual)
		if !changes(method) || limit > 64*more {
			return // the latter are uploads, whose own tests fill a disk
		}
		for _, kind := range []string{forms, "application/json", "application/octet-stream"} {
			for _, said := range []bool{true, false} {
				body := &counted{left: limit + more}
				r := request(t, method, lab.URL+path, guard.Administer, io.NopCloser(body))
				r.Header.Set("Content-Type", kind)
				if r.ContentLength = -1; said {
					r.ContentLength = body.left
				}
				resp, err := client.Do(r)
				if err != nil {
					continue // the server closed the connection while the body was sent: it is refused
				}
				resp.Body.Close()
				refused := resp.StatusCode >= 400 && resp.StatusCode < 500 || !said && (kind != forms || bodiless[route.Pattern])
				if said && resp.StatusCode != http.StatusRequestEntityTooLarge || !refused {
					t.Errorf("%s, length said %t: %d", kind, said, resp.StatusCode)
				}
				if body.read > limit+slack {
					t.Errorf("%s, length said %t: %d bytes were taken, and the limit is %d", kind, said, body.read, limit)
				}
			}
		}
	})
}

// TestSharedRoutes: a share link opens what it names; what it does not name, and what is not shared, it does not.
func TestSharedRoutes(t *testing.T) {
	t.Parallel()
	lab := hostileLab(t, nil)
	values := samples(t, lab)
	link, _, err := lab.Guard().Share([]string{"run:not-there"}, 1e12)
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range lab.Routes() {
		method, path := address(route.Pattern, values, -1, "")
		a := send(t, request(t, method, lab.URL+strings.TrimSuffix(link, "/")+path, guard.Nobody, nil))
		if a.status >= http.StatusInternalServerError {
			t.Errorf("%s: %d %.300s", route.Pattern, a.status, a.body)
		}
		if strings.HasPrefix(path, "/assets/") {
			continue
		}
		if !route.Shared && a.status < 400 {
			t.Errorf("%s is not shared: %d %.300s", route.Pattern, a.status, a.body)
		}
		for name, id := range maps.All(values) {
			if strings.HasSuffix(name, "/{id}") && a.status < 300 && strings.Contains(a.body, id) {
				t.Errorf("%s tells of %s, which the link does not name", route.Pattern, name)
			}
		}
	}
}
