package upload_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/durable"
	"perflab/internal/push/manifest"
	"perflab/internal/store/scan"
	"perflab/internal/test/storetest"
	"perflab/internal/web/guard/place"
	"perflab/internal/web/upload"
)

// of makes the manifest of a directory, with the contents of its files.
func of(t *testing.T, dir string) (manifest.Manifest, [][]byte) {
	t.Helper()
	m := manifest.Manifest{Schema: manifest.Schema, Name: filepath.Base(dir)}
	var contents [][]byte
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		sum := sha256.Sum256(b)
		m.Files = append(m.Files, manifest.File{Path: name, Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:])})
		contents = append(contents, b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, contents
}

func open(t *testing.T, o upload.Options) *upload.Uploads {
	t.Helper()
	o.Folder = ".perflab/uploads"
	if o.Disk == nil {
		o.Disk = &place.Disk{Keep: 1}
	}
	u, err := upload.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func begin(t *testing.T, u *upload.Uploads, m manifest.Manifest) manifest.Upload {
	t.Helper()
	up, err := u.Begin(m)
	if err != nil {
		t.Fatal(err)
	}
	return up
}

func isNew(scan.Facts) (bool, error) { return false, nil }

// sendAll sends what is missing.
func sendAll(t *testing.T, u *upload.Uploads, up manifest.Upload, contents [][]byte) {
	t.Helper()
	for _, p := range up.Missing {
		rest := contents[p.File][p.Offset:]
		if has, err := u.Write(up.ID, p.File, p.Offset, int64(len(rest)), bytes.NewReader(rest)); err != nil || has != int64(len(contents[p.File])) {
			t.Fatalf("file %d: %d bytes are there: %v", p.File, has, err)
		}
	}
}

// TestResume: wherever an upload is cut off, a server that is started anew goes on there, nothing
// appears before the end, and what appears is what was sent.
func TestResume(t *testing.T) {
	dir := storetest.Run{N: 1}.Write(t, t.TempDir(), "run")
	storetest.Mkdir(t, filepath.Join(dir, "logs"))
	storetest.WriteFile(t, filepath.Join(dir, "logs", "empty.log"), nil)
	m, contents := of(t, dir)
	root := t.TempDir()
	up := begin(t, open(t, upload.Options{Root: root}), m)
	for i, b := range contents {
		for at := 0; ; {
			u := open(t, upload.Options{Root: root}) // killed and started
			piece := b[at:min(len(b), at+len(b)/3+1)]
			cut := io.LimitReader(bytes.NewReader(piece), int64(len(piece)+1)/2)
			has, err := u.Write(up.ID, i, int64(at), int64(len(piece)), cut)
			if len(piece) > 1 && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s at %d: %v", m.Files[i].Path, at, err)
			}
			if at = int(has); at == len(b) {
				break
			}
			if _, err := os.Stat(filepath.Join(root, "run")); err == nil {
				t.Fatal("it is there before it is whole")
			}
			_, _, err = u.Commit(t.Context(), up.ID, isNew)
			if _, ok := errors.AsType[*upload.DigestError](err); !ok {
				t.Fatalf("commit of a half: %v", err)
			}
			if has, err := u.Offset(up.ID, i); err != nil || has != int64(at) {
				t.Fatalf("a commit too early took what had come: %d, %v", has, err)
			}
		}
	}
	u := open(t, upload.Options{Root: root})
	at, facts, err := u.Commit(t.Context(), up.ID, isNew)
	if err != nil || at != "run" || facts.Kind != scan.Run {
		t.Fatalf("%q %v: %v", at, facts.Kind, err)
	}
	again, other := of(t, filepath.Join(root, at))
	if again.ID() != m.ID() || !slices.EqualFunc(contents, other, bytes.Equal) {
		t.Error("it is not what was sent")
	}
	if u.Open() != 0 {
		t.Error("something of the upload is left")
	}
}

func TestRefused(t *testing.T) {
	dir := storetest.Run{N: 1}.Write(t, t.TempDir(), "run")
	m, contents := of(t, dir)
	u := open(t, upload.Options{Root: t.TempDir()})
	up := begin(t, u, m)
	first := contents[0]
	write := func(n int, offset, size int64, b []byte) error {
		_, err := u.Write(up.ID, n, offset, size, bytes.NewReader(b))
		return err
	}
	if err := write(0, 5, 1, first); !is[*upload.OffsetError](err) {
		t.Errorf("a gap: %v", err)
	}
	if err := write(0, 0, int64(len(first)+1), append(slices.Clone(first), 'x')); !is[*upload.RefusedError](err) {
		t.Errorf("too long: %v", err)
	}
	if err := write(len(m.Files), 0, 0, nil); !is[*upload.NotFoundError](err) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := write(-1, 0, 0, nil); !is[*upload.NotFoundError](err) {
		t.Errorf("a file below 0: %v", err)
	}
	for _, id := range []string{"", "..", "../../etc", strings.Repeat("0", 32), strings.Repeat("/", 32)} {
		if _, err := u.Standing(id); !is[*upload.NotFoundError](err) {
			t.Errorf("upload %q: %v", id, err)
		}
	}
	bad := m
	bad.Files = append(slices.Clone(m.Files), manifest.File{Path: "../x", SHA256: m.Files[0].SHA256})
	if _, err := u.Begin(bad); err == nil {
		t.Error("a file outside was taken")
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// TestDigest: a file that is not what the manifest says is sent again, and the others are not.
func TestDigest(t *testing.T) {
	dir := storetest.Run{N: 1}.Write(t, t.TempDir(), "run")
	m, contents := of(t, dir)
	root := t.TempDir()
	u := open(t, upload.Options{Root: root})
	up := begin(t, u, m)
	wrong := slices.Clone(contents)
	wrong[1] = bytes.Repeat([]byte("x"), len(wrong[1]))
	sendAll(t, u, up, wrong)
	_, _, err := u.Commit(t.Context(), up.ID, isNew)
	e, ok := errors.AsType[*upload.DigestError](err)
	if !ok || !slices.Equal(e.Files, []string{m.Files[1].Path}) {
		t.Fatalf("got %v", err)
	}
	up = begin(t, u, m)
	if len(up.Missing) != 1 || up.Missing[0] != (manifest.Part{File: 1}) {
		t.Fatalf("missing %v", up.Missing)
	}
	sendAll(t, u, up, contents)
	if _, _, err := u.Commit(t.Context(), up.ID, isNew); err != nil {
		t.Fatal(err)
	}
}

// TestKinds: what is no directory of results, or has not ended, is not taken.
func TestKinds(t *testing.T) {
	src := t.TempDir()
	other := filepath.Join(src, "other")
	storetest.Mkdir(t, other)
	storetest.WriteFile(t, filepath.Join(other, "notes.txt"), []byte("x"))
	stopped := filepath.Join(src, "stopped")
	storetest.Mkdir(t, stopped)
	storetest.WriteFile(t, filepath.Join(stopped, "journal.jsonl"), []byte(`{"seq":1,"kind":"study","study":{"hash":"1"}}`+"\n"))
	for _, test := range []struct{ dir, want string }{
		{storetest.Run{N: 1}.Write(t, src, "run"), ""},
		{storetest.Study(t, src, "study", 2, 2), ""},
		{storetest.Run{N: 3, Partial: true}.Write(t, src, "early"), ""},
		{other, "it is no run, series, study or import"},
		{stopped, "the study was stopped before its end"},
	} {
		m, contents := of(t, test.dir)
		root := t.TempDir()
		u := open(t, upload.Options{Root: root})
		up := begin(t, u, m)
		sendAll(t, u, up, contents)
		at, _, err := u.Commit(t.Context(), up.ID, isNew)
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", test.dir, err)
			}
			continue
		}
		if !is[*upload.RefusedError](err) || !strings.Contains(err.Error(), test.want) || at != "" {
			t.Errorf("%s: %v", test.dir, err)
		}
		if _, err := os.Stat(filepath.Join(root, m.Name)); err == nil {
			t.Errorf("%s is there all the same", test.dir)
		}
	}
}

// TestNames: a name that is taken gets a number, also where what has it is empty.
func TestNames(t *testing.T) {
	root := t.TempDir()
	storetest.Mkdir(t, filepath.Join(root, "run"))
	storetest.Mkdir(t, filepath.Join(root, "run-2"))
	m, contents := of(t, storetest.Run{N: 1}.Write(t, t.TempDir(), "run"))
	u := open(t, upload.Options{Root: root})
	up := begin(t, u, m)
	sendAll(t, u, up, contents)
	if at, _, err := u.Commit(t.Context(), up.ID, isNew); err != nil || at != "run-3" {
		t.Errorf("%q: %v", at, err)
	}
}

// TestThere: what the laboratory has does not come twice.
func TestThere(t *testing.T) {
	root := t.TempDir()
	m, contents := of(t, storetest.Run{N: 1}.Write(t, t.TempDir(), "run"))
	u := open(t, upload.Options{Root: root})
	up := begin(t, u, m)
	sendAll(t, u, up, contents)
	at, _, err := u.Commit(t.Context(), up.ID, func(f scan.Facts) (bool, error) { return f.ID != "", nil })
	if err != nil || at != "" || u.Open() != 0 {
		t.Errorf("%q, %d uploads are left: %v", at, u.Open(), err)
	}
	if _, _, err := u.Commit(t.Context(), up.ID, isNew); !is[*upload.NotFoundError](err) {
		t.Errorf("once more: %v", err)
	}
}

// TestReserve: nothing is taken that would fill the disk, neither at first nor when it comes.
func TestReserve(t *testing.T) {
	root := t.TempDir()
	if _, err := (&place.Disk{}).Reserve(root, 0); errors.Is(err, place.ErrUnknown) {
		t.Skip("this system does not tell how much of a disk is free")
	}
	m, contents := of(t, storetest.Run{N: 1}.Write(t, t.TempDir(), "run"))
	full := open(t, upload.Options{Root: root, Disk: &place.Disk{Keep: 1 << 60}})
	if _, err := full.Begin(m); !is[*place.FullError](err) {
		t.Errorf("begin: %v", err)
	}
	up := begin(t, open(t, upload.Options{Root: root}), m)
	if _, err := full.Write(up.ID, 0, 0, int64(len(contents[0])), bytes.NewReader(contents[0])); !is[*place.FullError](err) {
		t.Errorf("write: %v", err)
	}
	large := m
	large.Files = slices.Clone(m.Files)
	large.Files[0].Size = manifest.MostBytes - 1<<30
	if _, err := open(t, upload.Options{Root: root}).Begin(large); !is[*place.FullError](err) {
		t.Errorf("a terabyte: %v", err)
	}
}

// TestExpire: what nobody goes on with is cleared away, and what is sent to, or written just now, is not.
func TestExpire(t *testing.T) {
	root := t.TempDir()
	m, contents := of(t, storetest.Run{N: 1}.Write(t, t.TempDir(), "run"))
	u := open(t, upload.Options{Root: root, Life: time.Hour, Most: 1})
	up := begin(t, u, m)
	file := filepath.Join(root, ".perflab", "uploads", up.ID, "manifest.json")
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write(up.ID, 0, 0, 1, bytes.NewReader(contents[0])); err != nil {
		t.Fatal(err)
	}
	if err := u.Expire(time.Now()); err != nil || u.Open() != 1 {
		t.Fatalf("one that goes on: %d are left: %v", u.Open(), err)
	}
	second, _ := of(t, storetest.Run{N: 2}.Write(t, t.TempDir(), "run"))
	if _, err := u.Begin(second); !is[*upload.RefusedError](err) {
		t.Errorf("one too many: %v", err)
	}
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := durable.Hold(held); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := u.Expire(time.Now()); err != nil || u.Open() != 1 {
		t.Errorf("one that is committed: %d are left: %v", u.Open(), err)
	}
	if _, _, err := u.Commit(context.Background(), up.ID, isNew); !is[*upload.BusyError](err) {
		t.Errorf("two commits at once: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := u.Expire(time.Now()); err != nil || u.Open() != 0 {
		t.Errorf("%d are left: %v", u.Open(), err)
	}
}

// TestTwo: two clients that push the same share one upload; a file is written by one of them.
func TestTwo(t *testing.T) {
	root := t.TempDir()
	m, contents := of(t, storetest.Run{N: 1}.Write(t, t.TempDir(), "run"))
	a, b := open(t, upload.Options{Root: root}), open(t, upload.Options{Root: root})
	up := begin(t, a, m)
	m.Name = "another"
	if other := begin(t, b, m); other.ID != up.ID {
		t.Fatalf("%s and %s", up.ID, other.ID)
	}
	r, w := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := a.Write(up.ID, 0, 0, int64(len(contents[0])), r)
		done <- err
	}()
	if _, err := w.Write(contents[0][:1]); err != nil { // a has the file now
		t.Fatal(err)
	}
	if _, err := b.Write(up.ID, 0, 0, 1, bytes.NewReader(contents[0])); !is[*upload.BusyError](err) {
		t.Errorf("the second: %v", err)
	}
	if _, err := w.Write(contents[0][1:]); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	standing, err := b.Standing(up.ID)
	if err != nil {
		t.Fatal(err)
	}
	sendAll(t, b, standing, contents)
	if at, _, err := b.Commit(t.Context(), up.ID, isNew); err != nil || at != "run" {
		t.Errorf("%q: %v", at, err)
	}
}
