package library

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/cli/machines"
	"perflab/internal/durable"
	"perflab/internal/fleet"
	"perflab/internal/fleet/bus"
	"perflab/internal/store"
	"perflab/internal/web"
	"perflab/internal/web/allow"
	"perflab/internal/web/guard"
)

type serveFlags struct {
	web.Options
	dirs    []string
	proxies []string
	allow   string
	example bool
	person  string
	reserve int64
	argued  bool // the token stands in the command line
	fleet   string
	hub     machines.Hub // of a fleet that meets at an outside server
}

const serveLong = `Serve what directories hold as a laboratory for a team: lists of runs and studies,
comparisons, histories, imports, launches from a browser, and an API for scripts.

The directories are those named, else those of PERFLAB_DIR, else perflab-out and runs
here. They stay the truth: the server follows what comes, changes and goes in them, and
its index is made anew of them at any time. Launches, imports and pushes go into the
first of them.

Without tokens the server listens on this machine alone, and everybody who reaches it
there may do everything. For others it needs tokens (PERFLAB_TOKEN, --tokens or
--new-token) and TLS (--certificate with --key, --make-certificate, or --proxy with the
address of what ends TLS before it). docs/serve.md sets up a team in ten minutes.

A launch is a process of its own. It goes on when the server ends, and the next server
finds it. What launches may use stands in the file of --allow; without one they may use
simulated engines, and engines by their usual names on this machine.

Variables of the environment: PERFLAB_DIR (directories, joined by :), PERFLAB_TOKEN (as
--token), PERFLAB_STORE (as --store), which no list of processes shows.`

const serveExample = `  perflab serve
  perflab serve perflab-out /data/runs
  perflab serve /data/runs --listen :8790 --new-token --make-certificate
  perflab serve /data/runs --host lab.example.org --proxy 127.0.0.1 --tokens /etc/perflab/tokens
  perflab serve /data/runs --hub tls://nats.example.org:4222 --hub-seed leader.nk
  perflab serve --print-allow > allow.yaml`

var serveHelp = console.Help{Groups: []console.FlagGroup{
	{Title: "What is served", Flags: "title read-only store state reserve"},
	{Title: "Who may come in", Flags: "listen host token tokens new-token add-token proxy certificate key make-certificate"},
	{Title: "Launches", Flags: "allow print-allow at-once"},
	{Title: "Several machines", Flags: "fleet " + machines.HubFlags},
}}

// NewServe is perflab serve: the laboratory as a server.
func NewServe(env console.Env) *cobra.Command {
	f := &serveFlags{}
	c := &cobra.Command{
		Use:     "serve [DIR...]",
		Short:   "Serve runs and studies to browsers: lists, comparisons, histories, launches, and an API",
		Long:    serveLong,
		Example: serveExample,
		RunE: func(c *cobra.Command, args []string) error {
			if f.example {
				_, err := fmt.Fprint(env.Stdout, allow.Example)
				return err
			}
			f.dirs, f.argued = args, c.Flags().Changed("token")
			if f.person != "" {
				return f.addToken(env)
			}
			return f.run(c.Context(), env)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.Guard.Listen, "listen", "127.0.0.1:8790", "address to listen on, host:port; :8790 is every address of this machine")
	fs.StringArrayVar(&f.Guard.Hosts, "host", nil, "name by which browsers call the server, beside localhost (repeatable; default this machine's, where others reach it)")
	fs.StringVar(&f.Guard.Token, "token", "", "one token, of somebody who administers; better PERFLAB_TOKEN, which other users do not see")
	fs.StringVar(&f.Guard.Tokens, "tokens", "", "file of tokens, a line each: role (read, launch, administer), name, sha256:HASH")
	fs.BoolVar(&f.Guard.NewToken, "new-token", false, "make a token at the first start, show it once, and keep its hash")
	fs.StringVar(&f.person, "add-token", "", "make a token of ROLE:NAME, such as launch:anna, add its hash to the file of tokens, print it, and stop")
	fs.StringArrayVar(&f.proxies, "proxy", nil, "address, or network, of a proxy that ends TLS; nobody else may connect then (repeatable)")
	fs.StringVar(&f.Guard.Certificate, "certificate", "", "file of the TLS certificate, PEM; it is read again when it changes")
	fs.StringVar(&f.Guard.Key, "key", "", "file of its key, PEM")
	fs.BoolVar(&f.Guard.MakeCertificate, "make-certificate", false, "make a certificate, and print its fingerprint")
	fs.StringVar(&f.allow, "allow", "", "file of what launches may use: images, files, hosts, hooks")
	fs.BoolVar(&f.example, "print-allow", false, "print such a file with every key and what it means")
	fs.IntVar(&f.AtOnce, "at-once", 1, "launches that run together, where they share no device")
	fs.StringVar(&f.fleet, "fleet", "", "address at which the machines of a fleet reach this server, host:port; :7422 is every address of this machine")
	f.hub.AddOutside(fs)
	fs.StringVar(&f.DSN, "store", "", "PostgreSQL for the index, postgres://user@host/database (default a file in .perflab below the first directory)")
	fs.StringVar(&f.State, "state", "", "directory of keys, audit log and launches (default .perflab/server below the first directory)")
	fs.Int64Var(&f.reserve, "reserve", 1, "GiB of the disk that pushed directories leave free")
	fs.BoolVar(&f.ReadOnly, "read-only", false, "nothing is launched, imported, marked or removed")
	fs.StringVar(&f.Lab, "title", "", "name of the laboratory, at the head of each page")
	console.GroupHelp(c, serveHelp)
	return c
}

func (f *serveFlags) run(ctx context.Context, env console.Env) error {
	if err := f.fill(env); err != nil {
		return err
	}
	closeFleet, err := f.openFleet(ctx, env)
	if err != nil {
		return err
	}
	defer closeFleet()
	s, err := web.Open(ctx, f.Options)
	if err != nil {
		return err
	}
	for _, note := range s.Notes() {
		fmt.Fprintf(env.Stderr, "perflab: %s\n", note)
	}
	if err = f.showToken(env, s.Guard().MadeToken()); err == nil {
		err = s.Run(ctx, func(address string) { f.tell(env, s, address) })
	}
	if n := s.Going(); n > 0 {
		fmt.Fprintf(env.Stderr, "perflab: launches under way: %d; they go on, and the next server finds them\n", n)
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("close the laboratory: %w", err)
	}
	return err
}

// openFleet opens the hub of a fleet, where there is to be one, or meets the fleet of an outside server, until close is
// called.
func (f *serveFlags) openFleet(ctx context.Context, env console.Env) (close func(), err error) {
	lead := fleet.Options{Who: "the laboratory's server", Version: f.Version, Log: f.Log}
	switch {
	case f.hub.Given() && f.fleet != "":
		return nil, console.Usage(errors.New("--fleet opens a hub here and --hub names an outside server: give one or the other"))
	case f.hub.Given():
		l, children, stop, err := f.hub.Outside(ctx, env, lead, f.Log)
		f.Fleet, f.Env = l, append(f.Env, children...)
		return stop, err
	case f.fleet == "":
		return func() {}, nil
	}
	o := bus.Options{Dir: filepath.Join(f.State, fleet.Folder), Listen: f.fleet, Version: f.Version, Log: f.Log}
	hub, err := fleet.OpenHub(ctx, o)
	if err != nil {
		return nil, err
	}
	l, err := fleet.Lead(ctx, hub.Conn(), lead)
	if err != nil {
		return nil, errors.Join(err, hub.Close())
	}
	f.Fleet = l
	if dir, err := filepath.Abs(o.Dir); err == nil { // else a launch that wants a fleet says that there is none
		f.Env = append(f.Env, machines.HubVariable+"="+dir)
	}
	return func() {
		l.Close()
		if err := hub.Close(); err != nil {
			f.Log.Error("the fleet's hub did not end well", "error", err)
		}
	}, nil
}

// fill makes options of the flags and the environment.
func (f *serveFlags) fill(env console.Env) error {
	if f.argued {
		fmt.Fprintf(env.Stderr, "perflab: warning: other users of this machine can see --token in the list of processes; %s and --tokens FILE are not seen\n", tokenVariable)
	} else if f.Guard.Tokens == "" && !f.Guard.NewToken {
		f.Guard.Token = env.Getenv(tokenVariable)
	}
	f.DSN = cmp.Or(f.DSN, env.Getenv(storeVariable))
	var err error
	for _, text := range f.proxies {
		p, err := prefix(text)
		if err != nil {
			return console.Usage(err)
		}
		f.Guard.Proxies = append(f.Guard.Proxies, p)
	}
	if f.allow != "" {
		if f.Allow, err = allow.Read(f.allow); err != nil {
			return console.Usage(fmt.Errorf("--allow: %w", err))
		}
	}
	if f.AtOnce < 1 {
		return console.Usage(fmt.Errorf("--at-once is %d: at least one launch runs at a time", f.AtOnce))
	}
	if f.reserve < 1 || f.reserve > 1<<20 {
		return console.Usage(fmt.Errorf("--reserve is %d: it must be 1 GiB at least", f.reserve))
	}
	f.Reserve = f.reserve << 30
	if len(f.Guard.Hosts) == 0 && !loopback(f.Guard.Listen) {
		if name, err := os.Hostname(); err == nil {
			f.Guard.Hosts = []string{name}
		}
	}
	f.Guard.State = cmp.Or(f.State, ".") // which stands for any, so that nothing is made before all is checked
	if err := f.Guard.Validate(); err != nil {
		return console.Usage(err)
	}
	if f.Roots, err = f.roots(env); err != nil {
		return err
	}
	f.State = cmp.Or(f.State, stateBelow(f.Roots[0]))
	f.Guard.State = f.State
	f.Version, f.Program, f.Env = env.Version, env.Self, withoutSecrets(env.Environ)
	f.Log = slog.New(slog.NewTextHandler(env.Stderr, nil))
	return nil
}

// roots are the directories that are served. Where none is named and none is here, the one that
// bench and tune write to is made: the first visit says how to get the first run.
func (f *serveFlags) roots(env console.Env) ([]string, error) {
	if len(f.dirs) == 0 && env.Getenv(dirVariable) == "" && !f.ReadOnly {
		missing := true
		for _, dir := range usualDirs {
			_, err := os.Stat(dir)
			missing = missing && os.IsNotExist(err)
		}
		if missing {
			if err := durable.MkdirAll(usualDirs[0]); err != nil {
				return nil, fmt.Errorf("make the directory of results: %w", err)
			}
		}
	}
	return directories(env, f.dirs)
}

// loopback says that an address to listen on is one that only this machine reaches.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	ip, _ := netip.ParseAddr(host) // the zero value is none
	return err != nil || host == "localhost" || ip.IsLoopback()
}

// prefix reads an address or a network.
func prefix(text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("--proxy %q is no address, such as 127.0.0.1, and no network, such as 10.0.0.0/24", text)
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// withoutSecrets is the environment that launches get: those who may launch do not administer.
func withoutSecrets(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return name == tokenVariable || name == storeVariable
	})
}

// addToken makes somebody's token, and prints it alone on standard output.
func (f *serveFlags) addToken(env console.Env) error {
	word, name, ok := strings.Cut(f.person, ":")
	role, err := guard.ParseRole(word)
	if err != nil || !ok || name == "" {
		return console.Usage(fmt.Errorf("--add-token %q is no role and name: write it as read:NAME, launch:NAME or administer:NAME", f.person))
	}
	file := f.Guard.Tokens
	if file == "" && f.State == "" {
		roots, err := f.roots(env)
		if err != nil {
			return err
		}
		f.State = stateBelow(roots[0])
	}
	file = cmp.Or(file, filepath.Join(f.State, guard.TokensFile))
	token, err := guard.AddToken(file, name, role)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "the hash is in %s: a server with --tokens of that file takes the token at once\n", file)
	_, err = fmt.Fprintln(env.Data(), token)
	return err
}

// stateBelow is the directory of a server's own things where none is named.
func stateBelow(root string) string { return filepath.Join(root, store.Folder, "server") }

// firstTokenFile is where a token that was made is, if no terminal could show it.
const firstTokenFile = "first-token"

// showToken shows a token that was made: this once on a terminal, which nobody keeps. What is no
// terminal is a log as a rule, so there it goes into a file that the server's user alone reads.
func (f *serveFlags) showToken(env console.Env, token string) error {
	if token == "" {
		return nil
	}
	if console.IsTerminal(env.Data()) {
		_, err := fmt.Fprintf(env.Data(), "Token of admin, shown this once: %s\n", token)
		return err
	}
	path := filepath.Join(f.State, firstTokenFile)
	if err := durable.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep the first token: %w", err)
	}
	fmt.Fprintf(env.Stdout, "Token of admin: in %s, since this is no terminal; read it and remove the file\n", path)
	return nil
}

// tell says where the server is.
func (f *serveFlags) tell(env console.Env, s *web.Server, address string) {
	fmt.Fprintf(env.Stdout, "Laboratory: %s\n", f.reachable(address))
	if f.Guard.MakeCertificate {
		fmt.Fprintf(env.Stdout, "Certificate: made by this server; its SHA-256 fingerprint, which a browser shows too:\n  %s\n", s.Guard().Fingerprint())
	}
	fmt.Fprintf(env.Stdout, "Directories: %s\n", strings.Join(f.Roots, ", "))
	if f.hub.Given() {
		fmt.Fprintln(env.Stdout, "Fleet: at the NATS server that --hub names")
	}
	if f.fleet != "" {
		fmt.Fprintln(env.Stdout, "Fleet: machines join by perflab fleet invite, or from the screen Fleet")
	}
	if s.Guard().Open() {
		fmt.Fprintln(env.Stdout, "Tokens: none; everybody on this machine may do everything")
	}
	fmt.Fprintln(env.Stdout, "An interrupt (Ctrl-C) ends the server; launches go on")
}

// reachable is an address that a browser can open: a server on all addresses is called by its name.
func (f *serveFlags) reachable(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil || !ip.IsUnspecified() {
		return address
	}
	name := "localhost"
	if len(f.Guard.Hosts) > 0 {
		name = f.Guard.Hosts[0]
	}
	if _, _, err := net.SplitHostPort(name); err != nil {
		name = net.JoinHostPort(name, u.Port())
	}
	u.Host = name
	return u.String()
}
