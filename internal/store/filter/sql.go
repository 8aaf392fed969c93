package filter

import (
	"fmt"
	"strings"

	"perflab/internal/result"
)

// Clause is a piece of SQL with a ? for each of its values.
type Clause struct {
	SQL  string
	Args []any
}

// Clause is the condition over e, a row of entries; "1=1" where all entries hold.
func (f *Filter) Clause() Clause {
	if f.Empty() {
		return Clause{SQL: "1=1"}
	}
	var parts []string
	var c Clause
	for _, t := range f.terms {
		one := t.clause()
		parts, c.Args = append(parts, one.SQL), append(c.Args, one.Args...)
	}
	c.SQL = strings.Join(parts, " AND ")
	return c
}

// Outermost reports whether only entries hold that lie in nothing else.
func (f *Filter) Outermost() bool {
	for _, t := range f.terms {
		if t.field.Name == "parent" && t.op == "=" && len(t.texts) == 1 && t.texts[0] == "" {
			return true
		}
	}
	return false
}

func (t term) clause() Clause {
	switch f := t.field; {
	case t.word != "":
		return Clause{`e.search LIKE ? ESCAPE '\'`, []any{contains(t.word)}}
	case f.Type == Text || f.Type == Choice:
		return t.textClause()
	case f.Type == Bool:
		return Clause{f.column + "=?", []any{bit(t.yes == (t.op == "="))}}
	case f.figure != "":
		return Clause{"EXISTS (SELECT 1 FROM figures x WHERE x.entry=e.n AND x.metric=(SELECT n FROM metrics WHERE name=?) AND x.value" + sign(t.op) + "?)", []any{f.figure, t.from}}
	case t.span:
		return t.timeClause()
	}
	return Clause{t.field.column + sign(t.op) + "?", []any{t.from}}
}

// sign is an operator of SQL, by name and not as it was written.
func sign(op string) string {
	switch op {
	case "<":
		return "<"
	case "<=":
		return "<="
	case ">":
		return ">"
	case ">=":
		return ">="
	case "!=":
		return "<>"
	}
	return "="
}

func bit(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// contains is the pattern of texts that have another in them.
func contains(s string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(s) + "%"
}

// textClause compares a text with each of the values that may hold.
func (t term) textClause() Clause {
	if t.op == "!=" && t.field.related == "" && len(t.texts) == 1 && t.texts[0] == "" {
		return Clause{SQL: t.field.column + ">''"} // by an index, where there is one
	}
	var some []string
	var c Clause
	for _, v := range t.texts {
		one := t.oneText(v)
		some, c.Args = append(some, one.SQL), append(c.Args, one.Args...)
	}
	c.SQL = "(" + strings.Join(some, " OR ") + ")"
	if strings.HasPrefix(t.op, "!") {
		c.SQL = "NOT " + c.SQL
	}
	return c
}

// oneText compares a text with one value; an ID is named by its beginning.
func (t term) oneText(v string) Clause {
	f := t.field
	c := Clause{"lower(" + f.column + ")=?", []any{v}}
	switch {
	case strings.Contains(t.op, "~"):
		c = Clause{"lower(" + f.column + `) LIKE ? ESCAPE '\'`, []any{contains(v)}}
	case f.Name == "id":
		c = Clause{`e.id LIKE ? ESCAPE '\'`, []any{strings.TrimPrefix(contains(v), "%")}}
	case f.related != "" && v == "":
		return Clause{SQL: "NOT EXISTS (" + f.related + "1=1)"}
	}
	if f.related != "" {
		c.SQL = "EXISTS (" + f.related + c.SQL + ")"
	}
	return c
}

// timeClause compares an instant with a day, an hour or a second.
func (t term) timeClause() Clause {
	switch col := t.field.column; t.op {
	case "=":
		return Clause{"(" + col + ">=? AND " + col + "<?)", []any{t.from, t.until}}
	case "!=":
		return Clause{"NOT (" + col + ">=? AND " + col + "<?)", []any{t.from, t.until}}
	case ">": // after all of it
		return Clause{col + ">=?", []any{t.until}}
	case "<=":
		return Clause{col + "<?", []any{t.until}}
	default:
		return Clause{col + sign(t.op) + "?", []any{t.from}}
	}
}

// Order is how a list is sorted.
type Order []Key

// Key is a fact or a figure that a list is sorted by.
type Key struct {
	Field Field
	Down  bool // the most first
}

// mostKeys bounds an order: each figure in it is a join.
const mostKeys = 4

// ParseOrder reads names joined by commas, "-" before one for the most first: "-started,p99_ttft".
// What an entry does not have stands at the end either way.
func ParseOrder(text string) (Order, error) {
	var out Order
	at := 0
	for part := range strings.SplitSeq(text, ",") {
		name, down := strings.CutPrefix(strings.TrimSpace(part), "-")
		begin := at
		at += len([]rune(part)) + 1
		if name == "" {
			continue
		}
		f, wrong := find(strings.ToLower(name))
		switch {
		case wrong != "":
			return nil, &Error{begin + 1, fmt.Sprintf("a list cannot be sorted by %q: %s", name, wrong)}
		case !f.Sortable():
			return nil, &Error{begin + 1, fmt.Sprintf("a list cannot be sorted by %s: an entry may have several", name)}
		case len(out) == mostKeys:
			return nil, &Error{begin + 1, fmt.Sprintf("a list is sorted by at most %d facts", mostKeys)}
		}
		if f.Type == Age {
			down = !down
		}
		out = append(out, Key{f, down})
	}
	return out, nil
}

// Best sorts by a figure so that the best comes first.
func Best(m result.Metric) Key {
	return Key{Field{Name: m.Name, Type: Number, figure: m.Name}, m.Better == result.Higher}
}

// SQL is the joins and the order of a list over e, which end in what makes it the same each time.
func (o Order) SQL() (join, order Clause) {
	for i, k := range o {
		col, down := k.Field.column, ""
		if k.Field.figure != "" {
			alias := fmt.Sprintf("k%d", i)
			join.SQL += fmt.Sprintf(" LEFT JOIN figures %s ON %s.entry=e.n AND %s.metric=(SELECT n FROM metrics WHERE name=?)", alias, alias, alias)
			join.Args = append(join.Args, k.Field.figure)
			col = alias + ".value"
		}
		if k.Down {
			down = " DESC"
		}
		missing := col + " IS NULL"
		if t := k.Field.Type; t == Text || t == Choice {
			missing = col + "=''"
			col = "lower(" + col + ")"
		}
		order.SQL += fmt.Sprintf("CASE WHEN %s THEN 1 ELSE 0 END, %s%s, ", missing, col, down)
	}
	order.SQL += "e.id"
	return join, order
}

// GroupColumn is the SQL of a fact to group by, over e and what GroupJoin adds to it.
func GroupColumn(name string) (string, error) {
	f, wrong := find(strings.ToLower(name))
	switch {
	case wrong != "":
		return "", &Error{1, fmt.Sprintf("a list cannot be grouped by %q: %s", name, wrong)}
	case labelKind(f) != "":
		return f.column, nil
	case !f.Groupable() || f.figure != "":
		return "", &Error{1, fmt.Sprintf("a list cannot be grouped by %s: use a fact that is a word, as engine, model or config", name)}
	}
	return f.column, nil
}

// GroupJoin is the join that the column of a fact to group by needs, "" for most. By tag or by issue
// an entry is in a group for each that it has.
func GroupJoin(name string) string {
	f, _ := find(strings.ToLower(name))
	kind := labelKind(f)
	if kind == "" {
		return ""
	}
	return " JOIN labels x ON x.entry=e.n AND x.kind=" + kind
}

// labelKind is the kind of labels that a fact is, as SQL; "" where it is none.
func labelKind(f Field) string {
	rest, ok := strings.CutPrefix(f.related, labelsOf)
	if !ok {
		return ""
	}
	kind, _, _ := strings.Cut(rest, " ")
	return kind
}
