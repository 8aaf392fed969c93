package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/push/manifest"
	"perflab/internal/test/storetest"
	"perflab/internal/web"
)

// described is the manifest of the plain files of a directory, with their contents.
func described(t *testing.T, dir string) (m manifest.Manifest, contents [][]byte) {
	t.Helper()
	m = manifest.Manifest{Schema: manifest.Schema, Name: filepath.Base(dir)}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		m.Files = append(m.Files, manifest.File{Path: e.Name(), Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:])})
		contents = append(contents, b)
	}
	return m, contents
}

func (l *lab) begin(t *testing.T, m manifest.Manifest) (up manifest.Upload) {
	t.Helper()
	a := l.ask(t, "launch", http.MethodPost, "/api/v1/uploads", m)
	if err := json.Unmarshal([]byte(a.body), &up); err != nil || a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return up
}

// TestUpload: an upload by hand, as a script without perflab would make it.
func TestUpload(t *testing.T) {
	l := open(t, web.Options{Reserve: 1})
	m, contents := described(t, storetest.Run{N: 77}.Write(t, t.TempDir(), "pushed"))
	up := l.begin(t, m)
	file := func(n int) string { return fmt.Sprintf("/api/v1/uploads/%s/files/%d", up.ID, n) }
	if a := l.ask(t, "launch", http.MethodPut, file(0), contents[0][:5], manifest.OffsetHeader, "3"); a.status != http.StatusConflict || a.header.Get(manifest.OffsetHeader) != "0" {
		t.Errorf("a gap: %d %s, %s are there", a.status, a.body, a.header.Get(manifest.OffsetHeader))
	}
	if a := l.ask(t, "launch", http.MethodPut, file(0), contents[0][:5], manifest.OffsetHeader, "x"); a.status != http.StatusBadRequest {
		t.Errorf("no number: %d %s", a.status, a.body)
	}
	if a := l.ask(t, "launch", http.MethodPut, file(0), append(bytes.Clone(contents[0]), 'x')); a.status != http.StatusUnprocessableEntity {
		t.Errorf("too long: %d %s", a.status, a.body)
	}
	if a := l.ask(t, "launch", http.MethodPut, file(0), make([]byte, 16<<20+1)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a piece too long: %d %s", a.status, a.body)
	}
	if a := l.ask(t, "launch", http.MethodPut, file(0), contents[0][:5]); a.status != http.StatusNoContent || a.header.Get(manifest.OffsetHeader) != "5" {
		t.Errorf("a piece: %d %s", a.status, a.body)
	}
	if a := l.ask(t, "launch", http.MethodHead, file(0), nil); a.header.Get(manifest.OffsetHeader) != "5" {
		t.Errorf("how much is there: %d %v", a.status, a.header)
	}
	if a := l.ask(t, "launch", http.MethodPost, "/api/v1/uploads/"+up.ID+"/commit", nil); a.status != http.StatusUnprocessableEntity || a.header.Get(manifest.AgainHeader) == "" {
		t.Errorf("a commit too early: %d %s", a.status, a.body)
	}
	for _, p := range l.begin(t, m).Missing {
		a := l.ask(t, "launch", http.MethodPut, file(p.File), contents[p.File][p.Offset:], manifest.OffsetHeader, fmt.Sprint(p.Offset))
		if a.status != http.StatusNoContent {
			t.Fatalf("file %d: %d %s", p.File, a.status, a.body)
		}
	}
	a := l.ask(t, "launch", http.MethodPost, "/api/v1/uploads/"+up.ID+"/commit", nil)
	if err := json.Unmarshal([]byte(a.body), &up); err != nil || up.Place != "pushed" || up.Entry != l.id(t, "pushed") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	m.Entry = up.Entry
	if again := l.begin(t, m); again.Entry != up.Entry || len(again.Missing) != 0 {
		t.Errorf("pushed again: %+v", again)
	}
	if a := l.ask(t, "administer", http.MethodGet, "/api/v1/audit?action=push&who=launch", nil); !strings.Contains(a.body, up.Entry) {
		t.Errorf("the audit log: %s", a.body)
	}
}

func TestUploadRefused(t *testing.T) {
	l := open(t, web.Options{Reserve: 1})
	good, _ := described(t, storetest.Run{N: 78}.Write(t, t.TempDir(), "run"))
	for name, change := range map[string]func(m *manifest.Manifest){
		"only dots":         func(m *manifest.Manifest) { m.Files[0].Path = "../../x" },
		"a slash":           func(m *manifest.Manifest) { m.Files[0].Path = "/etc/cron.d/x" },
		"device":            func(m *manifest.Manifest) { m.Files[0].Path = "logs/con" },
		"begins with a dot": func(m *manifest.Manifest) { m.Name = ".perflab" },
		"under way":         func(m *manifest.Manifest) { m.Name = "run.tmp" },
		"64 small":          func(m *manifest.Manifest) { m.Files[0].SHA256 = "" },
	} {
		m := good
		m.Files = append([]manifest.File{}, good.Files...)
		change(&m)
		if a := l.ask(t, "launch", http.MethodPost, "/api/v1/uploads", m); a.status != http.StatusBadRequest || !strings.Contains(a.body, name) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	up := l.begin(t, good)
	for _, path := range []string{"/api/v1/uploads/" + up.ID + "/files/99", "/api/v1/uploads/" + up.ID + "/files/x", "/api/v1/uploads/nothing/files/0"} {
		if a := l.ask(t, "launch", http.MethodPut, path, "x"); a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := l.ask(t, "launch", http.MethodDelete, "/api/v1/uploads/"+up.ID, nil); a.status != http.StatusNoContent {
		t.Errorf("given up: %d %s", a.status, a.body)
	}
	if a := l.ask(t, "launch", http.MethodGet, "/api/v1/uploads/"+up.ID, nil); a.status != http.StatusNotFound {
		t.Errorf("it is there: %d %s", a.status, a.body)
	}
}

// TestUploadReserve: an upload that would fill the disk is refused before anything of it comes.
func TestUploadReserve(t *testing.T) {
	l := open(t, web.Options{Reserve: 1 << 60})
	m, _ := described(t, storetest.Run{N: 79}.Write(t, t.TempDir(), "run"))
	if a := l.ask(t, "launch", http.MethodPost, "/api/v1/uploads", m); a.status != http.StatusInsufficientStorage || !strings.Contains(a.body, "stay free") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestUploadKilled: a server that was killed when it had just made a directory of an upload has the entry, and
// no upload is left of it, whoever goes on with it.
func TestUploadKilled(t *testing.T) {
	l := open(t, web.Options{Reserve: 1})
	m, contents := described(t, storetest.Run{N: 77}.Write(t, t.TempDir(), "pushed"))
	uploads := filepath.Join(l.root, ".perflab", "uploads")
	send := func(up manifest.Upload) {
		for _, p := range up.Missing {
			if a := l.ask(t, "launch", http.MethodPut, fmt.Sprintf("/api/v1/uploads/%s/files/%d", up.ID, p.File), contents[p.File]); a.status != http.StatusNoContent {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
	}
	up := l.begin(t, m)
	send(up)
	if err := os.Rename(filepath.Join(uploads, up.ID, "tree"), filepath.Join(l.root, "pushed")); err != nil {
		t.Fatal(err)
	}
	storetest.Sync(t, l.Store())
	again := l.begin(t, m) // by who does not know what it is
	if len(again.Missing) != len(m.Files) {
		t.Fatalf("%+v", again)
	}
	send(again)
	a := l.ask(t, "launch", http.MethodPost, "/api/v1/uploads/"+up.ID+"/commit", nil)
	if err := json.Unmarshal([]byte(a.body), &up); err != nil || up.Place != "" || up.Entry != l.id(t, "pushed") {
		t.Errorf("%d %s", a.status, a.body)
	}
	l.begin(t, m)
	m.Entry = up.Entry
	if got := l.begin(t, m); got.Entry != up.Entry {
		t.Errorf("%+v", got)
	}
	if left, err := os.ReadDir(uploads); err != nil || len(left) > 0 {
		t.Errorf("%d uploads are left: %v", len(left), err)
	}
}
