package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"perflab/internal/store/mark"
	"perflab/internal/store/scan"
)

// markFile is the file of marks of a root, as it was read.
type markFile struct {
	path    string
	size    int64
	mod     time.Time
	records []mark.Record
	skipped int
}

// marked are the marks of all roots.
type marked struct {
	of      map[string][]mark.Record // by ID
	applied bool                     // the index has them
}

// loadMarks reads the files of marks that changed.
func (s *Store) loadMarks(ctx context.Context) error {
	changed := s.marks.of == nil
	for _, t := range s.trees {
		info, err := os.Stat(t.marks.path)
		if errors.Is(err, os.ErrNotExist) {
			changed = changed || t.marks.size > 0
			t.marks = markFile{path: t.marks.path}
			continue
		}
		if err != nil {
			return fmt.Errorf("read the marks: %w", err)
		}
		if info.Size() == t.marks.size && info.ModTime().Equal(t.marks.mod) {
			continue
		}
		log, err := mark.Read(t.marks.path)
		if err != nil {
			return err
		}
		t.marks = markFile{t.marks.path, info.Size(), info.ModTime(), log.Records, log.Skipped}
		changed = true
	}
	if !changed {
		return nil
	}
	s.marks = marked{of: map[string][]mark.Record{}}
	for _, t := range s.trees {
		for _, r := range t.marks.records {
			s.marks.of[r.Entry] = append(s.marks.of[r.Entry], r)
		}
	}
	return nil
}

// marksOf are those of an entry, made under either of its IDs.
func (s *Store) marksOf(id, early string) mark.Marks {
	records := s.marks.of[id]
	if early != "" && early != id {
		records = slices.Concat(s.marks.of[early], records)
	}
	return mark.Of(records)
}

// applyMarks writes the marks of entries whose rows have others, and returns the version of the
// index.
func (s *Store) applyMarks(ctx context.Context) (int64, error) {
	if s.marks.applied {
		return s.Version(ctx)
	}
	differ, err := s.differently(ctx)
	if err != nil {
		return 0, err
	}
	if len(differ) > 0 {
		if err := s.remark(ctx, differ); err != nil {
			return 0, err
		}
	}
	s.marks.applied = true
	return s.Version(ctx)
}

// differently are the entries of our roots whose rows have other marks than the files: among those that
// have any, in their row or in a file.
func (s *Store) differently(ctx context.Context) (rows []*row, err error) {
	roots := s.roots()
	if len(roots) == 0 {
		return nil, nil
	}
	seen := map[int64]bool{}
	look := func(which string, args []any) error {
		return s.d.rows(ctx, s.db, "SELECT e.n, e.id, e.early, e.parent, d.marks FROM entries e JOIN documents d ON d.entry=e.n WHERE "+which+
			" AND EXISTS (SELECT 1 FROM places p WHERE p.entry=e.n AND p.root IN ("+placeholders(len(roots))+"))", slices.Concat(args, roots),
			func(r *sql.Rows) error {
				x := &row{facts: &scan.Facts{}}
				var has string
				if err := r.Scan(&x.n, &x.facts.ID, &x.facts.Early, &x.parent, &has); err != nil || seen[x.n] {
					return err
				}
				seen[x.n] = true
				x.marks = s.marksOf(x.facts.ID, x.facts.Early)
				want, err := json.Marshal(x.marks)
				if err == nil && string(want) != has {
					rows = append(rows, x)
				}
				return err
			})
	}
	if err := look("d.marks<>'{}'", nil); err != nil {
		return nil, err
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(s.marks.of)), 500) {
		in := "(" + placeholders(len(ids)) + ")"
		if err := look("(e.id IN "+in+" OR e.early IN "+in+")", slices.Concat(values(ids), values(ids))); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// remark writes entries with other marks and the facts that the index has.
func (s *Store) remark(ctx context.Context, rows []*row) error {
	w, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer w.tx.Rollback()
	for _, x := range rows {
		if err := w.recall(ctx, x); err != nil {
			return err
		}
	}
	if err := w.put(ctx, slices.DeleteFunc(rows, func(x *row) bool { return x.facts == nil }), false); err != nil {
		return err
	}
	return w.tx.Commit()
}

// recall reads what the index has of an entry; facts are nil of one that is no more.
func (w *writer) recall(ctx context.Context, x *row) error {
	var facts []byte
	x.at = w.version
	err := w.row(ctx, "SELECT facts FROM documents WHERE entry=?", x.n).Scan(&facts)
	if errors.Is(err, sql.ErrNoRows) {
		x.facts = nil
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(facts, x.facts); err != nil {
		return err
	}
	err = w.d.rows(ctx, w.tx, "SELECT m.name, f.value, f.low, f.high FROM figures f JOIN metrics m ON m.n=f.metric WHERE f.entry=? ORDER BY m.name", []any{x.n}, func(r *sql.Rows) error {
		var f scan.Figure
		err := r.Scan(&f.Metric, &f.Value, &f.Low, &f.High)
		x.facts.Figures = append(x.facts.Figures, f)
		return err
	})
	if err != nil {
		return err
	}
	x.sum, err = x.digest()
	return err
}

// ReadOnlyError says that nothing can be marked or removed in a root.
type ReadOnlyError struct{ Dir string }

func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("%s cannot be written to: tags, notes and removals need a directory that this user may write to", e.Dir)
}

// Mark keeps what somebody says of an entry, in the file beside it, and then in the index. The records
// need say what they do alone: who, when and of which entry is added.
func (s *Store) Mark(ctx context.Context, who, id string, records ...mark.Record) error {
	e, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	t, _, err := s.treeOf(e)
	if err != nil {
		return err
	}
	if err := t.append(who, e.ID, records); err != nil {
		return err
	}
	return s.followMarks(ctx)
}

// followMarks brings what the files of marks have into the index.
func (s *Store) followMarks(ctx context.Context) error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	if err := s.loadMarks(ctx); err != nil {
		return err
	}
	version, err := s.applyMarks(ctx)
	if err != nil {
		return s.failed("write to the index", err)
	}
	s.changed.tell(version)
	return nil
}

// append writes records of an entry to the file of the root.
func (t *tree) append(who, id string, records []mark.Record) error {
	now := time.Now().UTC()
	out := slices.Clone(records)
	for i := range out {
		out[i].At, out[i].Who, out[i].Entry = now, who, id
	}
	return mark.Append(t.marks.path, out...)
}

// treeOf is the root of this machine that an entry lies in, and where; one that can be written to
// before others.
func (s *Store) treeOf(e Entry) (*tree, string, error) {
	var readonly error
	for _, p := range e.Places {
		for _, t := range s.trees {
			switch {
			case p.Host != "" || p.Root != t.dir:
			case t.readonly:
				readonly = &ReadOnlyError{t.dir}
			default:
				return t, p.Path, nil
			}
		}
	}
	if readonly != nil {
		return nil, "", readonly
	}
	where := "nowhere"
	if len(e.Places) > 0 {
		where = e.Places[0].Root + " of " + e.Places[0].Host
	}
	return nil, "", fmt.Errorf("%s lies in %s, which this perflab does not look through: mark and remove it there", e.Called(), where)
}

// History returns all that was said of an entry, in the order in which it was.
func (s *Store) History(ctx context.Context, id string) ([]mark.Record, error) {
	e, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	var out []mark.Record
	for _, t := range s.trees {
		log, err := mark.Read(t.marks.path)
		if err != nil {
			return nil, err
		}
		for _, r := range log.Records {
			if r.Entry == e.ID || e.Early != "" && r.Entry == e.Early {
				out = append(out, r)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b mark.Record) int { return a.At.Compare(b.At) })
	return out, nil
}
