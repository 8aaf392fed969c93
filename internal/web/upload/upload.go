// Package upload takes directories that clients push: it keeps what has come, wherever a client or this
// server is cut off, and makes a directory of it when all is there and right.
//
//	u, err := upload.Open(upload.Options{Root: "perflab-out", Folder: ".perflab/uploads"})
//	up, err := u.Begin(manifest)                     // which parts are missing
//	has, err := u.Write(up.ID, 0, offset, size, body) // as often as needed, also after a restart
//	at, facts, err := u.Commit(ctx, up.ID, isThere)  // the whole directory, below the root
//
// An upload is a directory of its own: manifest.json, and below tree/ the files, each as long as it has
// come. So there is nothing to be kept besides, and a server that is killed goes on with the next request.
// Any number of servers may share the root: a file is locked while somebody writes it.
//
// Invariants: nothing is written outside of the folder before the digest of every file is that of the
// manifest; then the directory appears whole, synced, under a name that nothing had. No file grows beyond
// the size that was said, and the disk keeps its reserve. What nobody goes on with is cleared away.
//
// Names: every name is taken that means the same on all systems and is not hidden; kinds of files are not
// chosen among, since a study keeps the logs and files of engines and hooks, of which there is no list.
// Whatever a file is, the server gives it to a browser as text or as an attachment. The directory as a
// whole has to be a run, a series, a study or an import that has ended.
//
// Deliberately absent: who may push, and whether an entry is there already.
package upload

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"perflab/internal/durable"
	"perflab/internal/push/manifest"
	"perflab/internal/web/guard/place"
)

// Options say where uploads go. Zero values are the defaults.
type Options struct {
	Root   string        // that finished directories appear in
	Folder string        // for uploads under way, below the root: on the same disk
	Disk   *place.Disk   // what keeps room on the disk, shared by all who write on it; needed
	Life   time.Duration // for which an upload is kept that nobody goes on with; 0: 7 days
	Most   int           // uploads under way at once; 0: 200
}

// Chunk is the most that one request brings.
const Chunk = 16 << 20

// Uploads are those below a root. Its methods may be called by several goroutines.
type Uploads struct {
	o     Options
	dir   string
	bytes atomic.Int64
	done  atomic.Int64

	mu    sync.Mutex
	known map[string]manifest.Manifest // some that were read: one of many files takes longer than a piece
}

// mostKnown is how many manifests are kept in memory.
const mostKnown = 16

// Names in the directory of an upload.
const (
	manifestFile = "manifest.json"
	treeDir      = "tree"
)

// NotFoundError says that there is no such upload.
type NotFoundError struct{ ID string }

func (e *NotFoundError) Error() string {
	return "there is no upload " + e.ID + ": begin it again with its manifest, whereupon it goes on where it was, or is there"
}

// BusyError says that somebody else sends the same file just now.
type BusyError struct{ What string }

func (e *BusyError) Error() string { return "another client sends " + e.What + " just now" }

// OffsetError says that a piece does not follow what is there.
type OffsetError struct{ Has, Asked int64 }

func (e *OffsetError) Error() string {
	return fmt.Sprintf("the file has %d bytes here, and what was sent begins at %d: go on at %d", e.Has, e.Asked, e.Has)
}

// RefusedError says why a directory is not taken.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

// DigestError says that files are not what the manifest says; they are to be sent again.
type DigestError struct{ Files []string }

func (e *DigestError) Error() string {
	return fmt.Sprintf("%s (of %d files that are wrong) is not what the manifest says: send it again, from its beginning", e.Files[0], len(e.Files))
}

// Open opens the uploads of a root, and clears away those whose time has run out.
func Open(o Options) (*Uploads, error) {
	o.Life = cmp.Or(o.Life, 7*24*time.Hour)
	o.Most = cmp.Or(o.Most, 200)
	u := &Uploads{o: o, dir: filepath.Join(o.Root, o.Folder), known: map[string]manifest.Manifest{}}
	return u, u.Expire(time.Now())
}

// Bytes are those that came since the server started, and Done the uploads that were finished.
func (u *Uploads) Bytes() int64 { return u.bytes.Load() }

// Done is how many uploads became directories.
func (u *Uploads) Done() int64 { return u.done.Load() }

// Open is how many uploads have begun and not ended.
func (u *Uploads) Open() int {
	entries, _ := os.ReadDir(u.dir) // none where there is no directory
	return len(entries)
}

// Expire clears away what nobody went on with for as long as uploads are kept.
func (u *Uploads) Expire(now time.Time) error {
	entries, err := os.ReadDir(u.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for uploads that were left: %w", err)
	}
	for _, e := range entries {
		at := filepath.Join(u.dir, e.Name())
		if now.Sub(touched(at)) < u.o.Life {
			continue
		}
		if err := u.drop(at); err != nil {
			return err
		}
	}
	return nil
}

// touched is when something last happened to an upload: its manifest is touched with every piece.
func touched(dir string) time.Time {
	info, err := os.Stat(filepath.Join(dir, manifestFile))
	if err != nil {
		if info, err = os.Stat(dir); err != nil {
			return time.Time{}
		}
	}
	return info.ModTime()
}

// drop removes an upload that nobody holds.
func (u *Uploads) drop(dir string) error {
	release, err := hold(filepath.Join(dir, manifestFile))
	if _, busy := errors.AsType[*BusyError](err); busy {
		return nil
	}
	if err == nil {
		release()
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("clear away an upload: %w", err)
	}
	return nil
}

// hold keeps others from a file until release is called.
func hold(file string) (release func(), err error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if ok, err := durable.Hold(f); err != nil || !ok {
		f.Close()
		return nil, cmp.Or(err, error(&BusyError{filepath.Base(file)}))
	}
	return func() { f.Close() }, nil
}

// Begin begins an upload, or says how far the one of the same files has come.
func (u *Uploads) Begin(m manifest.Manifest) (up manifest.Upload, err error) {
	if err := m.Validate(); err != nil {
		return up, err
	}
	// Whoever ends the same upload just now clears it away under our hands: it is begun anew then.
	for range 5 {
		if up, err = u.begin(m, m.ID()); err == nil || !gone(err) {
			break
		}
	}
	return up, err
}

func gone(err error) bool {
	_, none := errors.AsType[*NotFoundError](err)
	return none || errors.Is(err, fs.ErrNotExist)
}

func (u *Uploads) begin(m manifest.Manifest, id string) (manifest.Upload, error) {
	if _, err := u.manifest(id); err == nil {
		return u.Standing(id)
	}
	if err := u.room(m); err != nil {
		return manifest.Upload{}, err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return manifest.Upload{}, err
	}
	if err := durable.MkdirAll(filepath.Join(u.dir, id, treeDir)); err != nil {
		return manifest.Upload{}, fmt.Errorf("begin an upload: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(u.dir, id, manifestFile), b, 0o644); err != nil {
		return manifest.Upload{}, fmt.Errorf("begin an upload: %w", err)
	}
	return u.Standing(id)
}

// room says whether there is some for one more upload.
func (u *Uploads) room(m manifest.Manifest) error {
	if err := u.Expire(time.Now()); err != nil {
		return err
	}
	if n := u.Open(); n >= u.o.Most {
		return &RefusedError{fmt.Sprintf("%d uploads are under way, and no more are taken: let some of them end", n)}
	}
	if err := durable.MkdirAll(u.dir); err != nil {
		return fmt.Errorf("begin an upload: %w", err)
	}
	release, err := u.o.Disk.Reserve(u.dir, m.Bytes())
	if errors.Is(err, place.ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	release() // pieces reserve for themselves: an upload that is not gone on with needs no room
	return nil
}

// manifest reads that of an upload. What is in memory holds as long as there is the file, since the ID is
// of what it says.
func (u *Uploads) manifest(id string) (manifest.Manifest, error) {
	if len(id) != 32 || place.Check(id) != nil {
		return manifest.Manifest{}, &NotFoundError{id}
	}
	file := filepath.Join(u.dir, id, manifestFile)
	if _, err := os.Lstat(file); err != nil {
		u.remember(id, nil)
		if errors.Is(err, fs.ErrNotExist) {
			err = &NotFoundError{id}
		}
		return manifest.Manifest{}, err
	}
	u.mu.Lock()
	m, ok := u.known[id]
	u.mu.Unlock()
	if ok {
		return m, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return manifest.Manifest{}, err
	}
	if m, err = manifest.Parse(b); err != nil || m.ID() != id {
		return m, &NotFoundError{id} // of another version: it is begun anew
	}
	u.remember(id, &m)
	return m, nil
}

// remember keeps a manifest in memory in place of another; nil: it is gone.
func (u *Uploads) remember(id string, m *manifest.Manifest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.known, id)
	if m == nil {
		return
	}
	for other := range u.known {
		if len(u.known) < mostKnown {
			break
		}
		delete(u.known, other)
	}
	u.known[id] = *m
}

// Standing says how far an upload has come.
func (u *Uploads) Standing(id string) (manifest.Upload, error) {
	m, err := u.manifest(id)
	if err != nil {
		return manifest.Upload{}, err
	}
	out := manifest.Upload{ID: id, Missing: []manifest.Part{}, Chunk: Chunk, Expires: touched(filepath.Join(u.dir, id)).Add(u.o.Life).UTC().Truncate(time.Second)}
	for i, f := range m.Files {
		if has, ok := u.has(id, f); !ok || has < f.Size {
			out.Missing = append(out.Missing, manifest.Part{File: i, Offset: has})
		}
	}
	return out, nil
}

// has is how much of a file is there; ok is false where there is no file, not even an empty one.
func (u *Uploads) has(id string, f manifest.File) (n int64, ok bool) {
	info, err := os.Lstat(u.file(id, f))
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

func (u *Uploads) file(id string, f manifest.File) string {
	return filepath.Join(u.dir, id, treeDir, filepath.FromSlash(f.Path))
}

// Offset is how much of a file of an upload is there.
func (u *Uploads) Offset(id string, n int) (int64, error) {
	m, err := u.manifest(id)
	if err != nil {
		return 0, err
	}
	if n < 0 || n >= len(m.Files) {
		return 0, &NotFoundError{fmt.Sprintf("%s with a file %d", id, n)}
	}
	has, _ := u.has(id, m.Files[n])
	return has, nil
}

// Write adds a piece to a file and says how much of it is there then, also where the piece was cut off.
func (u *Uploads) Write(id string, n int, offset, size int64, r io.Reader) (has int64, err error) {
	m, err := u.manifest(id)
	if err != nil {
		return 0, err
	}
	if n < 0 || n >= len(m.Files) {
		return 0, &NotFoundError{fmt.Sprintf("%s with a file %d", id, n)}
	}
	f, tree := m.Files[n], filepath.Join(u.dir, id, treeDir)
	if err := os.MkdirAll(tree, 0o755); err != nil { // a server was killed when it had just made a directory of it
		return 0, err
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
		return 0, err
	}
	file, err := root.OpenFile(f.Path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if ok, err := durable.Hold(file); err != nil || !ok {
		has, _ = u.has(id, f)
		return has, cmp.Or(err, error(&BusyError{f.Path}))
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Join(u.dir, id, manifestFile), now, now) // else it ends sooner
	return u.append(file, f, offset, size, r)
}

// append writes a piece to the end of a file that is held.
func (u *Uploads) append(file *os.File, f manifest.File, offset, size int64, r io.Reader) (has int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	switch has = info.Size(); {
	case offset != has:
		return has, &OffsetError{has, offset}
	case size > f.Size-has:
		return has, &RefusedError{fmt.Sprintf("%s would have more than the %d bytes that the manifest says", f.Path, f.Size)}
	}
	release, err := u.o.Disk.Reserve(u.dir, size)
	if err == nil {
		defer release()
	} else if !errors.Is(err, place.ErrUnknown) {
		return has, err
	}
	if _, err := file.Seek(has, io.SeekStart); err != nil {
		return has, err
	}
	n, err := io.Copy(file, io.LimitReader(r, size))
	u.bytes.Add(n)
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	return has + n, cmp.Or(err, file.Close())
}

// Drop gives an upload up.
func (u *Uploads) Drop(id string) error {
	if _, err := u.manifest(id); err != nil {
		return err
	}
	return u.drop(filepath.Join(u.dir, id))
}
