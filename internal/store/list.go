package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"perflab/internal/result"
	"perflab/internal/store/filter"
	"perflab/internal/store/scan"
)

// Bounds of a page.
const (
	usualPage = 50
	MostPage  = 1000
)

// usualOrder is that of a list for which none was asked.
const usualOrder = "e.pinned DESC, e.started DESC NULLS LAST, e.id"

// List returns a page of the entries that a filter holds for. An error of the filter or the
// order is a *filter.Error.
func (s *Store) List(ctx context.Context, q Query) (Page, error) {
	var p Page
	where, _, err := s.where(ctx, q)
	if err != nil {
		return p, err
	}
	order, err := filter.ParseOrder(q.Order)
	if err != nil {
		return p, err
	}
	join, by := order.SQL()
	if len(order) == 0 {
		by.SQL = usualOrder
	}
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // all of it is of one instant
	if err != nil {
		return p, s.failed("read the index", err)
	}
	defer tx.Rollback()
	if err := s.d.rows(ctx, tx, "SELECT value FROM meta WHERE name='version'", nil, func(r *sql.Rows) error { return r.Scan(&p.Version) }); err != nil {
		return p, s.failed("read the index", err)
	}
	if err := s.d.rows(ctx, tx, "SELECT COUNT(*) FROM entries e WHERE "+where.SQL, where.Args, func(r *sql.Rows) error { return r.Scan(&p.Total) }); err != nil {
		return p, s.failed("read the index", err)
	}
	limit := min(cmp.Or(max(0, q.Limit), usualPage), MostPage)
	args := append(slices.Concat(join.Args, where.Args, by.Args), limit, max(0, q.Offset))
	p.Entries, err = s.entries(ctx, tx, "SELECT e.n FROM entries e"+join.SQL+" WHERE "+where.SQL+" ORDER BY "+by.SQL+" LIMIT ? OFFSET ?", args, q.Figures)
	return p, s.failed("read the index", err)
}

// where is the condition of a query, and the filter that it has.
func (s *Store) where(ctx context.Context, q Query) (filter.Clause, *filter.Filter, error) {
	now := q.Now
	if now.IsZero() {
		now = time.Now()
	}
	f, err := filter.Parse(q.Filter, now)
	if err != nil {
		return filter.Clause{}, nil, err
	}
	own, err := s.own(ctx)
	if err != nil {
		return own, nil, err
	}
	c := f.Clause()
	return filter.Clause{SQL: own.SQL + " AND " + c.SQL, Args: append(own.Args, c.Args...)}, f, nil
}

// own is the condition of what is shown: an index file may have more directories than ours, which
// another perflab looks through. The index of a server is one of several machines on purpose.
func (s *Store) own(ctx context.Context) (filter.Clause, error) {
	all := filter.Clause{SQL: "1=1"}
	if s.info.Shared {
		return all, nil
	}
	roots, there := s.roots(), 0
	err := s.d.rows(ctx, s.db, "SELECT COUNT(*) FROM roots", nil, func(r *sql.Rows) error { return r.Scan(&there) })
	if err != nil || there <= len(roots) {
		return all, s.failed("read the index", err)
	}
	return filter.Clause{SQL: "EXISTS (SELECT 1 FROM places o WHERE o.entry=e.n AND o.root IN (" + placeholders(len(roots)) + "))", Args: roots}, nil
}

// entries are the entries whose numbers a query gives, in its order.
func (s *Store) entries(ctx context.Context, q querier, text string, args []any, figures []string) ([]Entry, error) {
	var numbers []int64
	err := s.d.rows(ctx, q, text, args, func(r *sql.Rows) error {
		var n int64
		err := r.Scan(&n)
		numbers = append(numbers, n)
		return err
	})
	if err != nil || len(numbers) == 0 {
		return []Entry{}, err
	}
	out := make([]Entry, len(numbers))
	at := make(map[int64]*Entry, len(numbers))
	for i, n := range numbers {
		at[n] = &out[i]
	}
	for part := range slices.Chunk(numbers, 500) {
		if err := s.fill(ctx, q, at, part, figures); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fill reads what entries are.
func (s *Store) fill(ctx context.Context, q querier, at map[int64]*Entry, numbers []int64, figures []string) error {
	in := "(" + placeholders(len(numbers)) + ")"
	err := s.d.rows(ctx, q, "SELECT d.entry, d.facts, d.marks, e.parent FROM documents d JOIN entries e ON e.n=d.entry WHERE d.entry IN "+in, values(numbers), func(r *sql.Rows) error {
		var n int64
		var facts, marks []byte
		var parent string
		if err := r.Scan(&n, &facts, &marks, &parent); err != nil {
			return err
		}
		e := at[n]
		e.Parent = parent
		if err := json.Unmarshal(facts, &e.Facts); err != nil {
			return fmt.Errorf("read the facts of entry %d: %w", n, err)
		}
		return json.Unmarshal(marks, &e.Marks)
	})
	if err != nil {
		return err
	}
	if err := s.fillPlaces(ctx, q, at, numbers); err != nil || len(figures) == 0 {
		return err
	}
	text := "SELECT f.entry, m.name, f.value, f.low, f.high FROM figures f JOIN metrics m ON m.n=f.metric WHERE f.entry IN " + in
	args := values(numbers)
	if !slices.Contains(figures, "*") {
		text += " AND m.name IN (" + placeholders(len(figures)) + ")"
		args = append(args, values(metricNames(figures))...)
	}
	return s.d.rows(ctx, q, text, args, func(r *sql.Rows) error {
		var n int64
		var f scan.Figure
		if err := r.Scan(&n, &f.Metric, &f.Value, &f.Low, &f.High); err != nil {
			return err
		}
		if at[n].Figures == nil {
			at[n].Figures = map[string]scan.Figure{}
		}
		at[n].Figures[f.Metric] = f
		return nil
	})
}

// metricNames are figures by the names that the metric table has.
func metricNames(names []string) []string {
	out := slices.Clone(names)
	for i, name := range out {
		if m, err := result.Lookup(name); err == nil {
			out[i] = m.Name
		}
	}
	return out
}

// fillPlaces adds the places of entries, that of the facts first.
func (s *Store) fillPlaces(ctx context.Context, q querier, at map[int64]*Entry, numbers []int64) error {
	return s.d.rows(ctx, q, "SELECT p.entry, r.host, r.dir, p.path FROM places p JOIN roots r ON r.n=p.root WHERE p.entry IN ("+placeholders(len(numbers))+
		") ORDER BY CASE WHEN p.parent='' THEN 1 ELSE 0 END, p.root, p.path", values(numbers), func(r *sql.Rows) error {
		var n int64
		var p Place
		if err := r.Scan(&n, &p.Host, &p.Root, &p.Path); err != nil {
			return err
		}
		if p.Path = decodePath(p.Path); p.Host == s.opt.Host {
			p.Host = ""
		}
		at[n].Places = append(at[n].Places, p)
		return nil
	})
}

// leastID is how much of an ID names an entry.
const leastID = 4

// Get returns an entry with all of its figures, by its ID, the beginning of it, the name that
// somebody gave it, or the path of its directory. A *NotFoundError says that there is none, or that
// several may be meant.
func (s *Store) Get(ctx context.Context, what string) (Entry, error) {
	none := Entry{}
	if what == "" || strings.Contains(what, "\x00") || !utf8.ValidString(what) {
		return none, &NotFoundError{what, "say which entry is meant, by its ID, its name or its directory"}
	}
	ways := []filter.Clause{
		{SQL: "e.id=?", Args: []any{what}},
		{SQL: "e.early=?", Args: []any{what}},
	}
	if n, path, ok := s.rootOf(what); ok {
		ways = append(ways, filter.Clause{SQL: "EXISTS (SELECT 1 FROM places p WHERE p.entry=e.n AND p.root=? AND p.path IN (?,?))", Args: []any{n, encodePath(path), encodePath(path + ".tmp")}})
	}
	if len(what) >= leastID && strings.Trim(what, "0123456789abcdef") == "" {
		ways = append(ways, filter.Clause{SQL: "e.id LIKE ?", Args: []any{what + "%"}})
	}
	ways = append(ways, filter.Clause{SQL: "e.name=?", Args: []any{what}})
	own, err := s.own(ctx)
	if err != nil {
		return none, err
	}
	for _, c := range ways {
		found, err := s.entries(ctx, s.db, "SELECT e.n FROM entries e WHERE "+own.SQL+" AND "+c.SQL+" ORDER BY e.id LIMIT 6", slices.Concat(own.Args, c.Args), []string{"*"})
		switch {
		case err != nil:
			return none, s.failed("read the index", err)
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return none, several(what, found)
		}
	}
	return none, &NotFoundError{what, fmt.Sprintf("there is no entry %q: perflab list shows what there is", what)}
}

func several(what string, found []Entry) error {
	var names []string
	for _, e := range found[:min(len(found), 5)] {
		names = append(names, e.ID[:min(12, len(e.ID))]+" ("+e.Called()+")")
	}
	if len(found) > 5 {
		names = append(names, "...")
	}
	return &NotFoundError{what, fmt.Sprintf("%q may be any of %s: give more of the ID", what, strings.Join(names, ", "))}
}

// Groups returns how many entries a filter holds for, by the values of a fact, the most frequent
// first. By tag or by issue an entry counts for each that it has.
func (s *Store) Groups(ctx context.Context, q Query, fact string) ([]Group, error) {
	column, err := filter.GroupColumn(fact)
	if err != nil {
		return nil, err
	}
	where, _, err := s.where(ctx, q)
	if err != nil {
		return nil, err
	}
	names := truth(fact)
	out := []Group{}
	limit := min(cmp.Or(max(0, q.Limit), usualPage), MostPage)
	err = s.d.rows(ctx, s.db, "SELECT "+column+", COUNT(*), MAX(e.started) FROM entries e"+filter.GroupJoin(fact)+" WHERE "+where.SQL+" GROUP BY "+column+" ORDER BY COUNT(*) DESC, "+column+" LIMIT ? OFFSET ?",
		append(where.Args, limit, max(0, q.Offset)), func(r *sql.Rows) error {
			var g Group
			var newest *float64
			if err := r.Scan(&g.Value, &g.Count, &newest); err != nil {
				return err
			}
			g.Value = cmp.Or(names[g.Value], g.Value)
			if newest != nil {
				g.Newest = time.UnixMilli(int64(*newest)).UTC()
			}
			out = append(out, g)
			return nil
		})
	return out, s.failed("read the index", err)
}

// Counts are the Groups of several facts, found in one look at the list: of each fact all values, the
// most frequent first. A fact that an entry may have several of is not one of them.
func (s *Store) Counts(ctx context.Context, q Query, facts ...string) (map[string][]Group, error) {
	columns := make([]string, len(facts))
	for i, fact := range facts {
		column, err := filter.GroupColumn(fact)
		if err != nil {
			return nil, err
		}
		if filter.GroupJoin(fact) != "" {
			return nil, fmt.Errorf("an entry may have several of %s: count it by itself", fact)
		}
		columns[i] = column
	}
	where, f, err := s.where(ctx, q)
	if err != nil {
		return nil, err
	}
	if f.Outermost() {
		where.SQL += " AND e.parent=''" // once more, in words that the index of facets is found by
	}
	counts := make([]map[string]*Group, len(facts))
	for i := range counts {
		counts[i] = map[string]*Group{}
	}
	all := strings.Join(columns, ", ")
	err = s.d.rows(ctx, s.db, "SELECT COUNT(*), MAX(e.started), "+all+" FROM entries e WHERE "+where.SQL+" GROUP BY "+all, where.Args, func(r *sql.Rows) error {
		var n int
		var newest *float64
		texts := make([]string, len(facts))
		to := []any{&n, &newest}
		for i := range texts {
			to = append(to, &texts[i])
		}
		if err := r.Scan(to...); err != nil {
			return err
		}
		for i, text := range texts {
			addTo(counts[i], text, n, newest)
		}
		return nil
	})
	if err != nil {
		return nil, s.failed("read the index", err)
	}
	out := map[string][]Group{}
	for i, fact := range facts {
		out[fact] = sortedGroups(counts[i], fact)
	}
	return out, nil
}

// addTo counts entries to the group of a value.
func addTo(groups map[string]*Group, value string, n int, newest *float64) {
	g := groups[value]
	if g == nil {
		g = &Group{Value: value}
		groups[value] = g
	}
	g.Count += n
	if newest != nil {
		if at := time.UnixMilli(int64(*newest)).UTC(); at.After(g.Newest) {
			g.Newest = at
		}
	}
}

// truth are what values of facts that are true or false are called; nil for other facts.
func truth(fact string) map[string]string {
	if slices.ContainsFunc(filter.Fields(), func(f filter.Field) bool { return f.Name == strings.ToLower(fact) && f.Type == filter.Bool }) {
		return map[string]string{"0": "false", "1": "true"}
	}
	return nil
}

func sortedGroups(groups map[string]*Group, fact string) []Group {
	names, out := truth(fact), []Group{}
	for _, g := range groups {
		g.Value = cmp.Or(names[g.Value], g.Value)
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Group) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value)) })
	return out
}

// Parts are the entries that lie in a study, a series or an import, with these figures.
func (s *Store) Parts(ctx context.Context, id string, figures ...string) ([]Entry, error) {
	own, err := s.own(ctx)
	if err != nil {
		return nil, err
	}
	out, err := s.entries(ctx, s.db, "SELECT e.n FROM entries e WHERE "+own.SQL+" AND e.parent=? ORDER BY CASE WHEN e.trial IS NULL THEN 1 ELSE 0 END, e.trial, e.started, e.id", append(own.Args, id), figures)
	return out, s.failed("read the index", err)
}
