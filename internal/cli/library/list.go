package library

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/listing"
	"perflab/internal/report/doc"
	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/store/scan"
)

const listLong = `List runs, series, studies, imports and sites below the directories of results, the
newest first, pinned ones before them.

Expressions say which: comparisons of facts (engine=vllm, model=~qwen, age<7d, tag=keep,
verdict!=void), bounds on figures as SLOs have them (p99_ttft_ms<=200), and words that
stand anywhere. All must hold. Several values of one fact: engine=vllm|sglang; what has
none: tag=none. docs/store.md lists the facts, docs/metrics.md the figures. Quote < and >
for the shell.

What lies in a study, a series or an import is listed with --all, or where an expression
names parent or trial.`

type listFlags struct {
	place
	sort, columns, kind string
	limit               int
	all, json, csv      bool
}

// NewList is perflab list: what there is.
func NewList(env console.Env) *cobra.Command {
	f := &listFlags{}
	c := &cobra.Command{
		Use:   "list [EXPR...]",
		Short: "Runs, series, studies and imports: filtered, sorted, as a table, JSON or CSV",
		Long:  listLong,
		Example: `  perflab list
  perflab list engine=vllm 'p99_ttft_ms<=200' --sort -output_throughput
  perflab list --kind study --columns name,verdict,gain,trials,age
  perflab list --all tag=release --csv > release.csv`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), env, args) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.sort, "sort", "", "facts and figures to sort by, by commas; - before one: the most first (default pinned, then newest)")
	fs.StringVar(&f.columns, "columns", strings.Join(listing.Usual, ","), "facts and figures to show, by commas")
	fs.StringVar(&f.kind, "kind", "", "run, series, study, import or site; several by commas")
	fs.IntVar(&f.limit, "limit", 50, "how many to show; 0: all")
	fs.BoolVar(&f.all, "all", false, "what lies in studies, series and imports too")
	fs.BoolVar(&f.json, "json", false, "print entries with all that is known of them, and the shown figures, as JSON")
	fs.BoolVar(&f.csv, "csv", false, "print the columns as CSV, with whole values")
	f.add(c)
	return c
}

func (f *listFlags) run(ctx context.Context, env console.Env, exprs []string) error {
	columns, err := listing.Columns(strings.Split(f.columns, ","))
	if err != nil {
		return console.Usage(fmt.Errorf("--columns: %w", err))
	}
	_, err = filter.ParseOrder(f.sort)
	if e, ok := errors.AsType[*filter.Error](err); ok {
		return console.Usage(fmt.Errorf("--sort, character %d: %s", e.At, e.Text))
	}
	if f.json && f.csv {
		return console.Usage(errors.New("--json and --csv are two forms: give one"))
	}
	if f.limit < 0 {
		return console.Usage(fmt.Errorf("--limit is %d: it must be a whole number from 0", f.limit))
	}
	expr, err := f.expression(exprs)
	if err != nil {
		return err
	}
	return f.with(ctx, env, func(s *store.Store) error {
		q := store.Query{Filter: expr, Order: f.sort, Limit: f.limit, Figures: listing.Figures(columns), Now: time.Now()}
		page, err := pages(ctx, s, q)
		if err != nil {
			return err
		}
		switch {
		case f.json:
			return console.WriteJSON(env.Stdout, page)
		case f.csv:
			return listing.CSV(env.Stdout, page.Entries, columns)
		}
		if len(page.Entries) == 0 {
			return f.nothing(ctx, env, s, len(exprs) > 0 || f.kind != "")
		}
		if err := doc.Text(env.Stdout, listing.Document(page.Entries, columns, q.Now)); err != nil {
			return err
		}
		if n := page.Total - len(page.Entries); n > 0 {
			fmt.Fprintf(env.Stderr, "%d more: --limit 0 shows all\n", n)
		}
		return nil
	})
}

// expression joins what is asked for. What is added stands at its end, so that places in errors are
// the user's.
func (f *listFlags) expression(exprs []string) (string, error) {
	expr := strings.Join(exprs, " ")
	inside := strings.Contains(expr, "parent") || strings.Contains(expr, "trial")
	if f.kind != "" {
		kinds := strings.Split(f.kind, ",")
		for _, k := range kinds {
			if !slices.Contains(scan.Kinds(), scan.Kind(k)) {
				return "", console.Usage(fmt.Errorf("--kind %q is none: there are run, series, study, import and site", k))
			}
		}
		expr += " kind=" + strings.Join(kinds, "|")
	}
	if !f.all && !inside {
		expr += " parent=none"
	}
	return strings.TrimSpace(expr), nil
}

// pages is a list of as many entries as the query asks for; 0: all.
func pages(ctx context.Context, s *store.Store, q store.Query) (store.Page, error) {
	most := q.Limit
	out := store.Page{Entries: []store.Entry{}}
	for {
		q.Limit, q.Offset = store.MostPage, len(out.Entries)
		if most > 0 {
			q.Limit = min(q.Limit, most-len(out.Entries))
		}
		p, err := s.List(ctx, q)
		if err != nil {
			return out, err
		}
		out.Total, out.Version = p.Total, p.Version
		out.Entries = append(out.Entries, p.Entries...)
		if len(p.Entries) < q.Limit || len(out.Entries) == most {
			return out, nil
		}
	}
}

// nothing says why a list is empty.
func (f *listFlags) nothing(ctx context.Context, env console.Env, s *store.Store, asked bool) error {
	all, err := s.List(ctx, store.Query{Limit: 1})
	if err != nil {
		return err
	}
	switch {
	case all.Total == 0:
		fmt.Fprintln(env.Stderr, "nothing is there yet: perflab tune examples/quickstart.yaml makes a study without a GPU, perflab bench a run, perflab import DIR takes another client's files")
	case asked:
		fmt.Fprintf(env.Stderr, "none of %s is so: perflab list --all shows what there is\n", map[bool]string{true: "1 entry", false: fmt.Sprintf("%d entries", all.Total)}[all.Total == 1])
	default:
		fmt.Fprintln(env.Stderr, "all that is there lies in studies, series and imports: --all lists it")
	}
	return nil
}
