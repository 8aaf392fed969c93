package deploytest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/proc"
)

// Behaviour is what a fake engine does.
type Behaviour string

// Behaviours of fake engines.
const (
	Ready    Behaviour = "ready"    // answers 503 for a moment, then 200; /die ends it
	Never    Behaviour = "never"    // answers 503 for ever; says AskedLine when perflab first asks it
	Refuse   Behaviour = "refuse"   // prints a signature and exits with status 1
	Busy     Behaviour = "busy"     // says that another process holds the device, and exits with status 1
	Usage    Behaviour = "usage"    // prints a usage error and exits with status 2
	Crash    Behaviour = "crash"    // prints something else and exits with status 1
	Taken    Behaviour = "taken"    // cannot bind the first time it is started, then Ready
	Stubborn Behaviour = "stubborn" // Ready, and ignores SIGTERM
	Forking  Behaviour = "forking"  // Ready, with a stubborn child in its own session
	Daemon   Behaviour = "daemon"   // Ready, with a stubborn process in its own session, whose parent has ended and whose environment is empty
	Leaky    Behaviour = "leaky"    // Ready, with a child that keeps the port and cannot be known for the engine's
	Mute     Behaviour = "mute"     // prints and listens nowhere
	Reader   Behaviour = "reader"   // Ready, after printing the file --config and the accelerators it sees
	Worker   Behaviour = "worker"   // a peer: says WorkerLine after a moment, and stays
	Setup    Behaviour = "setup"    // a peer: prints and ends with status 0
	orphan   Behaviour = "orphan"   // Forking's child
	squatter Behaviour = "squatter" // Leaky's child
	between  Behaviour = "between"  // Daemon's child, which starts an orphan and ends
)

// What the fake engines print.
const (
	Hello        = "fake engine starts"
	RefusalLine  = "ValueError: max seq len (131072) does not fit"
	DeathLine    = "torch.OutOfMemoryError: CUDA out of memory"
	CrashLine    = "RuntimeError: something else"
	UsageMessage = "unrecognized arguments: --no-such-flag"
	WorkerLine   = "worker is up"
	AskedLine    = "fake engine is asked whether it is ready"
	BusyLine     = "the device is held by another process"
)

const (
	behaviourEnv = "PERFLAB_FAKE_ENGINE"
	behindEnv    = "PERFLAB_FAKE_BEHIND" // set where engines must be ready behind it
	pidsEnv      = "PERFLAB_FAKE_PIDS"   // directory with one file a process, named by its id
	fakeLife     = 5 * time.Minute       // longer than a start may take; a fake that a broken test leaves behind ends by itself
)

// Engine returns a replica that runs the test binary as a fake engine; dir is
// where its processes say their ids.
func Engine(t testing.TB, dir string, b Behaviour) deploy.Replica {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pids := filepath.Join(dir, "pids")
	if err := os.MkdirAll(pids, 0o755); err != nil {
		t.Fatal(err)
	}
	return deploy.Replica{Member: deploy.Member{
		Argv: []string{self, "serve", "--port", "{port}"},
		// The race detector else makes every exit take a second.
		Env: []string{behaviourEnv + "=" + string(b), pidsEnv + "=" + pids, "GORACE=atexit_sleep_ms=0"},
	}}
}

// Beside returns a peer of a fake engine's replica.
func Beside(t testing.TB, dir, name string, b Behaviour) deploy.Peer {
	t.Helper()
	p := deploy.Peer{Member: Engine(t, dir, b).Member, Name: name}
	p.Argv = append(p.Argv[:1:1], "work", "--port", "{port:work}")
	return p
}

// EngineMain makes the test binary able to be a fake engine, and the guard of one: TestMain calls it
// first. It returns only in a process that is not one.
func EngineMain() {
	deploy.GuardMain()
	b := Behaviour(os.Getenv(behaviourEnv))
	if b == "" {
		return
	}
	time.AfterFunc(fakeLife, func() { os.Exit(3) })
	if err := fake(b, os.Getenv(pidsEnv)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func fake(b Behaviour, pids string) error {
	launched, err := os.ReadDir(pids)
	if err != nil {
		return err
	}
	if b == Stubborn || b == orphan {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	}
	if err := os.WriteFile(filepath.Join(pids, strconv.Itoa(os.Getpid())), nil, 0o644); err != nil {
		return err
	}
	fmt.Println(Hello)
	if os.Getenv(behindEnv) != "" {
		if err := ready(); err != nil {
			return err
		}
	}
	switch b {
	case Refuse:
		return errors.New(RefusalLine)
	case Busy:
		return errors.New(BusyLine)
	case Crash:
		// Where Hello went: a runtime that has two streams may mix them.
		fmt.Println(CrashLine)
		os.Exit(1)
	case Usage:
		fmt.Fprintf(os.Stderr, "usage: fake serve [-h]\nfake serve: error: %s\n", UsageMessage)
		os.Exit(2)
	case orphan, Mute:
		select {}
	case squatter:
		return squat()
	case Setup:
		return nil
	case between:
		return forkAway(pids, orphan)
	case Worker:
		time.Sleep(50 * time.Millisecond)
		fmt.Println(WorkerLine)
		select {}
	case Reader:
		if err := read(); err != nil {
			return err
		}
	case Taken:
		if len(launched) == 0 {
			return errors.New("OSError: [Errno 98] error while attempting to bind on address: address already in use")
		}
	case Forking:
		if err := forkOrphan(pids); err != nil {
			return err
		}
	case Daemon:
		if err := forkAway(pids, between); err != nil {
			return err
		}
	}
	return serve(b, pids)
}

// forkOrphan starts a process in a session of its own.
func forkOrphan(pids string) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), behaviourEnv+"="+string(orphan))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return startSaid(cmd, pids)
}

// forkAway starts a process in a session of its own that has nothing of the deployment's
// environment.
func forkAway(pids string, b Behaviour) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{behaviourEnv + "=" + string(b), pidsEnv + "=" + pids, "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if b == between {
		return cmd.Run()
	}
	return startSaid(cmd, pids)
}

// startSaid starts a fake and waits until it has said its id.
func startSaid(cmd *exec.Cmd, pids string) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(filepath.Join(pids, strconv.Itoa(cmd.Process.Pid))); err == nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// read prints what a Reader was given.
func read() error {
	fmt.Printf("sees %q\n", os.Getenv("CUDA_VISIBLE_DEVICES"))
	for i, a := range os.Args {
		if a != "--config" {
			continue
		}
		text, err := os.ReadFile(os.Args[i+1])
		if err != nil {
			return err
		}
		fmt.Printf("reads %q\n", text)
	}
	return nil
}

// ready asks the engines of a router's command line, which is started when all are.
func ready() error {
	for i, a := range os.Args {
		if a != "--prefill" && a != "--decode" {
			continue
		}
		if status := Get(context.Background(), os.Args[i+1]+"/health"); status != http.StatusOK {
			return fmt.Errorf("ValueError: the engine at %s answers %d when its router starts", os.Args[i+1], status)
		}
	}
	return nil
}

// leak starts a process that holds the listener and carries nothing by which it could
// be known for a part of the deployment.
func leak(l *net.TCPListener, pids string) error {
	f, err := l.File()
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{behaviourEnv + "=" + string(squatter), pidsEnv + "=" + pids}
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return startSaid(cmd, pids)
}

// squat answers on the listener that it inherited, once the engine that it has it from is gone: before, it
// would take questions that are for the engine.
func squat() error {
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	for engine := os.Getppid(); engine > 1 && os.Getppid() == engine; {
		time.Sleep(5 * time.Millisecond)
	}
	return http.Serve(l, http.NotFoundHandler())
}

// kubeletAgent begins the user agent of a kubelet's probes, which ask before perflab does.
const kubeletAgent = "kube-probe/"

// serve answers on the port of the command line.
func serve(b Behaviour, pids string) error {
	const loading = 30 * time.Millisecond
	started := time.Now()
	var asked sync.Once
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) {
		if b == Never && !strings.HasPrefix(r.UserAgent(), kubeletAgent) {
			asked.Do(func() { fmt.Println(AskedLine) })
		}
		if b == Never || time.Since(started) < loading {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /die", func(http.ResponseWriter, *http.Request) {
		fmt.Println(DeathLine)
		os.Exit(1)
	})
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", os.Args[len(os.Args)-1]))
	if err != nil {
		return err
	}
	if b == Leaky {
		if err := leak(l.(*net.TCPListener), pids); err != nil {
			return err
		}
	}
	return http.Serve(l, mux)
}

// PIDs returns the processes that the fake engines of dir have been.
func PIDs(t testing.TB, dir string) []int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "pids"))
	if err != nil {
		t.Error(err)
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Error(err)
		}
		out = append(out, pid)
	}
	return out
}

// Alive tells whether the process runs; a zombie does not.
func Alive(pid int) bool {
	if p, ok := proc.Read(pid); ok {
		return !p.Ended
	}
	return syscall.Kill(pid, 0) == nil
}

// Get asks a target for a path and returns the status, 0 without an answer.
func Get(ctx context.Context, url string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}
