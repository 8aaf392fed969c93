package runs

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"perflab/internal/redact"
	"perflab/internal/report/doc"
	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/web/page"
)

// export is a form in which a list can be taken away.
type export struct {
	Name, Label, Media string
	write              func(w io.Writer, heads []column, rows [][]cell) error
}

var exports = []export{
	{"csv", "CSV", "text/csv; charset=utf-8", writeCSV},
	{"json", "JSON", "application/json", writeJSON},
	{"md", "Markdown", "text/markdown; charset=utf-8", writeMarkdown},
}

func exportURL(st state, format string) string {
	st.Page = 0
	v := st.values()
	v.Set("format", format)
	return "/runs/export?" + readable.Replace(v.Encode())
}

// always are the columns that every export has before those that are shown: what is simulated says
// so, and an entry is found again.
var always = []column{
	{Name: "id", Label: "ID", of: text(func(e store.Entry) string { return e.ID })},
	{Name: "simulated", Label: "Simulated", of: text(func(e store.Entry) string {
		if e.Simulated {
			return "SIMULATED"
		}
		return "no"
	})},
}

// mostExported bounds an export.
const mostExported = 100_000

// serveExport gives all pages of a list as a file.
func (s *screen) serveExport(w http.ResponseWriter, r *http.Request) error {
	st, err := readState(r.URL.Query())
	if err != nil {
		return err
	}
	var format export
	for _, f := range exports {
		if f.Name == r.URL.Query().Get("format") {
			format = f
		}
	}
	if format.write == nil {
		return page.Bad("a list is exported as format=csv, json or md")
	}
	if _, err := filter.Parse(st.Q, time.Now()); err != nil {
		return page.Bad(err.Error())
	}
	if _, err := filter.ParseOrder(st.order()); err != nil {
		return page.Bad(err.Error())
	}
	shown, unknown := columnsOf(st.columns())
	if len(unknown) > 0 {
		return page.Bad("there is no column " + strings.Join(unknown, ", "))
	}
	heads := append([]column{}, always...)
	for _, c := range shown {
		if c.Name != "id" {
			heads = append(heads, c)
		}
	}
	rows, err := s.exported(r.Context(), st, heads)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := format.write(&b, heads, rows); err != nil {
		return err
	}
	w.Header().Set("Content-Type", format.Media)
	w.Header().Set("Content-Disposition", `attachment; filename="runs.`+format.Name+`"`)
	_, _ = io.WriteString(w, redact.Shown(b.String())) // as a whole: a secret must not be missed at a seam
	return nil
}

// exported are the rows of all pages.
func (s *screen) exported(ctx context.Context, st state, heads []column) ([][]cell, error) {
	var rows [][]cell
	q := store.Query{Filter: st.condition(st.Q), Order: st.order(), Limit: store.MostPage, Figures: figuresOf(heads)}
	for q.Offset < mostExported {
		p, err := s.o.Store.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, e := range p.Entries {
			line := make([]cell, len(heads))
			for i, c := range heads {
				line[i] = c.of(e)
			}
			rows = append(rows, line)
		}
		if len(p.Entries) < q.Limit {
			break
		}
		q.Offset += len(p.Entries)
	}
	return rows, nil
}

// writeCSV writes names of columns and values; a text that a spreadsheet would take for a formula
// gets an apostrophe.
func writeCSV(w io.Writer, heads []column, rows [][]cell) error {
	out := csv.NewWriter(w)
	line := make([]string, len(heads))
	for i, c := range heads {
		line[i] = c.Name
	}
	if err := out.Write(line); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	for _, r := range rows {
		for i, c := range r {
			line[i] = plain(c)
		}
		if err := out.Write(line); err != nil {
			return fmt.Errorf("write the list: %w", err)
		}
	}
	out.Flush()
	return out.Error()
}

func plain(c cell) string {
	if c.Missing {
		return ""
	}
	if !c.Number && c.Value != "" && strings.ContainsRune("=+-@\t\r", rune(c.Value[0])) {
		if _, err := strconv.ParseFloat(c.Value, 64); err != nil {
			return "'" + c.Value
		}
	}
	return c.Value
}

func writeJSON(w io.Writer, heads []column, rows [][]cell) error {
	out := make([]map[string]any, len(rows))
	for i, r := range rows {
		out[i] = map[string]any{}
		for j, c := range r {
			switch name := heads[j].Name; {
			case c.Missing:
				out[i][name] = nil
			case c.Kind == "tags":
				out[i][name] = c.Tags
			case c.Number:
				out[i][name] = json.Number(c.Value)
			default:
				out[i][name] = c.Value
			}
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return nil
}

func writeMarkdown(w io.Writer, heads []column, rows [][]cell) error {
	d := doc.New("Runs", "", "the list")
	names := make([]string, len(heads))
	for i, c := range heads {
		if names[i] = c.Label; c.Number {
			names[i] = ">" + c.Label
		}
	}
	t := doc.Table{Columns: doc.Columns(names...), Empty: true, HeadCell: -1}
	for _, r := range rows {
		texts := make([]string, len(r))
		for i, c := range r {
			if c.Missing {
				continue
			}
			if texts[i] = c.Text; c.Text == "" {
				texts[i] = c.Value
			}
		}
		t.Rows = append(t.Rows, doc.Dashed(texts...))
	}
	d.Body.Add(doc.Everywhere, t)
	return doc.Markdown(w, d)
}
