// Package deploy starts an engine command as one or more replicas, waits until
// they are ready, keeps their logs and stops them without leaving anything
// behind: on this machine, on others, or in containers.
//
//	d, err := deploy.Process{}.Start(ctx, deploy.Spec{
//		Name:     "trial 3",
//		Replicas: []deploy.Replica{{Member: deploy.Member{Argv: []string{"vllm", "serve", "Qwen/Qwen3-32B", "--port", "{port}"}}}},
//		Dir:      "out/trial-3/logs",
//	})
//	if err != nil {
//		return err // *RefusedError, *InfraError or ctx's cause; nothing is left running
//	}
//	defer d.Stop(ctx)
//	load(d.Targets()) // until d.Done() is closed: then d.Err() is a *DiedError
//
// A Spec has replicas; a Replica has a front process, which serves, and peers, which
// start before it in their order: further ranks, Ray's head and workers, engines behind a
// router, a command that ends by itself. Each process may read small files, and be on a machine of its own. Placeholders
// in words, environment and files stand for ports, addresses and those files' paths.
//
// A Launcher does what is alike everywhere: it chooses ports, starts the processes one by one
// through a Host, waits for peers' signs and for readiness, finds out why a start failed,
// records what runs, and stops. A Host starts a single process, which it gives as a Running.
// A Keeper is most of a Host for places that are reached by sessions, machines and
// containers alike: its script stays beside the engine and ends it when perflab is gone.
// Package docker has a Host of its own.
//
// Failures have kinds that are never mixed. The engine refuses, in its own words or a usage
// message: RefusedError, a finding about the configuration. Our machinery breaks, or the machine
// does: InfraError, which says what to do, and is tried again; PortError, tried again at once on
// other ports. An engine that was ready ends: DiedError. Which of an engine's words mean
// what is the caller's to say (Spec.Diagnose).
//
// Invariants. A port is this deployment's own, distinct over its replicas. What a Spec lacks is
// said before anything starts. When Start fails and after Stop, no process of the deployment
// runs, also none that left its process group; when somebody still listens on its port, Stop
// says so and ends no stranger. Logs stay; no secret is written by this package but into files
// that engines read, and none passes from a log into an error. What an engine starts is found
// by descent and cgroup (Fence) where Process starts it on Linux, by the container where it has one
// of its own, and else by a marker in the environment, which an empty environment lacks. When
// perflab itself is killed:
//
//   - Process, on Linux: the guard ends the engine and all that it started, with SIGTERM and
//     after a second SIGKILL. When the guard is killed too, the engine ends with it; what that had
//     started is ended by the next Start in the directory, or by Sweep.
//   - Process, on other systems: all runs on, and no Sweep finds it.
//   - SSH, and containers that run already: the keeper ends what has the marker within a
//     moment, also when the connection is cut, after Silence.
//   - Containers of perflab's own run on, and are ended by the next Start or Sweep.
//   - Pods of a cluster run on, and are ended by the next Start or Sweep in the directory, or by that of any
//     perflab in the namespace once their Lease is old.
//   - Existing: what serves is not perflab's, and is left alone but for the hooks.
//
// A Sweep goes by recorded identities (process id, start time and boot of the machine; a container's
// id; a cgroup) and by a marker that no other deployment has, never by a program's name. It leaves alone what a
// perflab that runs has started, also one on another machine as far as it cannot tell.
//
// Absent on purpose: a restart of an ended replica (a measurement over it
// would be void), a proxy before the replicas (the client spreads the load),
// and any knowledge of engines (the Spec carries readiness and signatures).
package deploy

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"perflab/internal/engine/logs"
	"perflab/internal/redact"
)

// Spec is one deployment to start.
type Spec struct {
	Name     string        // for messages: "trial 3"
	Replicas []Replica     // at least one
	Dir      string        // logs go to Dir/replica-N.log
	Timeout  time.Duration // until every replica is ready; 0: 2 h, for Existing 5 s, and 15 min after a start hook
	Silence  time.Duration // that no log may show progress before; 0: 15 min. Existing has no log to go by
	Health   string        // path that answers 200 when ready, "": /health
	Visible  string        // environment variable that names a process's accelerators, "": CUDA_VISIBLE_DEVICES
	// Diagnose finds in a log's tail why the engine cannot go on (logs.Diagnose).
	// It is called from several goroutines; nil finds nothing.
	Diagnose func(log string) (logs.Failure, bool)
	// Phase is what an engine does by a line that it prints while it starts (logs.Phase); nil
	// knows none. Progress is told of each, from another goroutine; nil: nobody is.
	Phase    func(line string) (phase string, ok bool)
	Progress func(phase string)
}

// name is the deployment's name in messages.
func (s Spec) name() string { return cmp.Or(s.Name, "deployment") }

// diagnose asks the engine's signatures, if any.
func (s Spec) diagnose(log string) (logs.Failure, bool) {
	if s.Diagnose == nil {
		return logs.Failure{}, false
	}
	return s.Diagnose(log)
}

// Replica is one copy of the engine: a front process that serves and, where it
// needs more than one process or machine, its peers. The placeholders of Argv, Env
// and file texts are replaced at each start: {port} by the port that serves, {host} by
// the address to listen on, {port:NAME} by another port of the replica's own (the same in all its
// processes), {file:NAME} by the path of one of the process's files.
type Replica struct {
	Member        // the front process
	Peers  []Peer // started before it, in this order, and stopped with it
}

// Member is one process of a replica, or the container around it.
type Member struct {
	Node    string   // machine it runs on, a name that the runtime knows; "": its first, or this one
	Argv    []string // with the placeholder {port} where the port belongs
	Env     []string // added to the environment, KEY=value
	Devices []string // accelerators that it may see, as Spec.Visible names them (an index on the machine, a UUID); nil: all there are
	Files   []File   // written where it runs before it starts
}

// Peer is a process beside a replica's front one: a further rank, Ray's head or a worker.
type Peer struct {
	Member
	Name string // names its log, replica-N.NAME.log
	Up   string // a text of its output that says that it is up, the next is started then; "": at once
	Once bool   // it ends by itself, with status 0, before the next is started

	// Serves names the port of an engine that answers by itself, as the front process does:
	// the next is started at once, and the front process when all of these are ready.
	Serves string
}

// File is a small text that an engine reads when it starts.
type File struct {
	Name string // a plain file name
	Text string
}

// Runtime is a way to start deployments.
type Runtime interface {
	// Start returns when every replica is ready, or an error: *RefusedError
	// when the engine rejected its configuration, *InfraError when our own
	// machinery broke, or ctx's cause. On error nothing is left running.
	Start(ctx context.Context, s Spec) (Deployment, error)
	// Sweep ends what deployments under dir left running when their perflab was
	// killed, and says what that was.
	Sweep(ctx context.Context, dir string) (ended []string, err error)
}

// Insider is a Deployment whose engines others reach by other addresses than this machine does: those beside them.
type Insider interface {
	// Inside is one of the Targets as they reach it.
	Inside(target string) string
}

// Engine is a peer that serves.
type Engine struct {
	Replica int
	Name    string
	URL     string
}

// Deployment is a started engine.
type Deployment interface {
	// Targets are base URLs ("http://127.0.0.1:41234"), one a replica.
	Targets() []string
	// Engines are the base URLs of peers that serve, by name ("decode-0"), where a replica
	// has such, in the order of replicas and peers.
	Engines() []Engine
	// Done is closed when a replica has ended that should run; Err says why.
	Done() <-chan struct{}
	Err() error
	// Stop ends all replicas and waits for them. It is safe to call twice and
	// from several goroutines. When ctx ends, replicas get no more time to end
	// by themselves.
	Stop(ctx context.Context) error
}

// RefusedError says that the engine rejected the configuration: an infeasible
// point, told to the strategy.
type RefusedError struct {
	Reason  string       // the engine's own line, or our rule's sentence
	Log     string       // path of the log, if any
	Failure logs.Failure // what the engine's signatures know of it; no class where they know nothing
}

func (e *RefusedError) Error() string { return "engine refused to start: " + e.Reason }

// InfraError says that starting broke for a reason that is not the
// configuration's: image, port, missing program. It is retried and never told
// to the strategy.
type InfraError struct {
	Op   string // what was attempted, with its object
	Err  error
	Help string   // what to do, in one line
	Last []string // last lines of the log, if any
	Log  string   // path of the log, if any

	Lasting bool // another try would break in the same way
}

func (e *InfraError) Error() string { return e.Op + ": " + e.Err.Error() }
func (e *InfraError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *InfraError) Hint() string { return e.Help }

// Commander runs short commands where engines run: an engine's --help, nvidia-smi.
// A Runtime may be one, and a Deployment (where the engine's own container
// is the place, say).
type Commander interface {
	// Nodes are the machines, in the runtime's order; [""] is this one.
	Nodes() []string
	// Command runs argv on a node and passes its output on until it ends, or ctx
	// does. A program that is not there, or a node that cannot be reached, is an *InfraError;
	// a status other than 0 an *ExitError.
	Command(ctx context.Context, node string, argv []string, stdout io.Writer) error
}

// ExitError is a command that a Commander ran and that failed.
type ExitError struct {
	Argv   []string // secrets replaced
	Code   int      // -1: ended by a signal
	Stderr string   // its end
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s ended with status %d", strings.Join(e.Argv, " "), e.Code)
	if line := strings.TrimSpace(e.Stderr); line != "" {
		text += ": " + quoteLine(line[strings.LastIndexByte(line, '\n')+1:])
	}
	return text
}

// Stderr keeps the end of what a command writes there, for its ExitError.
type Stderr struct{ b []byte }

func (s *Stderr) Write(p []byte) (int, error) {
	const most = 4 << 10
	s.b = append(s.b, p...)
	if extra := len(s.b) - most; extra > 0 {
		s.b = append(s.b[:0], s.b[extra:]...)
	}
	return len(p), nil
}

// Failed is the error of argv, which ended with a status other than 0; without its secrets.
func (s *Stderr) Failed(argv []string, code int) *ExitError {
	return &ExitError{Argv: redact.Argv(argv), Code: code, Stderr: redact.Text(string(s.b))}
}

// DiedError says that a replica ended after it was ready and before Stop.
type DiedError struct {
	Replica int
	Peer    string       // which of its peers, "": the front process
	Status  string       // "exit status 1", "signal: killed"
	Reason  string       // the engine's signature in the log (out of memory), if any
	Last    []string     // last lines of the log
	Log     string       // path of the log, if any
	Failure logs.Failure // that Reason is of
	Help    string       // what to do, where more is known than what the log says
}

func (e *DiedError) Error() string {
	why := e.Reason
	if why == "" && len(e.Last) > 0 {
		why = "its last line is " + quoteLine(e.Last[len(e.Last)-1])
	}
	if why != "" {
		why = ": " + why
	}
	who := fmt.Sprintf("replica %d", e.Replica)
	if e.Peer != "" {
		who += "'s " + e.Peer
	}
	return fmt.Sprintf("%s died in the middle (%s)%s", who, e.Status, why)
}

// Hint says where to look.
func (e *DiedError) Hint() string {
	if e.Help != "" {
		return e.Help
	}
	h := "read its log " + e.Log
	if e.Reason == "" && strings.Contains(e.Status, "killed") {
		h += "; the kernel ends processes this way when the machine's memory runs out (see dmesg)"
	}
	return h
}
