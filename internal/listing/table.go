package listing

import (
	"encoding/csv"
	"fmt"
	"io"
	"time"

	"perflab/internal/report/doc"
	"perflab/internal/store"
)

// Document is a list as a table.
func Document(entries []store.Entry, columns []Column, now time.Time) doc.Document {
	columns = withSource(entries, columns)
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	t := doc.Table{Columns: doc.Columns(names...), Trimmed: true}
	for _, e := range entries {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = c.shown(c.value(e), now)
		}
		t.Rows = append(t.Rows, doc.Dashed(cells...))
	}
	d := doc.New("Entries", "", "the list")
	d.Body.Add(doc.Everywhere, t)
	return d
}

// withSource adds who made the figures where it was not perflab's measuring of something real.
func withSource(entries []store.Entry, columns []Column) []Column {
	for _, e := range entries {
		if sourceOf(e) != nil {
			return append(columns[:len(columns):len(columns)], Column{Name: sourceName, value: sourceOf})
		}
	}
	return columns
}

// CSV writes a list with a line of names and whole values.
func CSV(w io.Writer, entries []store.Entry, columns []Column) error {
	columns = withSource(entries, columns)
	out := csv.NewWriter(w)
	line := make([]string, len(columns))
	for i, c := range columns {
		line[i] = c.Name
	}
	if err := out.Write(line); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	for _, e := range entries {
		for i, c := range columns {
			line[i] = raw(c.value(e))
		}
		if err := out.Write(line); err != nil {
			return fmt.Errorf("write the list: %w", err)
		}
	}
	out.Flush()
	return out.Error()
}
