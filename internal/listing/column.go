// Package listing makes tables and documents of the entries of an index: what perflab list and
// perflab show print.
//
//	columns, err := listing.Columns([]string{"name", "verdict", "p99_ttft_ms"})
//	page, err := s.List(ctx, store.Query{Figures: listing.Figures(columns)})
//	err = doc.Text(w, listing.Document(page.Entries, columns, now))
//
// Invariants: columns have the names that expressions have; what an entry does not have is missing,
// and never zero; what a simulator made says SIMULATED in its row, whatever columns are shown.
//
// Absent: what is listed, which package store finds.
package listing

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/report/doc"
	"perflab/internal/report/progress"
	"perflab/internal/result"
	"perflab/internal/stat"
	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/store/scan"
)

// Column is a fact or a figure of entries.
type Column struct {
	Name string
	Doc  string
	Type filter.Type

	figure string // metric; "": it is a fact
	value  func(store.Entry) any
}

// sourceName is the column that says who made the figures of an entry.
const sourceName = "source"

// Usual are the columns of a list for which none were chosen.
var Usual = []string{"id", "name", "kind", "verdict", "age", "output_throughput", "p99_ttft_ms", "model"}

// facts are what columns of facts show, by their names in expressions. nil stands for what an
// entry does not have.
var facts = map[string]func(store.Entry) any{
	"kind":           func(e store.Entry) any { return text(string(e.Kind)) },
	"id":             func(e store.Entry) any { return text(e.ID) },
	"name":           func(e store.Entry) any { return text(e.Called()) },
	"title":          func(e store.Entry) any { return text(e.Title) },
	"path":           pathOf,
	"parent":         func(e store.Entry) any { return text(e.Parent) },
	"trial":          func(e store.Entry) any { return count(e.Trial) },
	"started":        func(e store.Entry) any { return instant(e.Started) },
	"age":            func(e store.Entry) any { return instant(e.Started) },
	"duration":       func(e store.Entry) any { return number(e.Duration) },
	"state":          func(e store.Entry) any { return text(string(e.State)) },
	"verdict":        func(e store.Entry) any { return text(e.Verdict) },
	"simulated":      func(e store.Entry) any { return e.Simulated },
	"predicted":      func(e store.Entry) any { return e.Predicted },
	"imported":       func(e store.Entry) any { return text(e.Imported) },
	"engine":         func(e store.Entry) any { return text(e.Engine) },
	"engine_version": func(e store.Entry) any { return text(e.EngineVersion) },
	"image":          func(e store.Entry) any { return text(e.Image) },
	"model":          func(e store.Entry) any { return text(e.Model) },
	"hardware":       func(e store.Entry) any { return text(e.Hardware) },
	"gpus":           func(e store.Entry) any { return count(e.GPUs) },
	"config":         func(e store.Entry) any { return text(e.Config) },
	"workload":       func(e store.Entry) any { return text(e.Workload) },
	"fingerprint":    func(e store.Entry) any { return text(e.Fingerprint) },
	"rate":           func(e store.Entry) any { return number(e.Rate) },
	"limit":          func(e store.Entry) any { return count(e.Limit) },
	"command":        func(e store.Entry) any { return text(e.Command) },
	"build":          func(e store.Entry) any { return text(e.Build) },
	"host":           func(e store.Entry) any { return text(e.Host) },
	"version":        func(e store.Entry) any { return text(e.Version) },
	"size":           func(e store.Entry) any { return number(float64(e.Bytes)) },
	"tag":            func(e store.Entry) any { return text(strings.Join(e.Marks.Tags, " ")) },
	"issue":          issuesOf,
	"note":           func(e store.Entry) any { return text(e.Marks.Note) },
	"pinned":         func(e store.Entry) any { return e.Marks.Pinned },
	"fault":          func(e store.Entry) any { return text(e.Fault) },
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func count(n int) any { return number(float64(n)) }

func number(v float64) any {
	if v == 0 || math.IsNaN(v) {
		return nil
	}
	return v
}

func instant(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

func pathOf(e store.Entry) any {
	if len(e.Places) == 0 {
		return nil
	}
	return text(e.Places[0].Path)
}

func issuesOf(e store.Entry) any {
	var ids []string
	for _, i := range e.Marks.Issues {
		ids = append(ids, i.ID)
	}
	return text(strings.Join(ids, " "))
}

// sourceOf says who made the figures of an entry; nil: perflab measured them.
func sourceOf(e store.Entry) any {
	switch {
	case e.Predicted:
		return "SIMULATED (predicted)"
	case e.Simulated:
		return "SIMULATED"
	}
	return text(e.Imported)
}

// Names are the names of all columns, facts first.
func Names() []string {
	var names []string
	for _, f := range filter.Fields() {
		names = append(names, f.Name)
	}
	for _, m := range result.Metrics() {
		names = append(names, m.Name)
	}
	return names
}

// Columns are the columns of names, as expressions have them. The error names the one that is none.
func Columns(names []string) ([]Column, error) {
	var out []Column
	for _, name := range names {
		c, err := column(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(out, func(has Column) bool { return has.Name == c.Name }) {
			out = append(out, c)
		}
	}
	return out, nil
}

func column(name string) (Column, error) {
	switch name { // both are said
	case "tags", "issues":
		name = strings.TrimSuffix(name, "s")
	}
	for _, f := range filter.Fields() {
		if f.Name == name && facts[name] != nil {
			return Column{Name: name, Doc: f.Doc, Type: f.Type, value: facts[name]}, nil
		}
	}
	if slices.Contains(scan.OwnFigures(), name) {
		return Column{Name: name, Type: filter.Number, figure: name, value: figureOf(name)}, nil
	}
	m, err := result.Lookup(name)
	if err == nil {
		return Column{Name: m.Name, Doc: m.Doc, Type: filter.Number, figure: m.Name, value: figureOf(m.Name)}, nil
	}
	if near := stat.Nearest(name, Names()); near != "" {
		return Column{}, fmt.Errorf("there is no column %q: did you mean %s?", name, near)
	}
	return Column{}, fmt.Errorf("there is no column %q: columns are facts, such as %s, and the metrics of docs/metrics.md", name, strings.Join(Usual[:5], ", "))
}

func figureOf(metric string) func(store.Entry) any {
	return func(e store.Entry) any {
		f, ok := e.Figure(metric)
		if !ok || math.IsNaN(f.Value) {
			return nil
		}
		return f.Value
	}
}

// Figures are the metrics that columns show, for the query of a list.
func Figures(columns []Column) (metrics []string) {
	for _, c := range columns {
		if c.figure != "" {
			metrics = append(metrics, c.figure)
		}
	}
	return metrics
}

// shown is what a table has of a value.
func (c Column) shown(v any, now time.Time) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return map[bool]string{true: "yes"}[v]
	case time.Time:
		if c.Type == filter.Age {
			return Age(now, v)
		}
		return v.UTC().Format("2006-01-02 15:04")
	case float64:
		return c.number(v)
	case string:
		if c.Name == "id" || c.Name == "parent" || c.Name == "config" || c.Name == "fingerprint" {
			return ShortID(v)
		}
		return clip(doc.OneLine(v))
	}
	return fmt.Sprint(v)
}

func (c Column) number(v float64) string {
	switch {
	case c.Type == filter.Seconds:
		return progress.Brief(time.Duration(v * float64(time.Second)))
	case c.Type == filter.Size:
		return size(v)
	case c.figure != "":
		return Figure(c.figure, v)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// raw is what a file of values has of a value.
func raw(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return strconv.FormatBool(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		// A spreadsheet takes such a text for a formula; names of files are written by strangers.
		if strings.ContainsRune("=+-@\t\r", rune(v[0])) {
			return "'" + v
		}
		return v
	}
	return fmt.Sprint(v)
}

// Figure writes a figure as the metric table has it.
func Figure(metric string, v float64) string {
	m, err := result.Lookup(metric)
	switch {
	case err == nil:
		return strconv.FormatFloat(v, 'f', m.Decimals, 64)
	case metric == scan.Gain:
		return fmt.Sprintf("%+.1f %%", 100*v)
	case metric == scan.GPUHours:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// Age says how long before now something was, in the largest unit that it fills.
func Age(now, t time.Time) string {
	d := now.Sub(t)
	for _, u := range []struct {
		is   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if d >= u.is {
			return fmt.Sprintf("%d %s", d/u.is, u.name)
		}
	}
	if d < 0 { // by the clock of another machine
		return t.UTC().Format("2006-01-02 15:04")
	}
	return "just now"
}

// size writes bytes.
func size(v float64) string {
	if v == 1 {
		return "1 byte"
	}
	for _, unit := range []string{"bytes", "KB", "MB", "GB"} {
		if v < 1000 {
			return strconv.FormatFloat(v, 'g', 3, 64) + " " + unit
		}
		v /= 1000
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " TB"
}

// ShortID is as much of an ID as people type.
func ShortID(id string) string { return id[:min(len(id), 10)] }

// widest is how much of a text a table shows.
const widest = 36

func clip(s string) string {
	if r := []rune(s); len(r) > widest {
		return strings.TrimSpace(string(r[:widest-1])) + "…"
	}
	return s
}
