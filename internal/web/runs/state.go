package runs

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/result"
	"perflab/internal/web/page"
)

// perPage is how many rows a page of the list has.
const perPage = 50

// state is what the URL of a list says. The zero value is the list at first.
type state struct {
	Q       string   // expression of package filter
	Sort    string   // as store.Query.Order; "": pinned ones, then the newest
	Group   string   // fact whose values head the rows; "": none
	Columns []string // nil: the usual ones
	Page    int      // from 0
	Parts   bool     // runs that lie in studies, series and imports too
	Undo    []string // names in the trash of what was just deleted
}

// groups are the facts that a list can be grouped by.
var groups = []struct{ Name, Label string }{{"config", "configuration"}, {"model", "model"}, {"workload", "workload"}}

// readState reads the URL of a list.
func readState(v url.Values) (state, error) {
	s := state{Q: strings.TrimSpace(v.Get("q")), Sort: v.Get("sort"), Group: v.Get("group"), Parts: v.Get("parts") == "1", Undo: v["undo"]}
	if n, err := strconv.Atoi(v.Get("page")); err == nil && n > 1 {
		s.Page = min(n, 1_000_000) - 1
	}
	if s.Group != "" && !slices.ContainsFunc(groups, func(g struct{ Name, Label string }) bool { return g.Name == s.Group }) {
		return s, page.Bad("a list is grouped by config, model or workload, not by " + strconv.Quote(s.Group))
	}
	for name := range strings.SplitSeq(v.Get("columns"), ",") {
		if name = strings.TrimSpace(name); name != "" && len(s.Columns) < mostColumns {
			s.Columns = append(s.Columns, name)
		}
	}
	if add := strings.TrimSpace(v.Get("add")); add != "" {
		c, ok := columnOf(add)
		if !ok {
			_, err := result.Lookup(add)
			return s, &page.Problem{Status: 400, Text: "there is no column " + strconv.Quote(add), Hint: hint(err)}
		}
		s = s.withColumn(c.Name)
	}
	return s, nil
}

func hint(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// withColumn is the list with one more column.
func (s state) withColumn(name string) state {
	s.Columns = slices.Clone(s.columns())
	if !slices.Contains(s.Columns, name) {
		s.Columns = append(s.Columns, name)
	}
	return s
}

// columns are the names of the columns that are shown.
func (s state) columns() []string {
	if s.Columns == nil {
		return usualColumns
	}
	return s.Columns
}

// values are what a URL says of the list, and what is not usual of it alone.
func (s state) values() url.Values {
	v := url.Values{}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	set("q", s.Q)
	set("sort", s.Sort)
	set("group", s.Group)
	if s.Columns != nil && !slices.Equal(s.Columns, usualColumns) {
		set("columns", strings.Join(s.Columns, ","))
	}
	if s.Parts {
		set("parts", "1")
	}
	if s.Page > 0 {
		set("page", strconv.Itoa(s.Page+1))
	}
	return v
}

// URL is the address of the list, below a base.
func (s state) URL(path string) string {
	v := s.values()
	if len(v) == 0 {
		return path
	}
	// Signs of expressions stay readable in an address that people pass on.
	return path + "?" + readable.Replace(v.Encode())
}

var readable = strings.NewReplacer("%2C", ",", "%7E", "~", "%3A", ":", "%2F", "/")

// first is the list at its first page.
func (s state) first() state {
	s.Page, s.Undo = 0, nil
	return s
}

// sorted is the list in the order of a column: the other way where it is in that order already.
func (s state) sorted(c column) state {
	s = s.first()
	name := c.Sort
	first, second := name, "-"+name
	if c.Down {
		first, second = second, first
	}
	if s.Sort == first {
		first = second
	}
	s.Sort = first
	return s
}
