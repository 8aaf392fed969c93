package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// trace keeps the steps of a disk, with paths as seen from a directory.
func trace(dir string) (Disk, *[]string) {
	var steps []string
	return Disk{Trace: func(s Step, path string) {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			rel = path
		}
		steps = append(steps, fmt.Sprint(s, " ", rel))
	}}, &steps
}

// TestReplaceOrder: a file is safe before it has its name, and the name after it.
func TestReplaceOrder(t *testing.T) {
	dir := t.TempDir()
	d, steps := trace(dir)
	path := filepath.Join(dir, "a")
	for _, text := range []string{"old", "new"} {
		*steps = nil
		write := func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
		if err := d.Replace(path, 0o600, write); err != nil {
			t.Fatal(err)
		}
		if want := []string{"sync file a", "rename a", "sync directory ."}; !slices.Equal(*steps, want) {
			t.Errorf("steps %q, want %q", *steps, want)
		}
		if b, _ := os.ReadFile(path); string(b) != text {
			t.Errorf("the file has %q, want %q", b, text)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestReplaceFails: a file that cannot be finished leaves the old one, and nothing
// beside it.
func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := Replace(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	if b, _ := os.ReadFile(path); !errors.Is(err, broken) || string(b) != "old" {
		t.Errorf("%v, and the file has %q", err, b)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 1 {
		t.Errorf("left behind: %q", names)
	}
}

// TestReplaceLink: a link stays one.
func TestReplaceLink(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "a"), filepath.Join(dir, "link")
	err := errors.Join(WriteFile(path, []byte("old"), 0o644), os.Symlink("a", link), WriteFile(link, []byte("new"), 0o644))
	if b, _ := os.ReadFile(path); err != nil || string(b) != "new" {
		t.Errorf("%v, and the file has %q", err, b)
	}
	if to, err := os.Readlink(link); err != nil || to != "a" {
		t.Errorf("the link leads to %q (%v)", to, err)
	}
}

// TestAppendFile: what is there stays.
func TestAppendFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	err := errors.Join(AppendFile(path, []byte("1"), 0o644), AppendFile(path, []byte("2"), 0o644))
	if b, _ := os.ReadFile(path); err != nil || string(b) != "12" {
		t.Errorf("%v, and the file has %q", err, b)
	}
}

// TestReplaceInPlace: a pipe stays one.
func TestReplaceInPlace(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := WriteFile(fmt.Sprintf("/dev/fd/%d", w.Fd()), []byte("text"), 0o644); err != nil {
		t.Skipf("no /dev/fd: %v", err)
	}
	w.Close()
	if b, err := io.ReadAll(r); err != nil || string(b) != "text" {
		t.Errorf("the pipe got %q, %v", b, err)
	}
}

// TestPublishOrder: everything below a directory is safe before it has its name. Links
// and pipes are left alone.
func TestPublishOrder(t *testing.T) {
	dir := t.TempDir()
	d, steps := trace(dir)
	tmp := filepath.Join(dir, "x.tmp")
	if err := os.MkdirAll(filepath.Join(tmp, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "sub/c"} {
		if err := os.WriteFile(filepath.Join(tmp, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(tmp, "link")); err != nil {
		t.Fatal(err)
	}
	if err := d.Publish(tmp, filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	want := "sync file x.tmp/b, sync file x.tmp/sub/c, sync directory x.tmp, sync directory x.tmp/sub, rename x, sync directory ."
	if got := strings.Join(*steps, ", "); got != want {
		t.Errorf("steps\n%s\nwant\n%s", got, want)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "x", "sub", "c")); string(b) != "sub/c" {
		t.Errorf("the file has %q", b)
	}
}

// TestMkdirAll: the names of all directories that were made are safe.
func TestMkdirAll(t *testing.T) {
	dir := t.TempDir()
	d, steps := trace(dir)
	if err := d.MkdirAll(filepath.Join(dir, "a", "b", "c")); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(*steps, ", "), "sync directory a/b, sync directory a, sync directory ."; got != want {
		t.Errorf("steps %q, want %q", got, want)
	}
	*steps = nil
	if err := d.MkdirAll(filepath.Join(dir, "a", "b", "c")); err != nil || len(*steps) > 0 {
		t.Errorf("made again: %v, %q", err, *steps)
	}
}

// TestDirectory: a directory has its name when it is whole. What a killed process left of
// it is in nobody's way, two processes at once are kept apart, and nothing that has
// the name is touched.
func TestDirectory(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sub", "x")
	leftover := filepath.Join(name+".part", "run", "header.json")
	if err := os.MkdirAll(filepath.Dir(leftover), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(leftover, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := Begin(name, ".part")
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(d.Path); len(left) > 0 {
		t.Errorf("what was left is still there: %v", left)
	}
	if _, err := Begin(name, ".part"); err == nil || err.Error() != "another process writes "+d.Path {
		t.Errorf("a second one: %v", err)
	}
	if err := os.WriteFile(filepath.Join(d.Path, "a"), []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := PublishAll(d); err != nil {
		t.Fatal(err)
	}
	d.Abandon()
	if b, _ := os.ReadFile(filepath.Join(name, "a")); string(b) != "a" {
		t.Errorf("published with %q", b)
	}
	if _, err := Begin(name, ".part"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over what is there: %v", err)
	}
	if names, _ := filepath.Glob(name + "*"); len(names) != 1 {
		t.Errorf("left behind: %q", names)
	}
	other, err := Begin(name+"2", ".part")
	if err != nil {
		t.Fatal(err)
	}
	other.Abandon()
	if names, _ := filepath.Glob(name + "*"); len(names) != 1 {
		t.Errorf("left behind: %q", names)
	}
}
