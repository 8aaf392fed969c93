package library

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/listing"
	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/store/scan"
)

// mostCompleted is how many entries a shell is told of: the newest.
const mostCompleted = 200

// peek opens the index for a shell that waits: it is not brought up to date.
func (p *place) peek(ctx context.Context, env console.Env) *store.Store {
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	dirs, err := directories(env, p.dirs)
	if err != nil {
		return nil
	}
	s, err := store.Open(ctx, store.Options{Roots: dirs, DSN: env.Getenv(storeVariable)})
	if err != nil {
		return nil // a shell has no place for it
	}
	return s
}

// contextOf is the command's, which has none while a shell completes by it.
func contextOf(c *cobra.Command) context.Context {
	if ctx := c.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// entries completes IDs, with what each is; else directories.
func (p *place) entries(env console.Env) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		s := p.peek(contextOf(c), env)
		if s == nil {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		defer s.Close() // it was only read
		page, err := s.List(contextOf(c), store.Query{Filter: "parent=none", Limit: mostCompleted})
		if err != nil {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		var out []cobra.Completion
		for _, e := range page.Entries {
			if id := listing.ShortID(e.ID); strings.HasPrefix(id, typed) {
				out = append(out, cobra.CompletionWithDesc(id, string(e.Kind)+" "+e.Called()))
			}
		}
		if len(out) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// expressions completes facts and figures, and behind "=" the values that there are.
func (p *place) expressions(env console.Env) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		name, value, compared := strings.Cut(typed, "=")
		if !compared {
			var out []cobra.Completion
			for _, f := range filter.Fields() {
				if strings.HasPrefix(f.Name, typed) {
					out = append(out, cobra.CompletionWithDesc(f.Name+"=", f.Doc))
				}
			}
			for _, m := range result.Metrics() {
				if typed != "" && strings.HasPrefix(m.Name, typed) {
					out = append(out, cobra.CompletionWithDesc(m.Name+"<=", m.Doc))
				}
			}
			return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		}
		var out []cobra.Completion
		for _, v := range p.values(contextOf(c), env, name) {
			if strings.HasPrefix(strings.ToLower(v), strings.ToLower(value)) && !strings.ContainsAny(v, " ,'\"|") {
				out = append(out, name+"="+v)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// values are those that a fact can have, or has in the index.
func (p *place) values(ctx context.Context, env console.Env, name string) (values []string) {
	i := slices.IndexFunc(filter.Fields(), func(f filter.Field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	switch f := filter.Fields()[i]; {
	case f.Type == filter.Choice:
		return f.Values
	case f.Type == filter.Bool:
		return []string{"true", "false"}
	case !f.Groupable():
		return nil
	}
	s := p.peek(ctx, env)
	if s == nil {
		return nil
	}
	defer s.Close() // it was only read
	groups, err := s.Groups(ctx, store.Query{}, name)
	if err != nil {
		return nil
	}
	for _, g := range groups {
		if g.Value != "" {
			values = append(values, g.Value)
		}
	}
	return values
}

// listOf completes the last of some values that commas join.
func listOf(of func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before, last := "", typed
		if i := strings.LastIndexByte(typed, ','); i >= 0 {
			before, last = typed[:i+1], typed[i+1:]
		}
		if strings.HasPrefix(last, "-") { // the most first
			before, last = before+"-", last[1:]
		}
		var out []cobra.Completion
		for _, v := range of() {
			if strings.HasPrefix(v, last) {
				out = append(out, before+v)
			}
		}
		return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
}

// complete has a shell complete a flag of the command.
func complete(c *cobra.Command, flag string, of func() []string) {
	// It fails where the flag is not there, which it is.
	_ = c.RegisterFlagCompletionFunc(flag, listOf(of))
}

func metricNames() (names []string) {
	for _, m := range result.Metrics() {
		names = append(names, m.Name)
	}
	return names
}

func kindNames() (names []string) {
	for _, k := range scan.Kinds() {
		if k != scan.Folder {
			names = append(names, string(k))
		}
	}
	return names
}
