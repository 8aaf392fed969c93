package web_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"perflab/internal/store"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
)

// readOnly makes a directory one of a file system that cannot be written to, until the test ends.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 { // whom rights stop
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(dir, 0o755) })
		return
	}
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("root is stopped by a read-only file system alone, and none can be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("no read-only file system can be mounted here: %v", err)
	}
}

// TestReadOnly: directories that cannot be written to are served, where the server has another one for
// its own files; what cannot be done is said. Without one the server says what it needs.
func TestReadOnly(t *testing.T) {
	root := t.TempDir()
	storetest.Many(t, root, 4, 1)
	readOnly(t, root)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if s, err := web.Open(t.Context(), web.Options{Roots: []string{root}, Guard: guard.Options{Listen: "127.0.0.1:0"}}); err == nil {
		s.Close()
		t.Error("a server has its files in a directory that cannot be written to")
	} else if !strings.Contains(err.Error(), "state: cannot be made") || !strings.Contains(err.Error(), "give a directory") {
		t.Errorf("without a directory of its own: %v", err)
	}
	lab := webtest.Open(t, web.Options{Roots: []string{root}, State: filepath.Join(t.TempDir(), "state")})
	get := func(path string) answer { return send(t, request(t, http.MethodGet, lab.URL+path, guard.Nobody, nil)) }
	run := storetest.List(t, lab.Store(), store.Query{Filter: "kind=run parent=none"}).Entries[0].ID
	for _, path := range []string{"/runs", "/studies", "/run/" + run, "/compare?ids=" + run, "/launch", "/api/v1/entries"} {
		if a := get(path); a.status != http.StatusOK {
			t.Errorf("%s: %d %.500s", path, a.status, a.body)
		}
	}
	if a := tag(t, lab, run, "keep"); a.status != http.StatusConflict || !strings.Contains(a.body, "written") {
		t.Errorf("a mark: %d %s", a.status, a.body)
	}
	r := request(t, http.MethodDelete, lab.URL+"/api/v1/entries/"+run, guard.Nobody, nil)
	if a := send(t, r); a.status != http.StatusConflict || !strings.Contains(a.body, "written") {
		t.Errorf("a removal: %d %s", a.status, a.body)
	}
	if notes := strings.Join(lab.Notes(), "; "); !strings.Contains(notes, "cannot be written to") {
		t.Errorf("notes %q", notes)
	}
}
