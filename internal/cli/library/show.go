package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/listing"
	"perflab/internal/report/doc"
	"perflab/internal/store"
	"perflab/internal/store/scan"
)

// NewShow is perflab show: all that is known of one entry.
func NewShow(env console.Env) *cobra.Command {
	var p place
	var asJSON bool
	c := &cobra.Command{
		Use:   "show ID|NAME|DIR",
		Short: "What is known of a run, a series, a study or an import: facts, figures, marks, files",
		Long: `Show facts, figures, marks and files of one entry, named by its ID or the beginning of
it (as perflab list prints), by its name, or by its directory. perflab report DIR prints
the whole report.`,
		Example: "  perflab show 3fe1c20b77\n  perflab show perflab-out/quickstart --json",
		Args:    console.WantArgs(1, "an ID, a name or a directory"),
		RunE:    func(c *cobra.Command, args []string) error { return runShow(c.Context(), env, p, args[0], asJSON) },
	}
	c.Flags().SortFlags = false
	c.Flags().BoolVar(&asJSON, "json", false, "print all of it as JSON, with every figure")
	p.add(c)
	return c
}

// shown is what show prints as JSON.
type shown struct {
	store.Entry
	Parts []string       `json:"parts,omitempty"` // IDs of what lies in it
	Files []listing.File `json:"files,omitempty"` // of its directory
}

func runShow(ctx context.Context, env console.Env, p place, what string, asJSON bool) error {
	return p.with(ctx, env, func(s *store.Store) error {
		e, err := p.find(ctx, env, s, what)
		if err != nil {
			return err
		}
		var parts []store.Entry
		if e.Kind == scan.Study || e.Kind == scan.Series || e.Kind == scan.Import {
			if parts, err = s.Parts(ctx, e.ID); err != nil {
				return err
			}
		}
		files, err := filesOf(e.Dir())
		if err != nil {
			return err
		}
		if !asJSON {
			return doc.Text(env.Stdout, listing.Show(e, parts, files, time.Now()))
		}
		out := shown{Entry: e, Files: files}
		for _, part := range parts {
			out.Parts = append(out.Parts, part.ID)
		}
		return console.WriteJSON(env.Stdout, out)
	})
}

// filesOf are the files of a directory, without what lies below it.
func filesOf(dir string) ([]listing.File, error) {
	if dir == "" { // on another machine
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", dir, err)
	}
	var out []listing.File
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // it went just now
		case err != nil:
			return nil, fmt.Errorf("look into %s: %w", dir, err)
		case info.Mode().IsRegular():
			out = append(out, listing.File{Name: e.Name(), Bytes: info.Size()})
		}
	}
	return out, nil
}
