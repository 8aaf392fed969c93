package store

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// dialect is how a database differs from the other.
type dialect struct {
	name     string
	numbered bool              // values are $1, $2, not ?
	types    map[string]string // names of types in the schema
	most     int               // values of a statement
}

var (
	sqlite   = dialect{name: "sqlite", most: 30000}
	postgres = dialect{name: "postgres", numbered: true, types: map[string]string{" BLOB": " BYTEA", " TEXT": ` TEXT COLLATE "C"`, " WITHOUT ROWID": ""}, most: 60000}
)

// sql puts a statement into the dialect. Statements have no ? but for values.
func (d dialect) sql(text string) string {
	if !d.numbered {
		return text
	}
	var b strings.Builder
	n := 0
	for _, c := range text {
		if c != '?' {
			b.WriteRune(c)
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// schema puts the statements of a migration into the dialect.
func (d dialect) schema(text string) string {
	for name, other := range d.types {
		text = strings.ReplaceAll(text, name, other)
	}
	return text
}

// querier is what reads: a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// rows calls f for each row of a query.
func (d dialect) rows(ctx context.Context, q querier, text string, args []any, f func(*sql.Rows) error) error {
	rows, err := q.QueryContext(ctx, d.sql(text), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// marksFor is n placeholders, as they stand after IN.
func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

// writer is a transaction of the one writer.
type writer struct {
	tx      *sql.Tx
	d       dialect
	version int64
}

func (w *writer) row(ctx context.Context, text string, args ...any) *sql.Row {
	return w.tx.QueryRowContext(ctx, w.d.sql(text), args...)
}

func (w *writer) exec(ctx context.Context, text string, args ...any) error {
	_, err := w.tx.ExecContext(ctx, w.d.sql(text), args...)
	return err
}

// insert adds rows, many in a statement. What follows is an ON CONFLICT, or nothing.
func (w *writer) insert(ctx context.Context, into, follows string, columns int, rows [][]any) error {
	each := max(1, min(500, w.d.most/columns))
	one := "(" + placeholders(columns) + ")"
	for len(rows) > 0 {
		part := rows[:min(each, len(rows))]
		rows = rows[len(part):]
		args := make([]any, 0, len(part)*columns)
		for _, r := range part {
			args = append(args, r...)
		}
		text := "INSERT INTO " + into + " VALUES " + strings.TrimSuffix(strings.Repeat(one+",", len(part)), ",") + follows
		if err := w.exec(ctx, text, args...); err != nil {
			return err
		}
	}
	return nil
}

// in runs a statement that ends in IN for so many numbers at a time.
func (w *writer) in(ctx context.Context, text string, numbers []int64) error {
	for len(numbers) > 0 {
		part := numbers[:min(500, len(numbers))]
		numbers = numbers[len(part):]
		if err := w.exec(ctx, text+" ("+placeholders(len(part))+")", values(part)...); err != nil {
			return err
		}
	}
	return nil
}

func values[T any](all []T) []any {
	out := make([]any, len(all))
	for i, v := range all {
		out[i] = v
	}
	return out
}

// next takes n numbers of a counter, the first of which it returns.
func (w *writer) next(ctx context.Context, counter string, n int) (int64, error) {
	var last int64
	err := w.row(ctx, "UPDATE meta SET value=value+? WHERE name=? RETURNING value", n, counter).Scan(&last)
	return last - int64(n) + 1, err
}
