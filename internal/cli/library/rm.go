package library

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/store"
)

type rmFlags struct {
	place
	yes, undo, trash bool
}

// NewRm is perflab rm: directories moved into the trash.
func NewRm(env console.Env) *cobra.Command {
	f := &rmFlags{}
	c := &cobra.Command{
		Use:   "rm ID...",
		Short: "Move runs, studies and imports into the trash, or back from it",
		Long: `Move the directories of entries into .perflab/trash below the directory of results,
where they stay until somebody deletes them there. On a terminal it asks first; elsewhere
it needs --yes. What goes on, and what is a part of a study that goes on, is refused.

--undo moves back: what was removed last, or the entries that are named.`,
		Example: "  perflab rm 3fe1c20b77\n  perflab rm 3fe1c20b77 perflab-out/run-2 --yes\n  perflab rm --undo\n  perflab rm --trash",
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c.Context(), env, args) },
	}
	c.Flags().SortFlags = false
	c.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&f.undo, "undo", false, "move back from the trash")
	c.Flags().BoolVar(&f.trash, "trash", false, "list what is in the trash")
	f.add(c)
	c.ValidArgsFunction = f.entries(env)
	return c
}

func (f *rmFlags) run(ctx context.Context, env console.Env, what []string) error {
	switch {
	case f.undo && f.trash:
		return console.Usage(errors.New("--undo and --trash exclude each other: give one"))
	case f.trash && len(what) > 0:
		return console.Usage(errors.New("--trash lists all that is in the trash: name no entries"))
	case !f.undo && !f.trash && len(what) == 0:
		return console.Usage(errors.New("perflab rm needs entries to remove, by ID, name or directory (perflab list shows them)"))
	case !f.undo && !f.trash && !f.yes && !env.Asks:
		return console.Usage(errors.New("perflab rm asks before it removes anything, and this is no terminal: give --yes"))
	}
	return f.with(ctx, env, func(s *store.Store) error {
		switch {
		case f.trash:
			return listTrash(ctx, env, s)
		case f.undo:
			return restore(ctx, env, s, what)
		}
		return f.remove(ctx, env, s, what)
	})
}

func (f *rmFlags) remove(ctx context.Context, env console.Env, s *store.Store, what []string) error {
	entries, err := f.findAll(ctx, env, s, what)
	if err != nil {
		return err
	}
	if !f.yes {
		for _, e := range entries {
			fmt.Fprintf(env.Stderr, "%s %s\n", e.Kind, e.Dir())
		}
		yes, err := agreed(ctx, env)
		if err != nil {
			return err
		}
		if !yes {
			fmt.Fprintln(env.Stderr, "nothing was removed")
			return nil
		}
	}
	for _, e := range entries {
		r, err := s.Remove(ctx, console.User(), e.ID)
		if err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "%s is in the trash: %s\n", e.Called(), r.Dir())
		if len(e.Places) > 1 {
			fmt.Fprintf(env.Stderr, "it has another place, where it stays: %s\n", e.Places[1].Dir())
		}
	}
	return nil
}

// agreed asks whether to move what was named.
func agreed(ctx context.Context, env console.Env) (bool, error) {
	fmt.Fprint(env.Stderr, "Move into the trash? [y/N] ")
	answer := ""
	err := console.Within(ctx, func() error {
		lines := bufio.NewScanner(env.Stdin)
		if lines.Scan() {
			answer = lines.Text()
		}
		return lines.Err()
	})
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", err
}

func listTrash(ctx context.Context, env console.Env, s *store.Store) error {
	all, err := s.Trash(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		fmt.Fprintf(env.Stdout, "%s  %s  %s\n", r.Entry[:min(len(r.Entry), 10)], r.Path, r.Dir())
	}
	if len(all) == 0 {
		fmt.Fprintln(env.Stderr, "the trash is empty")
	}
	return nil
}

// restore moves back what was removed last, or what is named by ID or by where it lay.
func restore(ctx context.Context, env console.Env, s *store.Store, what []string) error {
	all, err := s.Trash(ctx)
	if err != nil {
		return err
	}
	var chosen []store.Removed
	for _, w := range what {
		n := len(chosen)
		for _, r := range all {
			if strings.HasPrefix(r.Entry, w) || r.Path == w || r.Trash == w || strings.HasSuffix(strings.TrimSuffix(w, "/"), "/"+r.Path) {
				chosen = append(chosen, r)
				break
			}
		}
		if len(chosen) == n {
			return console.Usage(fmt.Errorf("there is no %q in the trash: perflab rm --trash lists it", w))
		}
	}
	if len(what) == 0 {
		if len(all) == 0 {
			return console.Usage(errors.New("the trash is empty"))
		}
		chosen = all[:1]
	}
	for _, r := range chosen {
		if err := s.Restore(ctx, console.User(), r); err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "%s is back below %s\n", r.Path, r.Root)
	}
	return nil
}
