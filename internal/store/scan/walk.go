package scan

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/durable"
	"perflab/internal/rundir"
)

// Tree is a root whose directories are looked through again and again. It remembers what was
// in them, so that a look that finds nothing new costs a few system calls a directory.
type Tree struct {
	Dir string // the root's path

	root  *os.Root
	known map[string]*listing
	seen  int // directories of this walk
	now   time.Time
	out   []Place

	mu    sync.Mutex
	parts map[string]*parts // of studies and series, by path
}

// Place is a directory that holds something.
type Place struct {
	Path   string // below the root, with slashes; "." is the root itself
	Kind   Kind
	Parent string // path of the study, series or import that it is a part of; "": none
	Stamp  string // changes when its files do, or what its parent says of it
	Fault  string // why it cannot be opened

	origin string // stamp of what the parent says of it
}

// listing is what a directory held when it was read.
type listing struct {
	mod   time.Time
	dirs  []string
	files map[string]bool
	err   error
}

// Bounds of a walk. A root is a folder of results: who gives a whole disk is told.
const (
	mostDepth       = 24
	MostDirectories = 400_000
)

// coarse is how old a time stamp must be to be trusted: file systems count in ticks of up to two
// seconds, and what changed twice in one has one stamp.
const coarse = 3 * time.Second

// Partial runs and imports under way are named so.
const (
	partialSuffix   = ".tmp"
	importingSuffix = ".importing"
)

// Open opens a root.
func Open(dir string) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the directory of results %s: %w", dir, err)
	}
	return &Tree{Dir: dir, root: root, known: map[string]*listing{}, parts: map[string]*parts{}}, nil
}

// Close lets go of the root.
func (t *Tree) Close() error { return t.root.Close() }

// Walk finds all places below the root, parents before their parts. now is the time by which
// stamps are too new to be trusted.
func (t *Tree) Walk(ctx context.Context, now time.Time) ([]Place, error) {
	t.seen, t.now, t.out = 0, now, nil
	alive := make(map[string]*listing, len(t.known))
	err := t.walk(ctx, ".", above{}, 0, alive)
	if err == nil {
		t.known = alive // those that are gone are forgotten
	}
	return t.out, err
}

// above is the parent of what is found below it.
type above struct{ path, stamp string }

func (t *Tree) walk(ctx context.Context, dir string, in above, depth int, alive map[string]*listing) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	runtime.Gosched() // thousands of system calls are in no hurry: whoever waits for a page goes first
	if t.seen++; t.seen > MostDirectories {
		return fmt.Errorf("%s has more than %d directories: give the one that perflab writes to", t.Dir, MostDirectories)
	}
	l := t.list(dir)
	alive[dir] = l
	if l.err != nil {
		if !errors.Is(l.err, fs.ErrNotExist) { // else it was removed just now
			t.out = append(t.out, Place{Path: dir, Kind: Folder, Fault: reason(l.err), Stamp: "unreadable"})
		}
		return nil
	}
	kind, below := t.place(dir, l, in)
	if kind == Run || kind == Site {
		return nil
	}
	if depth == mostDepth {
		return nil
	}
	for _, name := range l.dirs {
		if err := t.walk(ctx, path.Join(dir, name), below, depth+1, alive); err != nil {
			return err
		}
	}
	return nil
}

// list reads the names in a directory, or takes those of the walk before where it has not
// changed since.
func (t *Tree) list(dir string) *listing {
	info, err := t.lstat(dir)
	if err != nil {
		return &listing{err: err}
	}
	if old := t.known[dir]; old != nil && old.err == nil && old.mod.Equal(info.ModTime()) {
		return old
	}
	l := &listing{files: map[string]bool{}}
	if !t.recent(info.ModTime()) {
		l.mod = info.ModTime() // else it is read again
	}
	entries, err := t.names(dir)
	if err != nil {
		return &listing{err: err}
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case e.Type().IsRegular():
			if slices.Contains(telling, name) {
				l.files[name] = true
			}
		case e.IsDir() && !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, importingSuffix):
			l.dirs = append(l.dirs, name)
		}
	}
	slices.Sort(l.dirs)
	return l
}

// names reads a directory as lstat looks at a file: by its path.
func (t *Tree) names(dir string) ([]fs.DirEntry, error) {
	f, err := os.Open(filepath.Join(t.Dir, filepath.FromSlash(dir)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

func (t *Tree) recent(mod time.Time) bool { return t.now.Sub(mod).Abs() < coarse }

// Names of files that say what a directory holds.
const (
	headerFile  = "header.json"
	clientFile  = "client.json"
	summaryFile = "summary.json"
	importFile  = "import.json"
	siteFile    = "site.json"
	indexFile   = "index.html"
	sweepFile   = "sweep.json"
	repeatFile  = "repeat.json"
)

// telling are the files that a kind is told by, and those whose change is one of the entry.
var telling = []string{
	headerFile, clientFile, summaryFile, rundir.CallsFile, rundir.TelemetryFile,
	rundir.StudyFile, rundir.JournalFile, rundir.UnderwayFile, importFile, siteFile, indexFile, sweepFile, repeatFile,
}

// kindOf says what a directory with these files holds; "" for nothing.
func kindOf(files map[string]bool) (Kind, []string) {
	switch {
	case files[importFile]:
		return Import, []string{importFile}
	case files[rundir.JournalFile], files[rundir.StudyFile]:
		return Study, []string{rundir.StudyFile, rundir.JournalFile, rundir.UnderwayFile}
	case files[sweepFile]:
		return Series, []string{sweepFile}
	case files[repeatFile]:
		return Series, []string{repeatFile}
	case files[headerFile] && (files[rundir.CallsFile] || files[summaryFile]):
		return Run, []string{headerFile, clientFile, summaryFile, rundir.CallsFile}
	case files[siteFile] && files[indexFile]:
		return Site, []string{siteFile}
	}
	return "", nil
}

// place adds the directory where it holds something, and returns what is the parent of what is
// below it.
func (t *Tree) place(dir string, l *listing, in above) (Kind, above) {
	kind, files := kindOf(l.files)
	if kind == "" {
		return "", in
	}
	p := Place{Path: dir, Kind: kind, Parent: in.path, origin: in.stamp}
	p.Stamp = t.stamp(dir, files, in, t.held(dir, kind))
	t.out = append(t.out, p)
	if kind == Run || kind == Site {
		return kind, in
	}
	return kind, above{dir, t.stamp(dir, files[:1], above{}, false)}
}

// held reports whether a process is at work on the directory.
func (t *Tree) held(dir string, kind Kind) bool {
	name := dir
	switch {
	case kind == Study:
		name = path.Join(dir, rundir.JournalFile)
	case kind == Run && strings.HasSuffix(dir, partialSuffix):
		name = path.Join(dir, rundir.CallsFile)
	case kind != Series:
		return false
	}
	f, err := t.root.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return durable.Locked(f)
}

// Held reports whether a process is at work on a place.
func (t *Tree) Held(p Place) bool { return t.held(p.Path, p.Kind) }

// stamp is a digest of when files changed and how long they are, and of what else the facts of
// their directory follow from.
func (t *Tree) stamp(dir string, files []string, in above, held bool) string {
	b := make([]byte, 0, 512)
	b = fmt.Appendln(b, format, in.path, in.stamp, held)
	for _, name := range files {
		info, err := t.lstat(path.Join(dir, name))
		if err != nil {
			continue
		}
		b = append(b, name...)
		b = binary.LittleEndian.AppendUint64(b, uint64(info.Size()))
		b = binary.LittleEndian.AppendUint64(b, uint64(info.ModTime().UnixNano()))
		if t.recent(info.ModTime()) {
			b = binary.LittleEndian.AppendUint64(b, uint64(t.now.UnixNano()))
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}

// lstat tells of a file without opening it, by one system call where a Root takes some for each
// directory above. A link that somebody puts on the way since the walk came by is followed, and
// shows names and sizes at most: what files hold is read through the Root.
func (t *Tree) lstat(at string) (fs.FileInfo, error) {
	return os.Lstat(filepath.Join(t.Dir, filepath.FromSlash(at)))
}

// format is part of every stamp: a version of perflab that reads more of a directory has another
// one, and reads all of them again.
const format = 1

// reason is an error without the path that the reader knows.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return cmp.Or(p.Err.Error(), err.Error())
	}
	return err.Error()
}
