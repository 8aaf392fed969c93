// Package library has the commands of what is kept: they list, show, mark and remove what
// directories hold, follow a configuration over time, and serve all of it to browsers. They open
// the index that package store keeps of the directories, and bring it up to date first.
package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/store"
	"perflab/internal/store/filter"
)

// usualDirs are where bench, tune and import write, and where people keep what they made.
var usualDirs = []string{"perflab-out", "runs"}

// Variables that say what flags say, so that neither a path nor a password is typed each time.
const (
	dirVariable   = "PERFLAB_DIR"   // directories, joined as those of PATH are
	storeVariable = "PERFLAB_STORE" // address of a PostgreSQL with the index
	tokenVariable = "PERFLAB_TOKEN" // of a server of a laboratory
)

// errNoDirs says that there is nothing to look through.
var errNoDirs = fmt.Errorf("there is no directory %s here: perflab bench and perflab tune make the first; %s or --dir names another", strings.Join(usualDirs, " or "), dirVariable)

// directories are those that a command looks through: the named ones, those of the environment,
// or the usual ones of the working directory.
func directories(env console.Env, named []string) ([]string, error) {
	from := ""
	if len(named) == 0 && env.Getenv != nil {
		if list := env.Getenv(dirVariable); list != "" {
			from, named = dirVariable+": ", filepath.SplitList(list)
		}
	}
	var out []string
	for _, dir := range named {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil, console.Usage(fmt.Errorf("%sthere is no directory %s", from, dir))
		case err != nil:
			return nil, fmt.Errorf("look into %s: %w", dir, err)
		case !info.IsDir():
			return nil, console.Usage(fmt.Errorf("%s%s is a file: name the directory that holds results", from, dir))
		}
		out = append(out, dir)
	}
	if len(out) > 0 {
		return out, nil
	}
	for _, dir := range usualDirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			out = append(out, dir)
		}
	}
	if len(out) == 0 {
		return nil, console.Usage(errNoDirs)
	}
	return out, nil
}

// place is where a command finds what is kept.
type place struct{ dirs []string }

func (p *place) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&p.dirs, "dir", nil, "directory of results to look through (repeatable; default "+dirVariable+", else perflab-out and runs here)")
	// It fails where the flag is not there, which it is.
	_ = c.MarkFlagDirname("dir")
}

// open opens the index of the directories, and brings it up to date.
func (p *place) open(ctx context.Context, env console.Env) (*store.Store, error) {
	dirs, err := directories(env, p.dirs)
	if err != nil {
		return nil, err
	}
	o := store.Options{Roots: dirs}
	if env.Getenv != nil {
		o.DSN = env.Getenv(storeVariable)
	}
	s, err := store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if _, err := s.Sync(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("look through %s: %w", strings.Join(dirs, ", "), err), s.Close())
	}
	for _, note := range s.Info().Notes {
		fmt.Fprintf(env.Stderr, "perflab: %s\n", note)
	}
	return s, nil
}

// with opens the index for some work, and lets go of it after.
func (p *place) with(ctx context.Context, env console.Env, do func(*store.Store) error) error {
	s, err := p.open(ctx, env)
	if err != nil {
		return err
	}
	return usage(errors.Join(do(s), s.Close()))
}

// usage is an error of what was asked for as one of the command line.
func usage(err error) error {
	if _, ok := errors.AsType[*filter.Error](err); ok {
		return console.Usage(err)
	}
	if _, ok := errors.AsType[*store.NotFoundError](err); ok {
		return console.Usage(err)
	}
	return err
}

// find is the entry that a user means: by its ID, the beginning of it, its name or its directory.
func (p *place) find(ctx context.Context, env console.Env, s *store.Store, what string) (store.Entry, error) {
	e, err := s.Get(ctx, what)
	if _, none := errors.AsType[*store.NotFoundError](err); !none {
		return e, err
	}
	if info, serr := os.Stat(what); serr == nil && info.IsDir() {
		dirs, derr := directories(env, p.dirs)
		if derr == nil {
			return e, console.Usage(fmt.Errorf("%s is no run, series, study or import below %s: --dir names the directory that holds it", what, strings.Join(dirs, ", ")))
		}
	}
	return e, err
}
