// Package machines has the commands of a fleet: agent, by which a machine takes part, and fleet, which shows
// who does, lets machines join and removes them, and runs a hub where no laboratory's server does; and kube,
// which prepares a cluster and looks after it.
package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"perflab/internal/cli/console"
	"perflab/internal/fleet"
	"perflab/internal/fleet/bus"
)

// Variables that name the hub, and of an outside server the files that go with it, for commands that lead a fleet.
const (
	HubVariable  = "PERFLAB_HUB"
	seedVariable = "PERFLAB_HUB_SEED"
	caVariable   = "PERFLAB_HUB_CA"
)

// Hub is where a command meets its fleet.
type Hub struct {
	dir      string
	seed, ca string
}

// Add adds the flags that name the hub.
func (h *Hub) Add(fs *pflag.FlagSet) {
	fs.StringVar(&h.dir, "hub", "", "where the fleet meets: the directory of a hub on this machine, or the address of an outside NATS server, tls://host:4222 (default "+HubVariable+", else that of perflab serve here)")
	h.addFiles(fs)
}

// AddOutside adds the flags that name an outside server as the hub, for who would else open one.
func (h *Hub) AddOutside(fs *pflag.FlagSet) {
	fs.StringVar(&h.dir, "hub", "", "address of an outside NATS server that is the fleet's hub, tls://host:4222")
	h.addFiles(fs)
}

func (h *Hub) addFiles(fs *pflag.FlagSet) {
	fs.StringVar(&h.seed, "hub-seed", "", "with an outside server: file with the seed of the leader's nkey (default "+seedVariable+")")
	fs.StringVar(&h.ca, "hub-ca", "", "with an outside server: file with the certificate of who signs for it (default "+caVariable+", else who the system trusts)")
}

// Outside connects to an outside server as its leader, until stop is called. children are variables by which
// what is started meets the same fleet.
func (h *Hub) Outside(ctx context.Context, env console.Env, o fleet.Options, log *slog.Logger) (l *fleet.Leader, children []string, stop func(), err error) {
	if !isAddress(h.dir) {
		return nil, nil, nil, console.Usage(fmt.Errorf("%q is no address of a NATS server: write --hub tls://host:4222", h.dir))
	}
	id, err := h.identity(env)
	if err != nil {
		return nil, nil, nil, err
	}
	children = []string{HubVariable + "=" + h.dir}
	seed, ca := h.files(env)
	for name, file := range map[string]string{seedVariable: seed, caVariable: ca} {
		if file == "" {
			continue
		}
		path, err := filepath.Abs(file) // launches run in other directories
		if err != nil {
			return nil, nil, nil, fmt.Errorf("find %s: %w", file, err)
		}
		children = append(children, name+"="+path)
	}
	l, stop, err = lead(ctx, id, bus.DialOptions{Version: env.Version, Log: log}, o)
	return l, children, stop, err
}

// HubFlags are the names of what Add adds.
const HubFlags = "hub hub-seed hub-ca"

// at is what names the hub, "" where nothing does.
func (h *Hub) at(env console.Env) string { return cmp.Or(h.dir, env.Getenv(HubVariable)) }

// files are what goes with an outside server: the leader's seed, and the certificate of who signs for the server.
func (h *Hub) files(env console.Env) (seed, ca string) {
	return cmp.Or(h.seed, env.Getenv(seedVariable)), cmp.Or(h.ca, env.Getenv(caVariable))
}

// usualPlaces are where the server of a laboratory here keeps its hub.
var usualPlaces = []string{"perflab-out/.perflab/server/fleet", "runs/.perflab/server/fleet", "fleet"}

// identity is the leader's of a hub.
func (h *Hub) identity(env console.Env) (bus.Identity, error) {
	at := h.at(env)
	if isAddress(at) {
		seed, ca := h.files(env)
		if seed == "" {
			return bus.Identity{}, console.Usage(errors.New("an outside server wants to know who leads: give the file with the leader's seed by --hub-seed"))
		}
		return bus.Outside(at, seed, ca, bus.Leader)
	}
	if at == "" {
		for _, dir := range usualPlaces {
			if id, err := bus.LoadLeader(dir); err == nil {
				return id, nil
			}
		}
		return bus.Identity{}, console.Usage(fmt.Errorf("there is no fleet here: open one by perflab serve --fleet :7422 or perflab fleet hub, or name its directory by --hub or %s", HubVariable))
	}
	id, err := bus.LoadLeader(at)
	if errors.Is(err, os.ErrNotExist) {
		return id, console.Usage(fmt.Errorf("%s has no hub (no leader.json): name the directory that perflab fleet hub, or perflab serve --fleet, keeps it in", at))
	}
	return id, err
}

func isAddress(s string) bool {
	for _, scheme := range []string{"tls://", "nats://", "ws://", "wss://"} {
		if len(s) > len(scheme) && s[:len(scheme)] == scheme {
			return true
		}
	}
	return false
}

// Lead connects to the hub and listens to its agents, until close is called.
func (h *Hub) Lead(ctx context.Context, env console.Env) (l *fleet.Leader, stop func(), err error) {
	id, err := h.identity(env)
	if err != nil {
		return nil, nil, err
	}
	say := func(text string) { fmt.Fprintf(env.Stderr, "perflab: %s\n", text) }
	return lead(ctx, id, bus.DialOptions{Version: env.Version}, fleet.Options{Who: who(), Version: env.Version, Say: say})
}

// lead leads the fleet of a hub, until stop is called.
func lead(ctx context.Context, id bus.Identity, d bus.DialOptions, o fleet.Options) (l *fleet.Leader, stop func(), err error) {
	conn, err := bus.Dial(ctx, id, d)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the fleet: %w", err)
	}
	l, err = fleet.Lead(ctx, conn, o)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return l, func() {
		l.Close()
		conn.Close()
	}, nil
}

// who is the one who leads, in words.
func who() string {
	host, _ := os.Hostname() // "" says nothing
	return cmp.Or(console.User(), "somebody") + " on " + cmp.Or(host, "a machine")
}

// agentDir is where an agent keeps its key, files and calls if no directory is named.
func agentDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", console.Usage(errors.New("this user has no directory of its own: name one for the agent by --dir"))
	}
	return filepath.Join(dir, "perflab", "agent"), nil
}
