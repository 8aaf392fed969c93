package api_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/store"
	"perflab/internal/store/mark"
	"perflab/internal/test/storetest"
	"perflab/internal/web"
	"perflab/internal/web/api"
	"perflab/internal/web/guard/trail"
)

func nameOf(s string) mark.Record { return mark.Record{Do: mark.Name, Value: s} }

func TestMarks(t *testing.T) {
	l := open(t, web.Options{})
	path := "/api/v1/entries/one/marks"
	a := l.ask(t, "launch", http.MethodPost, path, `{"marks":[{"do":"tag","value":"keep"},{"do":"note","text":"good"}]}`)
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var m api.Marks
	l.read(t, path, &m)
	if len(m.Marks.Tags) != 1 || m.Marks.Note != "good" || len(m.History) != 2 || m.History[0].Who != "launch" {
		t.Errorf("%+v", m)
	}
	for body, want := range map[string]string{
		`{"marks":[]}`:                "1 to 100",
		`{"marks":[{"do":"x"}]}`:      "nothing that can be done",
		`{"marks":[{"do":"remove"}]}`: "DELETE",
		`{"mark":[]}`:                 "unknown field",
		`[`:                           "not the JSON",
	} {
		if a := l.ask(t, "launch", http.MethodPost, path, body); a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
}

func TestTrash(t *testing.T) {
	l := open(t, web.Options{})
	id := l.id(t, "one")
	a := l.ask(t, "administer", http.MethodDelete, "/api/v1/entries/one", nil)
	var gone store.Removed
	if err := json.Unmarshal([]byte(a.body), &gone); err != nil || gone.Entry != id {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := l.ask(t, "read", http.MethodGet, "/api/v1/entries/"+id, nil); a.status != http.StatusNotFound {
		t.Errorf("it is there: %d", a.status)
	}
	var trash api.Trash
	l.read(t, "/api/v1/trash", &trash)
	if len(trash.Removed) != 1 || trash.Removed[0] != gone {
		t.Errorf("%+v", trash)
	}
	if a := l.ask(t, "administer", http.MethodPost, "/api/v1/trash/restore", gone); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := l.ask(t, "administer", http.MethodPost, "/api/v1/trash/restore", store.Removed{Root: l.root, Path: "../x", Trash: "../../etc"}); a.status != http.StatusNotFound {
		t.Errorf("what is not there: %d %s", a.status, a.body)
	}
	l.read(t, "/api/v1/entries/one", new(any))
	a = l.ask(t, "administer", http.MethodGet, "/api/v1/audit?action=delete", nil)
	var p trail.Page
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || len(p.Events) != 1 || p.Events[0].Who != "administer" || p.Events[0].Object != id {
		t.Errorf("the audit log: %d %s", a.status, a.body)
	}
}

// TestRoles: who has not the role gets nothing and changes nothing.
func TestRoles(t *testing.T) {
	l := open(t, web.Options{})
	for _, test := range []struct{ who, method, path string }{
		{"read", "POST", "/api/v1/entries/one/marks"}, {"launch", "DELETE", "/api/v1/entries/one"}, {"launch", "POST", "/api/v1/trash/restore"},
		{"read", "POST", "/api/v1/launches"}, {"read", "POST", "/api/v1/launches/x/stop"}, {"launch", "GET", "/api/v1/audit"},
		{"read", "POST", "/api/v1/uploads"}, {"read", "GET", "/api/v1/uploads/x"}, {"read", "PUT", "/api/v1/uploads/x/files/0"}, {"read", "POST", "/api/v1/uploads/x/commit"}, {"read", "DELETE", "/api/v1/uploads/x"},
	} {
		if a := l.ask(t, test.who, test.method, test.path, "{}"); a.status != http.StatusForbidden {
			t.Errorf("%s %s %s: %d %s", test.who, test.method, test.path, a.status, a.body)
		}
	}
	for _, r := range l.Routes() {
		method, path, _ := strings.Cut(r.Pattern, " ")
		if !strings.HasPrefix(path, "/api/v1") && path != "/metrics" {
			continue
		}
		path = strings.NewReplacer("{id}", "one", "{n}", "0", "{path...}", "header.json").Replace(path)
		if a := l.ask(t, "", method, path, nil); a.status != http.StatusUnauthorized {
			t.Errorf("%s %s without a token: %d", method, path, a.status)
		}
	}
}

// TestReadOnly: a server that only reads changes nothing on the disk.
func TestReadOnly(t *testing.T) {
	l := open(t, web.Options{ReadOnly: true})
	before := names(t, l.root)
	for path, method := range map[string]string{"/api/v1/entries/one/marks": "POST", "/api/v1/entries/one": "DELETE", "/api/v1/trash/restore": "POST", "/api/v1/uploads": "POST",
		"/api/v1/uploads/x": "GET", "/api/v1/uploads/x/files/0": "PUT", "/api/v1/uploads/x/commit": "POST"} {
		if a := l.ask(t, "administer", method, path, "{}"); a.status != http.StatusForbidden || !strings.Contains(a.body, "changes nothing") {
			t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
		}
	}
	if after := names(t, l.root); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// names are those of all directories below one but the folder of perflab itself.
func names(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name == store.Folder {
			return fs.SkipDir
		}
		all = append(all, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

func TestShares(t *testing.T) {
	l := open(t, web.Options{})
	a := l.ask(t, "read", http.MethodPost, "/api/v1/shares", `{"entries":["one","two"],"hours":1}`)
	var s api.Share
	if err := json.Unmarshal([]byte(a.body), &s); err != nil || !strings.HasPrefix(s.Path, "/share/") || !strings.Contains(s.Path, "/compare?ids=") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for body, status := range map[string]int{`{"entries":[],"hours":1}`: 400, `{"entries":["one"],"hours":1e9}`: 400, `{"entries":["one"]}`: 400, `{"entries":["none"],"hours":1}`: 404} {
		if a := l.ask(t, "read", http.MethodPost, "/api/v1/shares", body); a.status != status {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
}

// TestEvents: a change of the index is told to who listens, and to who comes back.
func TestEvents(t *testing.T) {
	l := open(t, web.Options{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.URL+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+tokens["read"])
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	next := reader(resp.Body)
	seen := map[string]bool{}
	for !seen["entries"] || !seen["launches"] {
		e := next(t)
		seen[e.name] = true
	}
	storetest.Run{N: 11}.Write(t, l.root, "new")
	if _, err := l.Store().Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		e := next(t)
		if e.name == "entries" && strings.Contains(e.data, `"entries":6`) {
			if e.id == "" {
				t.Error("the event has no id")
			}
			break
		}
	}
}

func TestFiles(t *testing.T) {
	l := open(t, web.Options{})
	secret := filepath.Join(t.TempDir(), "secret.json")
	storetest.WriteFile(t, secret, []byte("SECRET"))
	if err := os.Symlink(secret, filepath.Join(l.root, "one", "link.json")); err != nil {
		t.Skip(err)
	}
	storetest.WriteFile(t, filepath.Join(l.root, "one", ".hidden"), []byte("SECRET"))
	storetest.WriteFile(t, filepath.Join(l.root, "one", "x.html"), []byte("<script>1</script>"))
	a := l.ask(t, "read", http.MethodGet, "/api/v1/entries/one/files?digest=true", nil)
	if a.status != http.StatusOK || strings.Contains(a.body, "link.json") || strings.Contains(a.body, "hidden") || !strings.Contains(a.body, "header.json") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, name := range []string{"link.json", ".hidden", "..%2fsecret", "%2e%2e/two/header.json", "nothing", "a%00b", "logs%5c..", ""} {
		a := l.ask(t, "read", http.MethodGet, "/api/v1/entries/one/files/"+name, nil)
		if a.status == http.StatusOK || strings.Contains(a.body, "SECRET") {
			t.Errorf("%q: %d %s", name, a.status, a.body)
		}
	}
	a = l.ask(t, "read", http.MethodGet, "/api/v1/entries/one/files/header.json", nil, "Range", "bytes=2-5")
	if a.status != http.StatusPartialContent || len(a.body) != 4 {
		t.Errorf("a range: %d %q", a.status, a.body)
	}
	a = l.ask(t, "read", http.MethodGet, "/api/v1/entries/one/files/x.html", nil)
	if a.status != http.StatusOK || strings.Contains(a.header.Get("Content-Type"), "html") || !strings.Contains(a.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("a page of a run: %d %v", a.status, a.header)
	}
	a = l.ask(t, "read", http.MethodGet, "/api/v1/entries/one/tar", nil)
	if a.status != http.StatusOK || !strings.Contains(a.body, "one/header.json") || strings.Contains(a.body, "SECRET") {
		t.Errorf("an archive: %d", a.status)
	}
}

func TestMetrics(t *testing.T) {
	l := open(t, web.Options{})
	a := l.ask(t, "read", http.MethodGet, "/metrics", nil)
	for _, want := range []string{"perflab_entries 5\n", "perflab_launches_queued 0\n", "perflab_uploads 0\n", "perflab_sync_seconds "} {
		if !strings.Contains(a.body, want) {
			t.Errorf("there is no %q in\n%s", want, a.body)
		}
	}
}
