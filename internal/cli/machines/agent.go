package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/deploy/docker"
	"perflab/internal/doctor"
	"perflab/internal/durable"
	"perflab/internal/fleet/agent"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/node"
	"perflab/internal/fleet/order"
	"perflab/internal/generator"
	"perflab/internal/load"
	"perflab/internal/version"
)

type agentFlags struct {
	join, name, dir string
	joinFile        string
	hub, seed, ca   string // of an outside server
	labels          []string
	engines         string
	allow           docker.Allow
}

// NewAgent is perflab agent: this machine takes part in a fleet.
func NewAgent(env console.Env) *cobra.Command {
	f := &agentFlags{}
	c := &cobra.Command{
		Use:   "agent [--join URL]",
		Short: "Take part in a fleet: send shares of loads, run engines",
		Long: `Connect outwards to the hub of a fleet, say what this machine has (processors, links,
GPUs, engines, labels), and do what its leaders ask: send the shard of a load, and, with
--engines, start the engines of studies.

--join takes the URL that perflab fleet invite prints: it has a token that is used once,
and the fingerprint of the hub's certificate. The machine makes a key, which never leaves
it, and is a member from then on: the next start needs no --join.

A load that no leader holds on to ends by itself after some seconds. What was measured
stays on this machine's disk until the leader has it.

--engines lets studies of the fleet's leaders (runtime: kind fleet) start engines here.
That is to run the programs that a study names, as this user: give it where you trust
who leads. Engines end with the agent, and when their study is not heard of for 10 s.

--engines=docker lets them start engines in containers of this machine's Docker Engine
alone, and --engines=process,docker in both ways. Containers have what is allowed and
nothing else: images by --image, directories and volumes of this machine by --mount, and
by --docker the settings that lead out of a container (privileged, pid, ipc=host, devices,
cap_add, security_opt, container_runtime). A * stands for any text. Containers that an
agent leaves when it is killed end when it is started again.`,
		Example: `  perflab agent --join 'perflab://lab.example.org:7422/#TOKEN.FINGERPRINT'
  perflab agent --name load-1 --label rack=7
  perflab agent --name gpu-1 --label gpu=h100 --engines
  perflab agent --name gpu-2 --engines=docker --image 'vllm/*' --mount ~/.cache/huggingface`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.Flags().Changed("engines") {
				return console.Usage(fmt.Errorf("%q stands by itself: write --engines=%[1]s, with a = and no space, for --engines alone means process", args[0]))
			}
			return console.WantArgs(0, "no arguments")(c, args)
		},
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), env) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.join, "join", "", "URL of an invitation; needed once")
	fs.StringVar(&f.joinFile, "join-file", "", "file with that URL, which no list of processes shows then")
	fs.StringVar(&f.name, "name", "", "what people call this machine (default its host name)")
	fs.StringArrayVar(&f.labels, "label", nil, "NAME=VALUE by which it can be chosen; repeatable")
	fs.StringVar(&f.engines, "engines", "", "let the fleet's studies start engines on this machine: process (the default where no way is given: as this user), docker, or process,docker")
	fs.Lookup("engines").NoOptDefVal = node.WayProcess
	fs.StringArrayVar(&f.allow.Images, "image", nil, "with --engines=docker: image that containers may have, such as 'vllm/*'; repeatable")
	fs.StringArrayVar(&f.allow.Mounts, "mount", nil, "with --engines=docker: directory that containers may mount, with all below it, or a volume; repeatable")
	fs.StringArrayVar(&f.allow.Settings, "docker", nil, "with --engines=docker: setting that leads out of a container and is allowed all the same, such as ipc=host or 'devices=/dev/infiniband*'; repeatable")
	fs.StringVar(&f.dir, "dir", "", "directory for its key, fetched files and calls on their way (default perflab/agent in the user's configuration directory)")
	fs.StringVar(&f.hub, "hub", "", "address of an outside NATS server, tls://host:4222, instead of an invitation: see perflab fleet accounts")
	fs.StringVar(&f.seed, "hub-seed", "", "with --hub: file with the seed of this agent's nkey")
	fs.StringVar(&f.ca, "hub-ca", "", "with --hub: file with the certificate of who signs for the server (default who the system trusts)")
	return c
}

func (f *agentFlags) run(ctx context.Context, env console.Env) error {
	labels, err := console.Pairs("--label", f.labels)
	if err != nil {
		return console.Usage(err)
	}
	ways, err := node.Ways(f.engines, len(f.allow.Images) > 0, len(f.allow.Mounts)+len(f.allow.Settings) > 0)
	if err != nil {
		return console.Usage(err)
	}
	if f.dir == "" {
		if f.dir, err = agentDir(); err != nil {
			return err
		}
	}
	if err := f.readJoin(); err != nil {
		return err
	}
	me, err := f.identity(ctx)
	if err != nil {
		return err
	}
	interrupted := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	log := slog.New(slog.NewTextHandler(env.Stderr, nil))
	conn, err := bus.Dial(ctx, me, bus.DialOptions{
		Version: env.Version, Log: log, Ended: cancel,
		Lost: func() { log.Warn("the connection to the hub is lost; it is made again") },
		Back: func() { log.Info("the connection to the hub is back") },
	})
	if err != nil {
		return fmt.Errorf("connect to the fleet: %w", err)
	}
	defer conn.Close()
	facts := f.facts(ctx, env, labels)
	facts.Name, facts.Starts = cmp.Or(f.name, me.Name, facts.Name), ways
	fmt.Fprintf(env.Stdout, "Agent %s of the fleet at %s: %s\nAn interrupt (Ctrl-C) ends it\n", facts.Name, me.Addr, Brief(facts))
	var held node.Watch
	if len(ways) > 0 {
		o := node.Options{Conn: conn, Dir: f.dir, Processes: slices.Contains(ways, node.WayProcess), Log: log, Watch: &held}
		if slices.Contains(ways, node.WayDocker) {
			o.Containers = docker.Node{ID: conn.ID(), Allow: f.allow}
		}
		var wait sync.WaitGroup
		defer wait.Wait()
		wait.Go(func() { cancel(node.Serve(ctx, o)) })
	}
	err = agent.Run(ctx, agent.Options{Conn: conn, Dir: f.dir, Facts: facts, Held: held.Now, Log: log})
	if interrupted.Err() != nil {
		return nil // as it is told to end
	}
	return err
}

// readJoin takes the invitation from its file.
func (f *agentFlags) readJoin() error {
	if f.joinFile == "" {
		return nil
	}
	if f.join != "" {
		return console.Usage(errors.New("--join and --join-file both have an invitation: give one or the other"))
	}
	b, err := os.ReadFile(f.joinFile)
	if err != nil {
		return fmt.Errorf("read the invitation: %w", err)
	}
	f.join = strings.TrimSpace(string(b))
	return nil
}

// identity is the one that this machine has, or gets by its invitation.
func (f *agentFlags) identity(ctx context.Context) (bus.Identity, error) {
	switch {
	case f.hub == "" && (f.seed != "" || f.ca != ""):
		return bus.Identity{}, console.Usage(errors.New("--hub-seed and --hub-ca are for an outside server: give its address by --hub"))
	case f.hub != "" && f.join != "":
		return bus.Identity{}, console.Usage(errors.New("--join is for perflab's own hub and --hub for an outside server: give one or the other"))
	case f.hub != "" && f.seed == "":
		return bus.Identity{}, console.Usage(errors.New("an outside server wants to know who comes: give the file with this agent's seed by --hub-seed"))
	case f.hub != "":
		return bus.Outside(f.hub, f.seed, f.ca, bus.Agent)
	}
	if f.join == "" {
		me, err := bus.Load(f.dir)
		if errors.Is(err, os.ErrNotExist) {
			return me, console.Usage(errors.New("this machine is of no fleet yet: perflab fleet invite, where the hub is, prints the command by which it joins"))
		}
		return me, err
	}
	if err := durable.MkdirAll(f.dir); err != nil {
		return bus.Identity{}, fmt.Errorf("make the agent's directory: %w", err)
	}
	name, _ := os.Hostname()
	return bus.Join(ctx, f.join, f.dir, cmp.Or(f.name, name, "agent"))
}

// facts are what this machine has.
func (f *agentFlags) facts(ctx context.Context, env console.Env, labels map[string]string) order.Facts {
	live := console.StartLive(env, func() string { return "looking at this machine" }, nil)
	r := doctor.Look(ctx, doctor.System(version.Read()))
	live.End()
	name, _ := os.Hostname()
	out := order.Facts{
		Name: name, Version: env.Version, Labels: labels, SelfCheck: r.Client.SelfCheck, Memory: int64(r.Host.MemoryGiB * (1 << 30)), Links: links(),
		Host: generator.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), CPUs: r.Host.CPUs, GOMAXPROCS: runtime.GOMAXPROCS(0)},
	}
	for _, a := range r.Accelerators {
		out.GPUs = append(out.GPUs, order.GPU{Name: a.Name, Memory: int64(a.MemoryGiB * (1 << 30))})
	}
	for _, e := range r.Engines {
		out.Engines = append(out.Engines, strings.TrimSpace(e.Name+" "+e.Version))
	}
	if n, limit, err := load.Capacity(1); err == nil {
		out.Streams, out.Limit = n, limit
	}
	return out
}

// links are the network interfaces that lead somewhere.
func links() []order.Link {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var out []order.Link
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		l := order.Link{Name: i.Name}
		if b, err := os.ReadFile("/sys/class/net/" + i.Name + "/speed"); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && n > 0 {
				l.Mbps = n
			}
		}
		out = append(out, l)
	}
	return out
}

// Brief says what an agent has, in a few words.
func Brief(f order.Facts) string {
	parts := []string{console.Plural(f.Host.CPUs, "CPU")}
	if n := len(f.GPUs); n > 0 {
		parts = append(parts, fmt.Sprintf("%d x %s", n, f.GPUs[0].Name))
	}
	parts = append(parts, f.Engines...)
	if len(f.Starts) > 0 {
		parts = append(parts, "starts engines ("+strings.Join(f.Starts, ", ")+")")
	}
	return strings.Join(parts, ", ")
}
