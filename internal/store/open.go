package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
	driver "modernc.org/sqlite"        // the driver of SQLite
	codes "modernc.org/sqlite/lib"

	"perflab/internal/durable"
	"perflab/internal/store/scan"
)

// Folder is the directory below a root that has what perflab keeps beside the results: the index, the
// marks and the trash.
const Folder = ".perflab"

// Names in it.
const (
	indexFile = "index.db"
	marksFile = "marks.jsonl"
	trashDir  = "trash"
	lockFile  = "index.lock"
)

// tree is a root as it is followed.
type tree struct {
	scan     *scan.Tree
	dir      string // absolute
	n        int64  // number of the root in the index
	readonly bool
	marks    markFile
}

// Open opens the index of directories, and makes it where there is none.
func Open(ctx context.Context, opt Options) (*Store, error) {
	if len(opt.Roots) == 0 && opt.DSN == "" {
		return nil, errors.New("an index needs a directory of results: give the one that perflab writes to")
	}
	s := &Store{index: index{opt: opt}, reducing: make(chan struct{}, 2)}
	if err := s.openRoots(); err != nil {
		s.Close()
		return nil, err
	}
	err := s.openNamed(ctx)
	if broken(err) && s.file != "" && os.WriteFile(s.file+damaged, nil, 0o644) == nil {
		err = errors.Join(s.closeIndex(), s.openNamed(ctx)) // put aside this time
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) openNamed(ctx context.Context) error {
	if err := s.openIndex(ctx); err != nil {
		return err
	}
	return s.nameRoots(ctx)
}

// Close lets go of the index. What was written is on the disk.
func (s *Store) Close() error {
	s.changed.close()
	var errs []error
	for _, t := range s.trees {
		errs = append(errs, t.scan.Close())
	}
	errs = append(errs, s.closeIndex())
	return errors.Join(errs...)
}

func (s *index) closeIndex() error {
	var errs []error
	if s.db != nil && s.db != s.write {
		errs = append(errs, s.db.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	s.db, s.write = nil, nil
	return errors.Join(errs...)
}

func (s *Store) openRoots() error {
	for _, dir := range s.opt.Roots {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return fmt.Errorf("find the directory %s: %w", dir, err)
		}
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			abs = real
		}
		if err := s.checkRoot(abs); err != nil {
			return err
		}
		t, err := scan.Open(abs)
		if err != nil {
			return err
		}
		s.trees = append(s.trees, &tree{scan: t, dir: abs, readonly: !writable(abs), marks: markFile{path: filepath.Join(abs, Folder, marksFile)}})
		if s.trees[len(s.trees)-1].readonly {
			s.info.ReadOnly = append(s.info.ReadOnly, abs)
		}
	}
	return nil
}

// checkRoot refuses a root that is inside of another: what is there would be found twice.
func (s *Store) checkRoot(abs string) error {
	for _, t := range s.trees {
		a, b := abs+string(filepath.Separator), t.dir+string(filepath.Separator)
		if strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
			return fmt.Errorf("of %s and %s one holds the other: give the outer one alone", t.dir, abs)
		}
	}
	return nil
}

// writable reports whether files can be made in a directory: the only way to know is to make one.
func writable(dir string) bool {
	folder := filepath.Join(dir, Folder)
	_, missing := os.Stat(folder)
	if os.MkdirAll(folder, 0o755) != nil {
		return false
	}
	f, err := os.CreateTemp(folder, ".writable-*")
	if err != nil {
		return false
	}
	f.Close()
	os.Remove(f.Name())
	if missing != nil {
		os.Remove(folder) // where something is kept in it, it is made again
	}
	return true
}

func (s *index) note(format string, args ...any) {
	s.info.Notes = append(s.info.Notes, fmt.Sprintf(format, args...))
}

func (s *Store) openIndex(ctx context.Context) error {
	if s.opt.DSN != "" {
		return s.openPostgres(ctx)
	}
	s.d = sqlite
	if s.opt.Dir != "" {
		return s.openFile(ctx, s.opt.Dir)
	}
	first := s.trees[0]
	dir := filepath.Join(first.dir, Folder)
	if !first.readonly {
		err := s.openFile(ctx, dir)
		if _, newer := errors.AsType[*NewerError](err); err == nil || newer || ctx.Err() != nil {
			return err
		}
		s.note("no index can be kept in %s: %v", dir, err)
	} else {
		s.note("%s cannot be written to: no tags, notes or removals there", first.dir)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		sum := sha256.New()
		for _, t := range s.trees {
			fmt.Fprintln(sum, t.dir)
		}
		cache = filepath.Join(cache, "perflab", "index-"+hex.EncodeToString(sum.Sum(nil)[:8]))
		if err := s.openFile(ctx, cache); err == nil {
			s.note("the index is in %s", s.info.Index)
			return nil
		}
	}
	s.note("the index is in memory, and made anew at each start")
	return s.openMemory(ctx)
}

func (s *index) openMemory(ctx context.Context) error {
	db, err := sql.Open("sqlite", ":memory:?_txlock=immediate")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1) // each would have an index of its own
	db.SetMaxIdleConns(1)
	s.db, s.write, s.info.Index = db, db, "memory"
	return s.migrate(ctx)
}

// readers is how many lists are made at once.
const readers = 4

// openFile opens the index in a directory. One that is no index, or whose pages are broken, is put
// aside and made anew: it has nothing that the directories do not have.
func (s *index) openFile(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of the index: %w", err)
	}
	file := filepath.Join(dir, indexFile)
	err := s.tryFile(ctx, file)
	if !broken(err) {
		return err
	}
	defer os.Remove(file + damaged)
	lock, lerr := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if lerr != nil {
		return errors.Join(err, lerr)
	}
	defer lock.Close()
	for held := false; !held; { // another process may put it aside at this moment
		if held, lerr = durable.Hold(lock); lerr != nil {
			return errors.Join(err, lerr)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if again := s.tryFile(ctx, file); !broken(again) {
		return again
	}
	aside := file + ".unreadable"
	if err := os.Rename(file, aside); err != nil {
		return fmt.Errorf("put the unreadable index aside: %w", err)
	}
	for _, more := range []string{"-wal", "-shm"} {
		_ = os.Remove(file + more) // of the file that was put aside
	}
	s.note("the index %s could not be read (%v): it was put aside as %s and is made anew; tags and notes are in other files and not lost", file, err, filepath.Base(aside))
	return s.tryFile(ctx, file)
}

func (s *index) tryFile(ctx context.Context, file string) error {
	name := (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String() +
		"?_txlock=immediate&_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-16000)"
	s.file = file
	var err error
	if s.write, err = sql.Open("sqlite", name); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if s.db, err = sql.Open("sqlite", name); err != nil {
		return errors.Join(err, s.closeIndex())
	}
	s.db.SetMaxOpenConns(readers)
	s.db.SetMaxIdleConns(readers)
	if err := s.migrate(ctx); err != nil {
		return errors.Join(err, s.closeIndex())
	}
	if _, err := os.Stat(file + damaged); err == nil {
		return errors.Join(errDamaged, s.closeIndex())
	}
	s.info.Index = file
	return nil
}

// damaged ends the name of a file beside an index some page of which could not be read: a look at every
// page would make each start slow, so who finds one leaves word.
const damaged = ".damaged"

var errDamaged = errors.New("some of its pages are damaged")

// broken reports whether a file is no index that can be used: other bytes, pages that contradict
// each other, or tables of something else.
func broken(err error) bool {
	if errors.Is(err, errForeign) || errors.Is(err, errDamaged) {
		return true
	}
	e, ok := errors.AsType[*driver.Error](err)
	return ok && (e.Code()&0xff == codes.SQLITE_NOTADB || e.Code()&0xff == codes.SQLITE_CORRUPT)
}

// connectTimeout is how long a server of a database is waited for.
const connectTimeout = 10 * time.Second

func (s *index) openPostgres(ctx context.Context) error {
	u, err := url.Parse(s.opt.DSN)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return errors.New("the address of the index is none of PostgreSQL: write it as postgres://user@host/database")
	}
	if s.opt.Host == "" {
		if s.opt.Host, err = os.Hostname(); err != nil {
			return fmt.Errorf("find the name of this machine: %w", err)
		}
	}
	shown := *u
	shown.RawQuery = ""
	s.d, s.info.Index, s.info.Shared = postgres, shown.Redacted(), true
	if s.write, err = sql.Open("pgx", s.opt.DSN); err != nil {
		return fmt.Errorf("open the index %s: %w", s.info.Index, s.bare(err))
	}
	s.write.SetMaxOpenConns(1)
	if s.db, err = sql.Open("pgx", s.opt.DSN); err != nil {
		return fmt.Errorf("open the index %s: %w", s.info.Index, s.bare(err))
	}
	s.db.SetMaxOpenConns(2 * readers)
	s.db.SetMaxIdleConns(readers)
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := s.migrate(ctx); err != nil {
		return fmt.Errorf("open the index %s: %w", s.info.Index, s.bare(err))
	}
	return nil
}

// bare takes the password out of an error, should the driver have put it in.
func (s *index) bare(err error) error {
	u, perr := url.Parse(s.opt.DSN)
	if perr != nil || u.User == nil {
		return err
	}
	word, ok := u.User.Password()
	if !ok || word == "" || !strings.Contains(err.Error(), word) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), word, "[redacted]"))
}

// nameRoots gives each root its number in the index, and forgets roots of this machine that are no more.
func (s *Store) nameRoots(ctx context.Context) error {
	gone, err := s.goneRoots(ctx)
	if err != nil {
		return err
	}
	w, err := s.begin(ctx)
	if err != nil {
		return fmt.Errorf("write to the index: %w", err)
	}
	defer w.tx.Rollback()
	dirty := len(gone) > 0
	for _, t := range s.trees {
		err := w.row(ctx, "SELECT n FROM roots WHERE host=? AND dir=?", s.opt.Host, t.dir).Scan(&t.n)
		if errors.Is(err, sql.ErrNoRows) {
			dirty = true
			if t.n, err = w.next(ctx, "roots", 1); err == nil {
				err = w.exec(ctx, "INSERT INTO roots (n, host, dir) VALUES (?,?,?)", t.n, s.opt.Host, t.dir)
			}
		}
		if err != nil {
			return fmt.Errorf("write to the index: %w", err)
		}
	}
	if !dirty {
		return nil
	}
	if err := w.forgetRoots(ctx, gone); err != nil {
		return fmt.Errorf("write to the index: %w", err)
	}
	return w.tx.Commit()
}

// goneRoots are roots of this machine whose directory is no more: that of an index that was moved
// together with its root, for one.
func (s *Store) goneRoots(ctx context.Context) (gone []int64, err error) {
	err = s.d.rows(ctx, s.db, "SELECT n, dir FROM roots WHERE host=?", []any{s.opt.Host}, func(r *sql.Rows) error {
		var n int64
		var dir string
		if err := r.Scan(&n, &dir); err != nil {
			return err
		}
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			gone = append(gone, n)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	return gone, nil
}

func (w *writer) forgetRoots(ctx context.Context, gone []int64) error {
	if len(gone) == 0 {
		return nil
	}
	if err := w.in(ctx, "DELETE FROM places WHERE root IN", gone); err != nil {
		return err
	}
	if err := w.in(ctx, "DELETE FROM roots WHERE n IN", gone); err != nil {
		return err
	}
	return w.sweep(ctx)
}
