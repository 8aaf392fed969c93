package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"perflab/internal/store/scan"
)

// placeKey names a place in the index.
type placeKey struct {
	root int64
	path string
}

func (k placeKey) compare(o placeKey) int {
	return cmp.Or(cmp.Compare(k.root, o.root), cmp.Compare(k.path, o.path))
}

// placed is what the index has of a place.
type placed struct {
	entry  int64
	id     string
	parent string // path
	stamp  string
}

// hashKey tells the calls of a run from others.
type hashKey struct {
	early string
	calls scan.CallsFile
}

// known is what the index has of our roots, as of one version of it.
type known struct {
	version int64
	places  map[placeKey]placed
	byID    map[string][]placeKey
	hashed  map[hashKey]string // IDs of runs whose calls were read
}

// found is a place whose files were read.
type found struct {
	key    placeKey
	parent string
	stamp  string
	facts  scan.Facts
}

// following is one Sync.
type following struct {
	*Store
	*known
	there map[placeKey]scan.Place
	trees map[int64]*tree
	out   Changes
}

// Sync follows the directories: what is new or changed is read, what is gone is forgotten. Where
// nothing changed it costs a few system calls a directory.
func (s *Store) Sync(ctx context.Context) (Changes, error) {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	f := &following{Store: s, there: map[placeKey]scan.Place{}, trees: map[int64]*tree{}}
	if err := f.load(ctx); err != nil {
		return f.out, s.failed("read the index", err)
	}
	if err := f.walk(ctx); err != nil {
		return f.out, err
	}
	err := s.loadMarks(ctx)
	if err != nil {
		return f.out, err
	}
	if err := f.follow(ctx); err != nil {
		s.last = nil // what the index has is read again
		return f.out, s.failed("write to the index", err)
	}
	if f.out.Version, err = s.applyMarks(ctx); err != nil {
		return f.out, s.failed("write to the index", err)
	}
	if f.version == f.out.Version || f.out.Any() {
		s.last = f.known
	}
	s.changed.tell(f.out.Version)
	return f.out, nil
}

// failed says what was done when a database failed.
func (s *index) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	if broken(err) && s.info.Index == s.file && os.WriteFile(s.file+damaged, nil, 0o644) == nil {
		return fmt.Errorf("%s %s: %w: start perflab again, which makes it anew", doing, s.file, err)
	}
	if _, said := errors.AsType[*UnreachableError](err); said {
		return err
	}
	if s.d.name == postgres.name && unreachable(err) {
		return &UnreachableError{s.info.Index, s.bare(err)}
	}
	return fmt.Errorf("%s %s: %w", doing, s.info.Index, s.bare(err))
}

// walk looks through all roots.
func (f *following) walk(ctx context.Context) error {
	now := time.Now()
	for _, t := range f.Store.trees {
		f.trees[t.n] = t
		places, err := t.scan.Walk(ctx, now)
		if err != nil {
			return err
		}
		for _, p := range places {
			f.there[placeKey{t.n, p.Path}] = p
			if p.Fault != "" {
				f.out.Faults++
			}
		}
	}
	f.out.Places = len(f.there)
	return nil
}

// load reads what the index has of our roots, unless it is what it was.
func (f *following) load(ctx context.Context) error {
	version, err := f.Version(ctx)
	if err != nil {
		return err
	}
	if f.known = f.Store.last; f.known != nil && f.version == version {
		return nil
	}
	f.known = &known{version, map[placeKey]placed{}, map[string][]placeKey{}, map[hashKey]string{}}
	roots := f.roots()
	if len(roots) == 0 {
		return nil
	}
	return f.d.rows(ctx, f.db, "SELECT p.root, p.path, p.entry, p.parent, p.stamp, p.calls_size, p.calls_mod, e.id, e.early FROM places p JOIN entries e ON e.n=p.entry WHERE p.root IN ("+placeholders(len(roots))+")", roots,
		func(r *sql.Rows) error {
			var k placeKey
			var p placed
			var h hashKey
			if err := r.Scan(&k.root, &k.path, &p.entry, &p.parent, &p.stamp, &h.calls.Size, &h.calls.Mod, &p.id, &h.early); err != nil {
				return err
			}
			k.path, p.parent = decodePath(k.path), decodePath(p.parent)
			f.put(k, p, h)
			return nil
		})
}

func (s *Store) roots() (out []any) {
	for _, t := range s.trees {
		out = append(out, t.n)
	}
	return out
}

func (k *known) put(key placeKey, p placed, h hashKey) {
	k.drop(key)
	k.places[key] = p
	k.byID[p.id] = append(k.byID[p.id], key)
	if h.calls.Size > 0 {
		k.hashed[h] = p.id
	}
}

func (k *known) drop(key placeKey) {
	old, ok := k.places[key]
	if !ok {
		return
	}
	delete(k.places, key)
	if k.byID[old.id] = slices.DeleteFunc(k.byID[old.id], func(o placeKey) bool { return o == key }); len(k.byID[old.id]) == 0 {
		delete(k.byID, old.id)
	}
}

// batch is how many places are read before they are written: a kill loses no more, and others get
// their turn.
const batch = 500

// follow writes what differs between the index and the directories.
func (f *following) follow(ctx context.Context) error {
	var stale, gone []placeKey
	for k, p := range f.there {
		if old, ok := f.places[k]; !ok || old.stamp != p.Stamp {
			stale = append(stale, k)
		}
	}
	for k := range f.places {
		if _, ok := f.there[k]; !ok {
			gone = append(gone, k)
		}
	}
	slices.SortFunc(stale, placeKey.compare) // parents before their parts
	slices.SortFunc(gone, placeKey.compare)
	for part := range slices.Chunk(stale, batch) {
		read, err := f.read(ctx, part)
		if err != nil {
			return err
		}
		if err := f.transact(ctx, read, nil); err != nil {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return f.transact(ctx, nil, gone)
}

// read reads the files of places, on every core.
func (f *following) read(ctx context.Context, keys []placeKey) ([]found, error) {
	out := make([]found, len(keys))
	var wait sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, k := range keys {
		if ctx.Err() != nil {
			break
		}
		free <- struct{}{}
		wait.Go(func() {
			out[i] = f.readPlace(k)
			<-free
		})
	}
	wait.Wait()
	return out, context.Cause(ctx)
}

func (f *following) readPlace(k placeKey) found {
	p := f.there[k]
	facts := f.trees[k.root].scan.Read(p, func(early string, c scan.CallsFile) string { return f.hashed[hashKey{early, c}] })
	return found{k, p.Parent, p.Stamp, facts}
}

// transact writes places that were read and forgets those that are gone, with all that follows for
// entries, in one transaction.
func (f *following) transact(ctx context.Context, read []found, gone []placeKey) error {
	w, err := f.begin(ctx)
	if err != nil {
		return err
	}
	defer w.tx.Rollback() // does nothing after Commit
	lost, err := w.lost(ctx, read, gone)
	if err != nil {
		return err
	}
	if err := f.keepPlaces(ctx, w, read); err != nil {
		return err
	}
	if err := f.forgetPlaces(ctx, w, gone); err != nil {
		return err
	}
	put := f.firsts(read)
	for id := range lost { // those that go on elsewhere are read there
		if at, ok := f.best(id); ok {
			put[id] = f.readPlace(at)
		} else {
			delete(put, id)
		}
	}
	changed, err := f.putEntries(ctx, w, put)
	if err != nil {
		return err
	}
	removed, err := w.forgetEntries(ctx, lost)
	if err != nil {
		return err
	}
	f.out.Removed = append(f.out.Removed, removed...)
	if !changed && len(removed) == 0 && len(gone) == 0 {
		w.version--
		if err := w.exec(ctx, "UPDATE meta SET value=value-1 WHERE name='version'"); err != nil { // nobody sees a difference
			return err
		}
	}
	if err := w.tx.Commit(); err != nil {
		return err
	}
	f.version = w.version
	return nil
}

// keepPlaces writes places, and gives entries that are new their numbers.
func (f *following) keepPlaces(ctx context.Context, w *writer, read []found) error {
	var wanted []string
	for _, x := range read {
		wanted = append(wanted, x.facts.ID)
	}
	numbers, err := w.numbers(ctx, wanted)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, x := range read {
		n, ok := numbers[x.facts.ID]
		if !ok {
			if n, err = w.next(ctx, "entries", 1); err != nil {
				return err
			}
			numbers[x.facts.ID] = n
		}
		c := x.facts.Calls
		f.put(x.key, placed{n, x.facts.ID, x.parent, x.stamp}, hashKey{x.facts.Early, c})
		rows = append(rows, []any{x.key.root, encodePath(x.key.path), n, string(x.facts.Kind), encodePath(x.parent), x.stamp, c.Size, c.Mod})
	}
	return w.insert(ctx, "places (root, path, entry, kind, parent, stamp, calls_size, calls_mod)",
		" ON CONFLICT (root, path) DO UPDATE SET entry=excluded.entry, kind=excluded.kind, parent=excluded.parent, stamp=excluded.stamp, calls_size=excluded.calls_size, calls_mod=excluded.calls_mod", 8, rows)
}

// lost are the entries, with their numbers, that a place was of and is no more. The index itself says so:
// another server may have read a place since this one looked, when less or more of it was written.
func (w *writer) lost(ctx context.Context, read []found, gone []placeKey) (map[string]int64, error) {
	now, paths := map[placeKey]string{}, map[int64][]any{}
	put := func(k placeKey, id string) {
		now[k] = id
		paths[k.root] = append(paths[k.root], encodePath(k.path))
	}
	for _, x := range read {
		put(x.key, x.facts.ID)
	}
	for _, k := range gone {
		put(k, "")
	}
	out := map[string]int64{}
	for root, all := range paths {
		for part := range slices.Chunk(all, batch) {
			err := w.d.rows(ctx, w.tx, "SELECT p.path, e.id, e.n FROM places p JOIN entries e ON e.n=p.entry WHERE p.root=? AND p.path IN ("+placeholders(len(part))+")", append([]any{root}, part...), func(r *sql.Rows) error {
				var path, id string
				var n int64
				err := r.Scan(&path, &id, &n)
				if now[placeKey{root, decodePath(path)}] != id {
					out[id] = n
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (f *following) forgetPlaces(ctx context.Context, w *writer, gone []placeKey) error {
	for _, k := range gone {
		f.drop(k)
		if err := w.exec(ctx, "DELETE FROM places WHERE root=? AND path=?", k.root, encodePath(k.path)); err != nil {
			return err
		}
	}
	return nil
}

// best is the place that the facts of an entry are taken from: one within a study before one without,
// then the first by root and path.
func (f *following) best(id string) (best placeKey, ok bool) {
	for _, k := range f.byID[id] {
		if _, there := f.there[k]; !there {
			continue
		}
		inside, bestInside := f.places[k].parent != "", f.places[best].parent != ""
		if !ok || inside && !bestInside || inside == bestInside && k.compare(best) < 0 {
			best, ok = k, true
		}
	}
	return best, ok
}

// firsts are the places that were read and are those of their entries' facts, by ID.
func (f *following) firsts(read []found) map[string]found {
	out := map[string]found{}
	for _, x := range read {
		if at, ok := f.best(x.facts.ID); ok && at == x.key {
			out[x.facts.ID] = x
		}
	}
	return out
}

// numbers are those of entries that the index has, by ID.
func (w *writer) numbers(ctx context.Context, ids []string) (map[string]int64, error) {
	out := map[string]int64{}
	for part := range slices.Chunk(ids, 500) {
		err := w.d.rows(ctx, w.tx, "SELECT id, n FROM entries WHERE id IN ("+placeholders(len(part))+")", values(part), func(r *sql.Rows) error {
			var id string
			var n int64
			err := r.Scan(&id, &n)
			out[id] = n
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
