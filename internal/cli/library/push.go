package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/cli/console"
	"perflab/internal/field"
	"perflab/internal/push"
)

// Variables of a laboratory's address, for CI.
const (
	urlVariable         = "PERFLAB_URL"
	fingerprintVariable = "PERFLAB_FINGERPRINT"
)

// laboratory is the server that a command speaks with.
type laboratory struct {
	url, tokenFile, fingerprint string
}

func (l *laboratory) add(fs *pflag.FlagSet) {
	fs.StringVar(&l.url, "url", "", "address of the laboratory, https://host:port (default "+urlVariable+")")
	fs.StringVar(&l.tokenFile, "token-file", "", "file with the token (default the token in "+tokenVariable+")")
	fs.StringVar(&l.fingerprint, "fingerprint", "", "SHA-256 of the server's certificate, where it made that itself (default "+fingerprintVariable+")")
}

// options are those of the client, checked.
func (l *laboratory) options(env console.Env) (push.Options, error) {
	o := push.Options{URL: l.url, Fingerprint: l.fingerprint}
	if o.URL == "" {
		o.URL = env.Getenv(urlVariable)
	}
	if o.Fingerprint == "" {
		o.Fingerprint = env.Getenv(fingerprintVariable)
	}
	var err error
	if l.tokenFile != "" {
		if o.Token, err = push.ReadToken(l.tokenFile); err != nil {
			return o, console.Usage(fmt.Errorf("--token-file: %w", err))
		}
	} else {
		o.Token = env.Getenv(tokenVariable)
	}
	if o.URL == "" {
		return o, console.Usage(fmt.Errorf("no laboratory is named: give its address by --url or in %s", urlVariable))
	}
	if err := o.Validate(); err != nil {
		return o, console.Usage(err)
	}
	return o, nil
}

// NewPush is perflab push: directories brought to a laboratory.
func NewPush(env console.Env) *cobra.Command {
	var l laboratory
	var asJSON bool
	c := &cobra.Command{
		Use:   "push DIR...",
		Short: "Send runs, series, studies and imports to a laboratory's server",
		Long: `Send directories to the server of a laboratory (perflab serve): runs, series, studies
and imports, or directories that have some in them. What was cut off goes on where it was
with the next push, each file arrives by its digest, and what is there already is not
sent. Directories are only read.

The token needs the role launch. It comes from PERFLAB_TOKEN or --token-file, and is sent
over TLS alone, or on this machine. bench, tune and import push what they made by --push.`,
		Example: `  perflab push perflab-out/quickstart --url https://lab.example.org
  PERFLAB_URL=https://lab.example.org perflab push perflab-out`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.WantArgs(1, "a directory of a run, a series, a study or an import")(c, args)
			}
			o, err := l.options(env)
			if err != nil {
				return err
			}
			return send(c.Context(), env, o, args, asJSON)
		},
	}
	c.Flags().SortFlags = false
	l.add(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print what is in the laboratory now as JSON")
	return c
}

// send pushes directories, shows how far it is, and names the pages of what arrived.
func send(ctx context.Context, env console.Env, o push.Options, dirs []string, asJSON bool) error {
	told, end := progress(env, "push")
	done, err := push.Push(ctx, o, dirs, told)
	end()
	if asJSON {
		return errors.Join(err, console.WriteJSON(env.Stdout, append([]push.Pushed{}, done...)))
	}
	for _, p := range done {
		there := "is in the laboratory"
		if p.There {
			there = "was in the laboratory already"
		}
		fmt.Fprintf(env.Stdout, "%s %s: %s\n", p.Dir, there, p.URL)
		for _, left := range p.Left {
			fmt.Fprintf(env.Stderr, "perflab: %s is no plain file, and stays here\n", left)
		}
	}
	return err
}

// progress shows how far something is on standard error, until end.
func progress(env console.Env, what string) (told func(push.Progress), end func()) {
	var now atomic.Pointer[string]
	now.Store(&what)
	live := console.StartLive(env, func() string { return *now.Load() }, nil)
	return func(p push.Progress) { now.Store(new(what + " " + p.String())) }, live.End
}

// NewPull is perflab pull: entries fetched from a laboratory.
func NewPull(env console.Env) *cobra.Command {
	var l laboratory
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "pull ID|EXPR",
		Short: "Fetch runs, series, studies and imports from a laboratory's server",
		Long: `Fetch entries from the server of a laboratory (perflab serve) into a directory: one by
its ID, the beginning of it or its name, or all that an expression of perflab list holds
for. What is here already is not fetched again, and no directory appears before all of
it has come. The token needs the role read.`,
		Example: `  perflab pull 3fe1c20b77 --url https://lab.example.org
  perflab pull 'tag=release age<30d' --out release`,
		Args: console.WantArgs(1, "an ID, a name or an expression in quotes"),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := l.options(env)
			if err != nil {
				return err
			}
			told, end := progress(env, "pull")
			done, err := push.Pull(c.Context(), o, args[0], out, told)
			end()
			if asJSON {
				return errors.Join(err, console.WriteJSON(env.Stdout, append([]push.Pulled{}, done...)))
			}
			for _, p := range done {
				fmt.Fprintf(env.Stdout, "%s%s\n", p.Dir, map[bool]string{true: " (was here already)"}[p.There])
			}
			return err
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&out, "out", "perflab-out", "directory to put them in")
	l.add(fs)
	fs.BoolVar(&asJSON, "json", false, "print what is here now as JSON")
	return c
}

// Push is the flag by which a command that makes directories sends them to a laboratory.
type Push struct{ url string }

// Add adds the flag.
func (p *Push) Add(fs *pflag.FlagSet) {
	fs.StringVar(&p.url, "push", "", "address of a laboratory (perflab serve) that gets what was made, with the token in "+tokenVariable)
}

// After does the work of a command, and then sends what it made, which made names then. The address is
// checked before; what is not good enough is sent too, and its error is still that of the command.
func (p *Push) After(ctx context.Context, env console.Env, work func() error, made func() []string) error {
	if p.url == "" {
		return work()
	}
	l := laboratory{url: p.url}
	o, err := l.options(env)
	if err != nil {
		if e, ok := errors.AsType[*field.Error](err); ok && e.Path == "url" {
			return console.Usage(field.Errorf("push", "%s", e.Reason))
		}
		return err
	}
	err = work()
	if ctx.Err() != nil {
		return err // who interrupts does not wait for more
	}
	var dirs []string
	for _, dir := range made() {
		if info, serr := os.Stat(dir); serr == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return err // nothing was made, which err says
	}
	if perr := send(ctx, env, o, dirs, false); perr != nil {
		return errors.Join(err, perr)
	}
	return err
}
