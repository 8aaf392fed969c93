package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/store/mark"
	"perflab/internal/store/scan"
)

// column is one of entries, with what it has of an entry.
type column struct {
	name string
	of   func(*row) any
}

// row is an entry as it is written.
type row struct {
	n      int64
	parent string // ID
	sum    string
	at     int64 // version of the index
	facts  *scan.Facts
	marks  mark.Marks
}

// columns are those of entries, in the order in which they are written.
var columns = []column{
	{"n", func(r *row) any { return r.n }},
	{"id", func(r *row) any { return r.facts.ID }},
	{"early", func(r *row) any { return r.facts.Early }},
	{"kind", func(r *row) any { return string(r.facts.Kind) }},
	{"name", func(r *row) any { return Entry{Facts: *r.facts, Marks: r.marks}.Called() }},
	{"title", func(r *row) any { return r.facts.Title }},
	{"parent", func(r *row) any { return r.parent }},
	{"trial", func(r *row) any { return known0(r.facts.Trial) }},
	{"started", func(r *row) any {
		if r.facts.Started.IsZero() {
			return nil
		}
		return float64(r.facts.Started.UnixMilli())
	}},
	{"duration", func(r *row) any { return known0(r.facts.Duration) }},
	{"state", func(r *row) any { return string(r.facts.State) }},
	{"verdict", func(r *row) any { return r.facts.Verdict }},
	{"simulated", func(r *row) any { return bit(r.facts.Simulated) }},
	{"predicted", func(r *row) any { return bit(r.facts.Predicted) }},
	{"imported", func(r *row) any { return r.facts.Imported }},
	{"engine", func(r *row) any { return r.facts.Engine }},
	{"engine_version", func(r *row) any { return r.facts.EngineVersion }},
	{"image", func(r *row) any { return r.facts.Image }},
	{"model", func(r *row) any { return r.facts.Model }},
	{"hardware", func(r *row) any { return r.facts.Hardware }},
	{"gpus", func(r *row) any { return known0(r.facts.GPUs) }},
	{"config", func(r *row) any { return r.facts.Config }},
	{"workload", func(r *row) any { return r.facts.Workload }},
	{"fingerprint", func(r *row) any { return r.facts.Fingerprint }},
	{"request_rate", func(r *row) any { return known0(r.facts.Rate) }},
	{"max_concurrency", func(r *row) any { return known0(r.facts.Limit) }},
	{"build", func(r *row) any { return r.facts.Build }},
	{"host", func(r *row) any { return r.facts.Host }},
	{"version", func(r *row) any { return r.facts.Version }},
	{"bytes", func(r *row) any { return float64(r.facts.Bytes) }},
	{"pinned", func(r *row) any { return bit(r.marks.Pinned) }},
	{"fault", func(r *row) any { return r.facts.Fault }},
	{"sum", func(r *row) any { return r.sum }},
	{"changed", func(r *row) any { return r.at }},
	{"note", func(r *row) any { return r.marks.Note }},
	{"command", func(r *row) any { return r.facts.Command }},
	{"search", func(r *row) any { return searched(r) }},
}

// known0 is a number that is not known where it is 0.
func known0[T int | float64](v T) any {
	if v == 0 {
		return nil
	}
	return float64(v)
}

func bit(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// searched is what words of a filter are looked for in.
func searched(r *row) string {
	f := r.facts
	all := []string{f.ID, f.Name, f.Title, r.marks.Name, r.marks.Note, f.Model, f.Engine, f.EngineVersion, f.Image, f.Hardware,
		f.Workload, f.Load, f.Label, f.Build, f.Imported, string(f.Kind), f.Verdict, f.Command}
	all = append(all, r.marks.Tags...)
	for _, k := range r.marks.Issues {
		all = append(all, k.ID, k.Text)
	}
	if f.Simulated {
		all = append(all, "simulated")
	}
	if f.Predicted {
		all = append(all, "predicted")
	}
	return strings.ToLower(strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "\n"))
}

// putEntries writes the entries whose facts are not what the index has.
func (f *following) putEntries(ctx context.Context, w *writer, put map[string]found) (changed bool, err error) {
	sums, err := w.sums(ctx, slices.Sorted(maps.Keys(put)))
	if err != nil {
		return false, err
	}
	var rows []*row
	for _, id := range slices.Sorted(maps.Keys(put)) {
		x := put[id]
		if x.facts.ID != id { // it changed again while it was looked for: the next Sync sees it
			continue
		}
		r := &row{n: f.places[x.key].entry, facts: &x.facts, at: w.version, marks: f.marksOf(x.facts.ID, x.facts.Early)}
		r.parent = f.places[placeKey{x.key.root, x.parent}].id
		if r.sum, err = r.digest(); err != nil {
			return false, err
		}
		old, there := sums[id]
		switch {
		case there && old == r.sum:
			continue
		case there:
			f.out.Changed = append(f.out.Changed, id)
		default:
			f.out.Added = append(f.out.Added, id)
		}
		rows = append(rows, r)
	}
	return len(rows) > 0, w.put(ctx, rows, true)
}

// sums are the digests of entries that the index has.
func (w *writer) sums(ctx context.Context, ids []string) (map[string]string, error) {
	out := map[string]string{}
	for part := range slices.Chunk(ids, 500) {
		err := w.d.rows(ctx, w.tx, "SELECT id, sum FROM entries WHERE id IN ("+placeholders(len(part))+")", values(part), func(r *sql.Rows) error {
			var id, sum string
			err := r.Scan(&id, &sum)
			out[id] = sum
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// digest tells the row from one with other facts, figures or marks.
func (r *row) digest() (string, error) {
	sum := sha256.New()
	err := json.NewEncoder(sum).Encode([]any{r.facts, r.facts.Figures, r.parent, r.marks})
	if err != nil {
		return "", fmt.Errorf("encode the facts of %s: %w", r.facts.Name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:12]), nil
}

// put writes entries; figures too where they were read.
func (w *writer) put(ctx context.Context, rows []*row, figures bool) error {
	if len(rows) == 0 {
		return nil
	}
	var names, sets []string
	for _, c := range columns {
		names = append(names, c.name)
		if c.name != "n" && c.name != "id" {
			sets = append(sets, c.name+"=excluded."+c.name)
		}
	}
	var entries, documents, labels [][]any
	var numbers []int64
	for _, r := range rows {
		var values []any
		for _, c := range columns {
			values = append(values, c.of(r))
		}
		facts, marks, err := r.json()
		if err != nil {
			return err
		}
		entries = append(entries, values)
		documents = append(documents, []any{r.n, facts, marks})
		numbers = append(numbers, r.n)
		for _, t := range r.marks.Tags {
			labels = append(labels, []any{r.n, "tag", t})
		}
		for _, k := range r.marks.Issues {
			labels = append(labels, []any{r.n, "issue", k.ID})
		}
	}
	if err := w.insert(ctx, "entries ("+strings.Join(names, ", ")+")", " ON CONFLICT (id) DO UPDATE SET "+strings.Join(sets, ", "), len(columns), entries); err != nil {
		return err
	}
	if err := w.insert(ctx, "documents (entry, facts, marks)", " ON CONFLICT (entry) DO UPDATE SET facts=excluded.facts, marks=excluded.marks", 3, documents); err != nil {
		return err
	}
	if err := w.in(ctx, "DELETE FROM labels WHERE entry IN", numbers); err != nil {
		return err
	}
	if err := w.insert(ctx, "labels (entry, kind, value)", "", 3, labels); err != nil {
		return err
	}
	if !figures {
		return nil
	}
	if err := w.in(ctx, "DELETE FROM reductions WHERE entry IN", numbers); err != nil {
		return err
	}
	return w.putFigures(ctx, rows, numbers)
}

func (r *row) json() (facts, marks string, err error) {
	a, err := json.Marshal(r.facts)
	if err != nil {
		return "", "", fmt.Errorf("encode the facts of %s: %w", r.facts.Name, err)
	}
	b, err := json.Marshal(r.marks)
	if err != nil {
		return "", "", fmt.Errorf("encode the marks of %s: %w", r.facts.Name, err)
	}
	return string(a), string(b), nil
}

// putFigures replaces the figures of entries.
func (w *writer) putFigures(ctx context.Context, rows []*row, numbers []int64) error {
	metrics, err := w.metrics(ctx, rows)
	if err != nil {
		return err
	}
	var all [][]any
	for _, r := range rows {
		seen := map[string]bool{}
		for _, x := range r.facts.Figures {
			if seen[x.Metric] {
				continue
			}
			seen[x.Metric] = true
			all = append(all, []any{r.n, metrics[x.Metric], x.Value, end(x.Low), end(x.High)})
		}
	}
	if err := w.in(ctx, "DELETE FROM figures WHERE entry IN", numbers); err != nil {
		return err
	}
	return w.insert(ctx, "figures (entry, metric, value, low, high)", "", 5, all)
}

func end(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

// metrics are the numbers of the metrics that rows have; new ones get theirs.
func (w *writer) metrics(ctx context.Context, rows []*row) (map[string]int64, error) {
	out := map[string]int64{}
	err := w.d.rows(ctx, w.tx, "SELECT name, n FROM metrics", nil, func(r *sql.Rows) error {
		var name string
		var n int64
		err := r.Scan(&name, &n)
		out[name] = n
		return err
	})
	if err != nil {
		return nil, err
	}
	var more [][]any
	for _, r := range rows {
		for _, x := range r.facts.Figures {
			if _, ok := out[x.Metric]; ok {
				continue
			}
			n, err := w.next(ctx, "metrics", 1)
			if err != nil {
				return nil, err
			}
			out[x.Metric] = n
			more = append(more, []any{n, x.Metric})
		}
	}
	return out, w.insert(ctx, "metrics (n, name)", "", 2, more)
}

// belongings are the tables that have rows of entries.
var belongings = []string{"documents", "figures", "labels", "reductions"}

// forgetEntries removes those of the entries that lie in no place, and returns their IDs.
func (w *writer) forgetEntries(ctx context.Context, lost map[string]int64) (removed []string, err error) {
	for _, id := range slices.Sorted(maps.Keys(lost)) {
		n := lost[id]
		var places int
		if err := w.row(ctx, "SELECT COUNT(*) FROM places WHERE entry=?", n).Scan(&places); err != nil {
			return nil, err
		}
		if places > 0 {
			continue
		}
		for _, table := range belongings {
			if err := w.exec(ctx, "DELETE FROM "+table+" WHERE entry=?", n); err != nil {
				return nil, err
			}
		}
		if err := w.exec(ctx, "DELETE FROM entries WHERE n=?", n); err != nil {
			return nil, err
		}
		removed = append(removed, id)
	}
	return removed, nil
}

// sweep removes all entries that lie in no place.
func (w *writer) sweep(ctx context.Context) error {
	lost := map[string]int64{}
	err := w.d.rows(ctx, w.tx, "SELECT id, n FROM entries e WHERE NOT EXISTS (SELECT 1 FROM places p WHERE p.entry=e.n)", nil, func(r *sql.Rows) error {
		var id string
		var n int64
		err := r.Scan(&id, &n)
		lost[id] = n
		return err
	})
	if err != nil {
		return err
	}
	_, err = w.forgetEntries(ctx, lost)
	return err
}
