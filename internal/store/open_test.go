package store_test

import (
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perflab/internal/store"
	"perflab/internal/test/storetest"
)

// index is the file of the index of a root.
func index(root string) string { return filepath.Join(root, store.Folder, "index.db") }

// made makes an index file of statements.
func made(t *testing.T, root, statements string) {
	t.Helper()
	storetest.Mkdir(t, filepath.Dir(index(root)))
	db, err := sql.Open("sqlite", index(root))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
}

// TestUnreadableIndex: what is no index is put aside and said, and nothing is lost with it.
func TestUnreadableIndex(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, string){
		"rubbish": func(t *testing.T, root string) {
			storetest.WriteFile(t, index(root), []byte(strings.Repeat("rubbish ", 1000)))
		},
		"of another program": func(t *testing.T, root string) {
			for _, more := range []string{"", "-wal", "-shm"} {
				os.Remove(index(root) + more)
			}
			made(t, root, "CREATE TABLE accounts (name TEXT)")
		},
		"broken page": func(t *testing.T, root string) {
			b, err := os.ReadFile(index(root))
			if err != nil {
				t.Fatal(err)
			}
			copy(b[100:], strings.Repeat("\xff", 4000)) // of the table of tables
			storetest.WriteFile(t, index(root), b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			storetest.Run{N: 1}.Write(t, root, "a")
			s, err := store.Open(t.Context(), store.Options{Roots: []string{root}})
			if err != nil {
				t.Fatal(err)
			}
			storetest.Sync(t, s)
			if err := s.Mark(t.Context(), "ada", "a", storetest.Tagged("keep")); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			spoil(t, root)
			s = open(t, store.Options{Roots: []string{root}})
			storetest.Sync(t, s)
			if p := storetest.List(t, s, store.Query{Filter: "tag=keep"}); p.Total != 1 {
				t.Errorf("%d entries", p.Total)
			}
			if notes := strings.Join(s.Info().Notes, "; "); !strings.Contains(notes, "put aside") || !strings.Contains(notes, "not lost") {
				t.Errorf("notes %q", notes)
			}
			if _, err := os.Stat(index(root) + ".unreadable"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDamagedPages: damage that shows in use is said, and is mended by the next start.
func TestDamagedPages(t *testing.T) {
	root := t.TempDir()
	for i := range 20 {
		storetest.Run{N: i}.Write(t, root, strings.Repeat("a", i+1))
	}
	s, err := store.Open(t.Context(), store.Options{Roots: []string{root}})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Sync(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(index(root))
	if err != nil {
		t.Fatal(err)
	}
	const schema = 3 * 4096 // pages of the tables' own table, about, which a start reads
	for i := schema; i < len(b); i++ {
		b[i] = 0xff
	}
	storetest.WriteFile(t, index(root), b)
	if s, err = store.Open(t.Context(), store.Options{Roots: []string{root}}); err != nil {
		t.Fatal(err)
	}
	if len(s.Info().Notes) == 0 { // else the start saw it
		if _, err := s.List(t.Context(), store.Query{}); err == nil || !strings.Contains(err.Error(), "start perflab again") {
			t.Errorf("%v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, store.Options{Roots: []string{root}})
	storetest.Sync(t, s)
	if p := storetest.List(t, s, store.Query{}); p.Total != 20 {
		t.Errorf("%d entries, notes %q", p.Total, s.Info().Notes)
	}
	if _, err := os.Stat(index(root) + ".damaged"); err == nil {
		t.Error("the word of the damage is still there")
	}
}

func TestNewerIndex(t *testing.T) {
	root := t.TempDir()
	made(t, root, "CREATE TABLE perflab_index (version BIGINT NOT NULL); INSERT INTO perflab_index VALUES (99)")
	_, err := store.Open(t.Context(), store.Options{Roots: []string{root}})
	if newer, ok := errors.AsType[*store.NewerError](err); !ok || newer.Has != 99 || !strings.Contains(err.Error(), "newer perflab") || !strings.Contains(err.Error(), index(root)) {
		t.Errorf("%v", err)
	}
}

// TestOlderIndex: the file of an older version goes on, with what is in it.
func TestOlderIndex(t *testing.T) {
	old, err := os.ReadFile("testdata/index-1.sql")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	made(t, root, strings.ReplaceAll(string(old), "'ROOT'", "'"+root+"'"))
	s := open(t, store.Options{Roots: []string{root}})
	if p := storetest.List(t, s, store.Query{}); p.Total != 1 || p.Entries[0].Name != "of-before" || p.Version != 7 {
		t.Errorf("%+v", p)
	}
	storetest.Run{N: 1}.Write(t, root, "a")
	if c := storetest.Sync(t, s); len(c.Added) != 1 || len(c.Removed) != 1 {
		t.Errorf("%+v", c)
	}
}

// TestRoots: roots that cannot be looked through as they are given.
func TestRoots(t *testing.T) {
	root := t.TempDir()
	storetest.Mkdir(t, filepath.Join(root, "inner"))
	storetest.WriteFile(t, filepath.Join(root, "file"), nil)
	for _, c := range []struct {
		roots []string
		says  string
	}{
		{nil, "needs a directory"},
		{[]string{filepath.Join(root, "nowhere")}, "nowhere"},
		{[]string{filepath.Join(root, "file")}, "file"},
		{[]string{root, filepath.Join(root, "inner")}, "one holds the other"},
	} {
		if _, err := store.Open(t.Context(), store.Options{Roots: c.roots}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v", c.roots, err)
		}
	}
	for _, dsn := range []string{"mysql://x", "nonsense"} {
		if _, err := store.Open(t.Context(), store.Options{Roots: []string{root}, DSN: dsn}); err == nil || !strings.Contains(err.Error(), "postgres://") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

// TestOwnRoots: two servers share the index of the first root, and each shows its own directories.
func TestOwnRoots(t *testing.T) {
	x, y := t.TempDir(), t.TempDir()
	storetest.Run{N: 1}.Write(t, x, "in-x")
	storetest.Run{N: 2}.Write(t, y, "in-y")
	both := open(t, store.Options{Roots: []string{x, y}})
	storetest.Sync(t, both)
	one := open(t, store.Options{Roots: []string{x}})
	storetest.Sync(t, one)
	if a, b := storetest.List(t, both, store.Query{}), storetest.List(t, one, store.Query{}); a.Total != 2 || b.Total != 1 {
		t.Errorf("%q and %q", storetest.Names(a), storetest.Names(b))
	}
	if _, err := one.Get(t.Context(), "in-y"); err == nil {
		t.Error("what lies in a directory that is not looked through is shown")
	}
}

// TestMovedRoot: an index that was moved together with its root has the rows of the new place alone.
func TestMovedRoot(t *testing.T) {
	above := t.TempDir()
	storetest.Run{N: 1}.Write(t, above, "before/a")
	s, err := store.Open(t.Context(), store.Options{Roots: []string{filepath.Join(above, "before")}})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Sync(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(above, "before"), filepath.Join(above, "after")); err != nil {
		t.Fatal(err)
	}
	s = open(t, store.Options{Roots: []string{filepath.Join(above, "after")}})
	storetest.Sync(t, s)
	p := storetest.List(t, s, store.Query{})
	if p.Total != 1 || len(p.Entries[0].Places) != 1 || !strings.HasSuffix(p.Entries[0].Dir(), filepath.Join("after", "a")) {
		t.Errorf("%+v", p)
	}
}

// TestLibc: the driver of SQLite is made for one version of its C library alone, which another
// dependency can raise without a word.
func TestLibc(t *testing.T) {
	list := func(format, module string) string {
		t.Helper()
		out, err := exec.Command("go", "list", "-m", "-f", format, module).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		return strings.TrimSpace(string(out))
	}
	mod, err := os.ReadFile(list("{{.GoMod}}", "modernc.org/sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^\s*modernc.org/libc (\S+)`).FindSubmatch(mod)
	if want == nil {
		t.Fatal("the driver names no version")
	}
	if got := list("{{.Version}}", "modernc.org/libc"); got != string(want[1]) {
		t.Errorf("modernc.org/libc is %s, and the driver is made for %s: pin it in go.mod", got, want[1])
	}
}
