package store

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed schema/*.sql
var schema embed.FS

// NewerError says that the index is of a newer perflab.
type NewerError struct {
	Index      string
	Has, Knows int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the index %s was made by a newer perflab (its version is %d, and this one knows %d): use that perflab, or have the index elsewhere", e.Index, e.Has, e.Knows)
}

// errForeign says that a file has tables, and none of ours.
var errForeign = errors.New("its tables are of another program")

// migrations are the statements of each version, from the first on.
func migrations() ([]string, error) {
	names, err := fs.Glob(schema, "schema/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var out []string
	for _, name := range names {
		b, err := schema.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, string(b))
	}
	return out, nil
}

// advisory is the lock under which PostgreSQL migrates: two servers may start at once.
const advisory = 0x7065726c

// migrate brings the index to this version, each step in a transaction of its own.
func (s *index) migrate(ctx context.Context) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	for {
		done, err := s.step(ctx, steps)
		if err != nil {
			return err
		}
		if done {
			return nil
		}
	}
}

// step makes the next migration, and reports whether there is none.
func (s *index) step(ctx context.Context, steps []string) (done bool, err error) {
	if at, err := s.schemaVersion(ctx, s.db); err == nil && at == len(steps) { // the usual case takes no lock
		return true, nil
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	w := &writer{tx: tx, d: s.d}
	if s.d.name == postgres.name {
		if err := w.exec(ctx, "SELECT pg_advisory_xact_lock(?)", advisory); err != nil {
			return false, err
		}
	}
	at, err := s.schemaVersion(ctx, tx)
	switch {
	case err != nil:
		return false, err
	case at > len(steps):
		return false, &NewerError{Index: cmp.Or(s.info.Index, s.file), Has: at, Knows: len(steps)}
	case at == len(steps):
		return true, nil
	case at == 0:
		if err := w.exec(ctx, "CREATE TABLE perflab_index (version BIGINT NOT NULL)"); err != nil {
			return false, err
		}
		if err := w.exec(ctx, "INSERT INTO perflab_index (version) VALUES (0)"); err != nil {
			return false, err
		}
	}
	for statement := range strings.SplitSeq(s.d.schema(steps[at]), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if err := w.exec(ctx, statement); err != nil {
			return false, fmt.Errorf("bring the index to version %d: %w", at+1, err)
		}
	}
	if err := w.exec(ctx, "UPDATE perflab_index SET version=?", at+1); err != nil {
		return false, err
	}
	return false, tx.Commit()
}

// schemaVersion is that of the index, 0 of an empty one.
func (s *index) schemaVersion(ctx context.Context, q querier) (at int, err error) {
	tables := "SELECT name FROM sqlite_master WHERE type='table'"
	if s.d.name == postgres.name {
		tables = "SELECT table_name FROM information_schema.tables WHERE table_schema=current_schema()"
	}
	var names []string
	err = s.d.rows(ctx, q, tables, nil, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		names = append(names, name)
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case len(names) == 0:
		return 0, nil
	case slices.Contains(names, "perflab_index"):
	case s.d.name == sqlite.name:
		return 0, errForeign
	default: // a database may be shared with other programs, unless they use our names
		return 0, nil
	}
	err = s.d.rows(ctx, q, "SELECT version FROM perflab_index", nil, func(r *sql.Rows) error { return r.Scan(&at) })
	return at, err
}
