package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"perflab/internal/rundir"
	"perflab/internal/store/reduction"
	"perflab/internal/store/scan"
)

// Reduction returns what plots draw of a run. It is made of the calls once, and then kept in the index;
// of a run that goes on it is made each time.
func (s *Store) Reduction(ctx context.Context, id string) (reduction.Reduction, error) {
	e, err := s.Get(ctx, id)
	if err != nil {
		return reduction.Reduction{}, err
	}
	if e.Kind != scan.Run {
		return reduction.Reduction{}, &NotFoundError{id, fmt.Sprintf("%s is a %s, and only runs have calls: ask for one of its runs", e.Called(), e.Kind)}
	}
	if r, ok, err := s.kept(ctx, e.ID); ok || err != nil {
		return r, s.failed("read the index", err)
	}
	return s.reduce(ctx, e)
}

// kept is the reduction that the index has.
func (s *index) kept(ctx context.Context, id string) (r reduction.Reduction, ok bool, err error) {
	err = s.d.rows(ctx, s.db, "SELECT x.content FROM reductions x JOIN entries e ON e.n=x.entry WHERE e.id=? AND x.format=?", []any{id, reduction.Format}, func(row *sql.Rows) error {
		var content []byte
		if err := row.Scan(&content); err != nil {
			return err
		}
		ok = true
		return unpack(content, &r)
	})
	return r, ok, err
}

// reduce makes a reduction, and keeps it where the run has ended. What cannot be read is its fault, which
// is kept too.
func (s *Store) reduce(ctx context.Context, e Entry) (reduction.Reduction, error) {
	dir := e.Dir()
	if dir == "" {
		return reduction.Reduction{}, fmt.Errorf("the calls of %s are on another machine: %s of %s", e.Called(), e.Places[0].Root, e.Places[0].Host)
	}
	select {
	case s.reducing <- struct{}{}:
		defer func() { <-s.reducing }()
	case <-ctx.Done():
		return reduction.Reduction{}, context.Cause(ctx)
	}
	r, err := reduceRun(ctx, dir)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if err != nil {
		r = reduction.Reduction{Simulated: e.Simulated, Predicted: e.Predicted, CDF: []reduction.Distribution{}, Lines: []reduction.Line{}, Fault: err.Error()}
	}
	if e.State == scan.Running {
		return r, nil
	}
	if err := s.keep(ctx, e.ID, r); err != nil && !errors.Is(err, sql.ErrNoRows) { // no row: it was removed meanwhile
		return r, s.failed("write to the index", err)
	}
	return r, nil
}

// reduceRun reads the calls in a directory.
func reduceRun(ctx context.Context, dir string) (reduction.Reduction, error) {
	run, err := rundir.OpenRun(dir)
	if err != nil {
		return reduction.Reduction{}, err
	}
	b := reduction.New(run.Header, run.Readings)
	for c := range run.All() {
		if b.Add(&c); ctx.Err() != nil {
			return reduction.Reduction{}, context.Cause(ctx)
		}
	}
	r := b.Reduction(run.Calls, run.Every)
	r.Fault = run.Damage
	return r, nil
}

func (s *index) keep(ctx context.Context, id string, r reduction.Reduction) error {
	content, err := pack(r)
	if err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	w := &writer{tx: tx, d: s.d}
	var n int64
	if err := w.row(ctx, "SELECT n FROM entries WHERE id=?", id).Scan(&n); err != nil {
		return err
	}
	if err := w.exec(ctx, "INSERT INTO reductions (entry, format, content) VALUES (?,?,?) ON CONFLICT (entry) DO UPDATE SET format=excluded.format, content=excluded.content", n, reduction.Format, content); err != nil {
		return err
	}
	return tx.Commit()
}

// ReduceNext makes the reduction of the newest run of this machine that has none, and reports whether there
// was one: what a server does when nobody asks for anything.
func (s *Store) ReduceNext(ctx context.Context) (bool, error) {
	roots := s.roots()
	if len(roots) == 0 {
		return false, nil
	}
	found, err := s.entries(ctx, s.db, "SELECT e.n FROM entries e WHERE e.kind='run' AND e.state<>'running' AND NOT EXISTS (SELECT 1 FROM reductions x WHERE x.entry=e.n AND x.format=?) AND EXISTS (SELECT 1 FROM places p WHERE p.entry=e.n AND p.root IN ("+
		placeholders(len(roots))+")) ORDER BY CASE WHEN e.started IS NULL THEN 1 ELSE 0 END, e.started DESC, e.n LIMIT 1", append([]any{reduction.Format}, roots...), nil)
	if err != nil || len(found) == 0 {
		return false, s.failed("read the index", err)
	}
	_, err = s.reduce(ctx, found[0])
	return true, err
}

func pack(v any) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(v); err != nil {
		return nil, fmt.Errorf("encode a reduction: %w", err)
	}
	err := z.Close()
	return b.Bytes(), err
}

// mostReduction bounds what a reduction unpacks to: it has twelve lines at most.
const mostReduction = 16 << 20

func unpack(b []byte, v any) error {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("unpack a reduction: %w", err)
	}
	return json.NewDecoder(io.LimitReader(z, mostReduction)).Decode(v)
}
