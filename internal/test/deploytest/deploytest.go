// Package deploytest is the conformance suite of runtimes that start commands
// on this machine: what deploy.Runtime promises, tried with fake engines. The
// test binary itself is the fake engine, started again with a variable in its
// environment, so a package that uses the suite begins its TestMain so:
//
//	func TestMain(m *testing.M) {
//		deploytest.EngineMain()
//		os.Exit(deploytest.Main(m))
//	}
//
//	func TestRuntime(t *testing.T) {
//		deploytest.Run(t, func(*testing.T) deploy.Runtime { return deploy.Process{Grace: time.Second} })
//	}
//
// A runtime is given with a grace of about a second and short polls; the suite
// waits for both. Absent: what only one runtime has, such as its records.
package deploytest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/engine/logs"
)

// soon bounds what should take a moment, on a machine that is busy.
const soon = 20 * time.Second

// Late starts what is never ready, and ends the start as one that takes too long once the start
// has read a line in the log of a process. So the start stands at the same point on a machine of
// any speed; a limit may strike while a slow one is still starting a process.
func Late(t *testing.T, r deploy.Runtime, s deploy.Spec, line string) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	s.Phase = func(read string) (string, bool) {
		if strings.Contains(read, line) {
			cancel(&deploy.LateError{Limit: s.Timeout})
		}
		return "", false
	}
	err := fails(ctx, t, r, s)
	if ctx.Err() == nil {
		t.Fatalf("start ends before a log has %q: %v", line, err)
	}
	return err
}

// Spec returns a deployment of fake engines, one a behaviour, whose signatures
// are the lines that Refuse and a dying engine print. Processes start one after another, so
// each adds to the limit of the start.
func Spec(t testing.TB, behaviours ...Behaviour) deploy.Spec {
	t.Helper()
	s := deploy.Spec{Name: "trial 3", Dir: t.TempDir(), Timeout: soon * time.Duration(max(1, len(behaviours))), Health: "/health", Diagnose: diagnose}
	for _, b := range behaviours {
		s.Replicas = append(s.Replicas, Engine(t, s.Dir, b))
	}
	return s
}

// addPeers puts peers beside the front process of the first replica, and adds to the limit what they
// may take.
func addPeers(s *deploy.Spec, peers ...deploy.Peer) {
	s.Replicas[0].Peers = append(s.Replicas[0].Peers, peers...)
	s.Timeout += soon * time.Duration(len(peers))
}

func diagnose(log string) (logs.Failure, bool) {
	for line := range strings.Lines(log) {
		for _, signature := range []string{RefusalLine, DeathLine, BusyLine} {
			if strings.Contains(line, signature) {
				return logs.Failure{Class: "of-the-test", Line: signature, Advice: "do something", Infra: signature == BusyLine}, true
			}
		}
	}
	return logs.Failure{}, false
}

// Run tries a runtime; newRuntime is called once a subtest. With names it makes those
// subtests alone.
func Run(t *testing.T, newRuntime func(*testing.T) deploy.Runtime, names ...string) {
	for _, name := range names {
		if !slices.ContainsFunc(suite, func(c conformance) bool { return c.name == name }) {
			t.Fatalf("the suite has no test %s", name)
		}
	}
	for _, c := range suite {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, newRuntime(t))
		})
	}
}

// conformance is one test of the suite.
type conformance struct {
	name string
	test func(*testing.T, deploy.Runtime)
}

var suite = []conformance{
	{"StartAndStop", startAndStop},
	{"TwoReplicas", twoReplicas},
	{"NeverReady", neverReady},
	{"TooLate", tooLate},
	{"Refuses", refuses},
	{"RefusesUsage", refusesUsage},
	{"DeviceBusy", deviceBusy},
	{"OneOfTwoRefuses", oneOfTwoRefuses},
	{"Crashes", crashes},
	{"MissingProgram", missingProgram},
	{"DiesInTheMiddle", diesInTheMiddle},
	{"DiesAndLeavesAChild", diesAndLeavesAChild},
	{"CancelDuringStart", cancelDuringStart},
	{"CancelledBefore", cancelledBefore},
	{"StopsTheStubborn", stopsTheStubborn},
	{"StopsWhatLeftTheGroup", stopsWhatLeftTheGroup},
	{"StopConcurrently", stopConcurrently},
	{"Mute", mute},
	{"LeaksItsPort", leaksItsPort},
	{"Files", files},
	{"Environment", environment},
	{"GoesToBackground", goesToBackground},
	{"Peers", peers},
	{"PeerRefuses", peerRefuses},
	{"PeerDies", peerDies},
	{"PeerNeverUp", peerNeverUp},
	{"Engines", engines},
	{"EngineRefuses", engineRefuses},
	{"EngineNeverReady", engineNeverReady},
	{"RouterNeverReady", routerNeverReady},
	{"EngineDies", engineDies},
}

// Start starts a deployment that must come up, and stops it when the test ends.
func Start(t *testing.T, r deploy.Runtime, s deploy.Spec) deploy.Deployment {
	t.Helper()
	d, err := r.Start(t.Context(), s)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() { stop(t, d) })
	return d
}

func stop(t *testing.T, d deploy.Deployment) {
	t.Helper()
	if err := d.Stop(context.Background()); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// NothingLeft fails when a process of the fake engines still runs.
func NothingLeft(t *testing.T, s deploy.Spec, started int) {
	t.Helper()
	pids := PIDs(t, s.Dir)
	if len(pids) < started {
		t.Errorf("%d processes were started, want %d", len(pids), started)
	}
	for _, pid := range pids {
		if Alive(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
}

// failsWith starts what must not come up and returns the error as an E.
func failsWith[E error](t *testing.T, r deploy.Runtime, s deploy.Spec) E {
	t.Helper()
	began := time.Now()
	err := fails(t.Context(), t, r, s)
	if took := time.Since(began); took >= s.Timeout {
		t.Errorf("start fails after %v, as what is late would", took)
	}
	return as[E](t, err)
}

// fails returns the error of a start that should fail.
func fails(ctx context.Context, t *testing.T, r deploy.Runtime, s deploy.Spec) error {
	t.Helper()
	d, err := r.Start(ctx, s)
	if err == nil {
		stop(t, d)
		t.Fatal("start succeeds")
	}
	return err
}

// as returns the error of a start as an E.
func as[E error](t *testing.T, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("start: %T %v, want %T", err, err, e)
	}
	return e
}

func log(t *testing.T, s deploy.Spec, replica string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.Dir, "replica-"+replica+".log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func startAndStop(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Ready)
	d := Start(t, r, s)
	if n := len(d.Targets()); n != 1 {
		t.Fatalf("%d targets, want 1", n)
	}
	if status := Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
		t.Errorf("target answers %d, want 200", status)
	}
	select {
	case <-d.Done():
		t.Errorf("done while the engine runs: %v", d.Err())
	default:
	}
	stop(t, d)
	NothingLeft(t, s, 1)
	if status := Get(t.Context(), d.Targets()[0]+"/health"); status != 0 {
		t.Errorf("target answers %d after stop", status)
	}
	if err := d.Err(); err != nil {
		t.Errorf("Err after a stop is %v, want nil", err)
	}
	stop(t, d)
	if text := log(t, s, "0"); !strings.Contains(text, Hello) || !strings.Contains(text, "serve --port") {
		t.Errorf("log lacks the command or the output:\n%s", text)
	}
}

func twoReplicas(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Ready, Ready)
	d := Start(t, r, s)
	targets := d.Targets()
	if len(targets) != 2 || targets[0] == targets[1] {
		t.Fatalf("targets %v, want two", targets)
	}
	for i, target := range targets {
		if status := Get(t.Context(), target+"/health"); status != 200 {
			t.Errorf("replica %d answers %d, want 200", i, status)
		}
	}
	stop(t, d)
	NothingLeft(t, s, 2)
	for _, n := range []string{"0", "1"} {
		if !strings.Contains(log(t, s, n), Hello) {
			t.Errorf("log of replica %s lacks the output", n)
		}
	}
}

func neverReady(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Never)
	e := as[*deploy.InfraError](t, Late(t, r, s, AskedLine))
	if !strings.Contains(e.Error(), "replica 0 is not ready after") || !strings.Contains(e.Error(), AskedLine) || !strings.Contains(e.Hint(), "replica-0.log") {
		t.Errorf("error %q (%s) lacks the replica, its last line or its log", e, e.Hint())
	}
	NothingLeft(t, s, 1)
}

// tooLate is a start that its limit ends, wherever that finds it: a busy machine may not even
// have started the engine.
func tooLate(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Never)
	s.Timeout = time.Second
	began := time.Now()
	err := fails(t.Context(), t, r, s)
	if took := time.Since(began); took < s.Timeout {
		t.Errorf("start ends after %v, before its limit", took)
	}
	e := as[*deploy.InfraError](t, err)
	if late, ok := errors.AsType[*deploy.LateError](e); !ok || late.Limit != s.Timeout || e.Hint() == "" {
		t.Errorf("error %q (%s) lacks the limit, or what to do", e, e.Hint())
	}
	NothingLeft(t, s, 0)
}

func refuses(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Refuse)
	e := failsWith[*deploy.RefusedError](t, r, s)
	if e.Reason != RefusalLine || e.Failure.Class != "of-the-test" || e.Log != filepath.Join(s.Dir, "replica-0.log") {
		t.Errorf("refused with %+v", e)
	}
	NothingLeft(t, s, 1)
}

func refusesUsage(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Usage)
	if e := failsWith[*deploy.RefusedError](t, r, s); e.Reason != UsageMessage {
		t.Errorf("reason %q, want %q", e.Reason, UsageMessage)
	}
}

// deviceBusy: what an engine says of the machine is not held against its configuration.
func deviceBusy(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Busy)
	if e := failsWith[*deploy.InfraError](t, r, s); !strings.Contains(e.Error(), BusyLine) || e.Hint() != "do something" {
		t.Errorf("error %q (%s)", e, e.Hint())
	}
	NothingLeft(t, s, 1)
}

func oneOfTwoRefuses(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Ready, Refuse)
	failsWith[*deploy.RefusedError](t, r, s)
	NothingLeft(t, s, 1)
}

func crashes(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Crash)
	e := failsWith[*deploy.InfraError](t, r, s)
	if !strings.Contains(e.Error(), CrashLine) || !strings.Contains(e.Error(), "exit status 1") {
		t.Errorf("error %q names neither status nor last line", e)
	}
	if !slices.Equal(e.Last, []string{Hello, CrashLine}) {
		t.Errorf("last lines %q", e.Last)
	}
}

func missingProgram(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Ready)
	s.Replicas[0].Argv[0] = "perflab-no-such-engine"
	e := failsWith[*deploy.InfraError](t, r, s)
	if !strings.Contains(e.Hint(), "perflab-no-such-engine is not on PATH") {
		t.Errorf("hint %q", e.Hint())
	}
	if !errors.Is(e, exec.ErrNotFound) { // so that nobody tries again
		t.Errorf("error %v is not known for a missing program", e)
	}
}

func diesInTheMiddle(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Ready, Ready)
	d := Start(t, r, s)
	Get(t.Context(), d.Targets()[1]+"/die")
	select {
	case <-d.Done():
	case <-time.After(soon):
		t.Fatal("the end of a replica goes unnoticed")
	}
	e, ok := errors.AsType[*deploy.DiedError](d.Err())
	if !ok {
		t.Fatalf("Err is %T %v, want a DiedError", d.Err(), d.Err())
	}
	if e.Replica != 1 || e.Reason != DeathLine || e.Status != "exit status 1" || !slices.Contains(e.Last, DeathLine) {
		t.Errorf("died with %+v", e)
	}
	if status := Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
		t.Errorf("the other replica answers %d, want 200", status)
	}
	stop(t, d)
	NothingLeft(t, s, 2)
}

func diesAndLeavesAChild(t *testing.T, r deploy.Runtime) {
	onlyLinux(t)
	s := Spec(t, Forking)
	d := Start(t, r, s)
	Get(t.Context(), d.Targets()[0]+"/die")
	select {
	case <-d.Done():
	case <-time.After(soon):
		t.Fatal("the end of a replica goes unnoticed")
	}
	stop(t, d)
	NothingLeft(t, s, 2)
}

func cancelDuringStart(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Never)
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		for len(PIDs(t, s.Dir)) == 0 && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		cancel(interrupted)
	})
	d, err := r.Start(ctx, s)
	cancel(nil)
	wg.Wait()
	if err == nil {
		stop(t, d)
	}
	if !errors.Is(err, interrupted) {
		t.Errorf("start: %v, want the cause %v", err, interrupted)
	}
	NothingLeft(t, s, 1)
}

func cancelledBefore(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Ready)
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted)
	if _, err := r.Start(ctx, s); !errors.Is(err, interrupted) {
		t.Errorf("start: %v, want the cause %v", err, interrupted)
	}
	if pids := PIDs(t, s.Dir); len(pids) > 0 {
		t.Errorf("processes %v were started", pids)
	}
}

func stopsTheStubborn(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Stubborn)
	d := Start(t, r, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
	NothingLeft(t, s, 1)
}

func stopsWhatLeftTheGroup(t *testing.T, r deploy.Runtime) {
	onlyLinux(t)
	s := Spec(t, Forking)
	d := Start(t, r, s)
	stop(t, d)
	NothingLeft(t, s, 2)
}

func onlyLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("a process that left its group is found through /proc")
	}
}

func stopConcurrently(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Ready)
	d := Start(t, r, s)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			stop(t, d)
			NothingLeft(t, s, 1) // for each caller, not only the first
		})
	}
	wg.Wait()
}

// mute is an engine that hangs before it listens.
func mute(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Mute)
	e := as[*deploy.InfraError](t, Late(t, r, s, Hello))
	if !strings.Contains(e.Error(), "not ready after") || !strings.Contains(e.Error(), Hello) {
		t.Errorf("error %q tells neither limit nor last line", e)
	}
	NothingLeft(t, s, 1)
}

// leaksItsPort is an engine of which something stays that nobody can know for a part
// of it: the stop says so, and does not end a stranger.
func leaksItsPort(t *testing.T, r deploy.Runtime) {
	onlyLinux(t)
	s := Spec(t, Leaky)
	d, err := r.Start(t.Context(), s)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	err = d.Stop(t.Context())
	var left []int
	for _, pid := range PIDs(t, s.Dir) {
		if Alive(pid) {
			left = append(left, pid)
		}
	}
	for _, pid := range left {
		kill(t, pid)
	}
	// In a container, or behind a forwarded port, what stays is ended or out of reach.
	if len(left) == 0 {
		if err != nil {
			t.Errorf("stop: %v, and nothing is left", err)
		}
		return
	}
	e, ok := errors.AsType[*deploy.InfraError](err)
	if !ok || !strings.Contains(e.Error(), "still served") {
		t.Errorf("stop: %v while processes %v hold the port", err, left)
	}
}

func files(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Reader)
	m := &s.Replicas[0].Member
	m.Files = []deploy.File{{Name: "engine.yaml", Text: "port: {port}\n"}}
	m.Argv = slices.Insert(m.Argv, 2, "--config", "{file:engine.yaml}")
	d := Start(t, r, s)
	stop(t, d)
	text := log(t, s, "0")
	if !strings.Contains(text, `reads "port: `) {
		t.Errorf("log lacks the file:\n%s", text)
	}
	if strings.Contains(text, `reads "port: {port}`) {
		t.Errorf("the placeholder in the file stays:\n%s", text)
	}
}

// environment: values and arguments arrive as they are, whatever is in them.
func environment(t *testing.T, r deploy.Runtime) {
	const odd = "a=b=\n'it''s' \"$HOME\" `id` \\n %s {x} *\tÁ\n\n"
	s := Spec(t, Ready)
	m := &s.Replicas[0].Member
	m.Env = append(m.Env, "ODD="+odd)
	m.Argv = append([]string{"/bin/sh", "-c", `[ "$ODD" = "$1" ] && echo "they are alike: ${#ODD}"; shift; exec "$@"`, "sh", odd}, m.Argv...)
	stop(t, Start(t, r, s))
	if text := log(t, s, "0"); !strings.Contains(text, "they are alike: ") || strings.Contains(text, "they are alike: 0") {
		t.Errorf("value and argument do not arrive:\n%s", text)
	}
}

// goesToBackground is an engine that leaves its front process: what is left is ended, and
// the error says what to change.
func goesToBackground(t *testing.T, r deploy.Runtime) {
	onlyLinux(t)
	s := Spec(t, Never)
	m := &s.Replicas[0].Member
	m.Argv = append([]string{"/bin/sh", "-c", `setsid "$@" & until ls "$0"/pids/* >/dev/null 2>&1; do sleep 0.02; done`, s.Dir}, m.Argv...)
	e := failsWith[*deploy.InfraError](t, r, s)
	if !strings.Contains(e.Error(), "exit status 0") || !strings.Contains(e.Hint(), "must stay in the foreground") {
		t.Errorf("error %q (%s)", e, e.Hint())
	}
	NothingLeft(t, s, 1)
}

// Devices tries whether a runtime deals accelerators out by the environment; one that has a
// way of its own is not tried.
func Devices(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Reader)
	s.Replicas[0].Devices = []string{"2", "GPU-5a1c"}
	stop(t, Start(t, r, s))
	if text := log(t, s, "0"); !strings.Contains(text, `sees "2,GPU-5a1c"`) {
		t.Errorf("the engine does not see its accelerators alone:\n%s", text)
	}
}

// peers start in order, each when the one before it is up or through, and stop with
// the front process.
func peers(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Ready)
	worker, setup := Beside(t, s.Dir, "worker", Worker), Beside(t, s.Dir, "setup", Setup)
	worker.Up, setup.Once = WorkerLine, true
	addPeers(&s, worker, setup)
	d := Start(t, r, s)
	if status := Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
		t.Errorf("target answers %d, want 200", status)
	}
	select {
	case <-d.Done():
		t.Errorf("done by the end of a process that should end: %v", d.Err())
	default:
	}
	stop(t, d)
	NothingLeft(t, s, 3)
	for name, want := range map[string]string{"0.worker": WorkerLine, "0.setup": Hello, "0": Hello} {
		if !strings.Contains(log(t, s, name), want) {
			t.Errorf("log of %s lacks %q", name, want)
		}
	}
	if text := log(t, s, "0.worker"); strings.Contains(text, "{port:work}") {
		t.Errorf("the placeholder stays:\n%s", text)
	}
}

// peerRefuses: the reason that one process of a replica gives counts, not what the
// others say about its end.
func peerRefuses(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Never)
	addPeers(&s, Beside(t, s.Dir, "rank1", Refuse))
	if e := failsWith[*deploy.RefusedError](t, r, s); e.Reason != RefusalLine || !strings.Contains(e.Log, "replica-0.rank1.log") {
		t.Errorf("refused with %+v", e)
	}
	NothingLeft(t, s, 1)
}

func peerDies(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Ready)
	worker := Beside(t, s.Dir, "worker", Worker)
	worker.Up = WorkerLine
	addPeers(&s, worker)
	d := Start(t, r, s)
	kill(t, PIDs(t, s.Dir)[0]) // whichever of the two it is: either's end ends the deployment
	select {
	case <-d.Done():
	case <-time.After(soon):
		t.Fatal("the end of a process goes unnoticed")
	}
	if _, ok := errors.AsType[*deploy.DiedError](d.Err()); !ok {
		t.Errorf("Err is %T %v, want a DiedError", d.Err(), d.Err())
	}
	stop(t, d)
	NothingLeft(t, s, 2)
}

func peerNeverUp(t *testing.T, r deploy.Runtime) {
	s := Spec(t, Ready)
	worker := Beside(t, s.Dir, "worker", Worker)
	worker.Up = "no worker says this"
	addPeers(&s, worker)
	e := as[*deploy.InfraError](t, Late(t, r, s, WorkerLine))
	if !strings.Contains(e.Error(), "replica 0's worker is not ready after") {
		t.Errorf("error %q does not name the peer", e)
	}
	NothingLeft(t, s, 1)
}

// pools is a deployment of replicas of two engines behind a router, which ends where an engine
// is not ready when it starts.
func pools(t *testing.T, replicas int, router, prefill, decode Behaviour) deploy.Spec {
	t.Helper()
	s := Spec(t, slices.Repeat([]Behaviour{router}, replicas)...)
	s.Timeout *= 3 // a replica has as many processes
	for i := range s.Replicas {
		front := &s.Replicas[i]
		for j, name := range []string{"prefill-0", "decode-0"} {
			p := Beside(t, s.Dir, name, []Behaviour{prefill, decode}[j])
			p.Argv = append(p.Argv[:1:1], "serve", "--port", "{port:"+name+"}")
			p.Serves = name
			front.Peers = append(front.Peers, p)
		}
		front.Argv = slices.Insert(front.Argv, 2, "--prefill", "http://127.0.0.1:{port:prefill-0}", "--decode", "http://127.0.0.1:{port:decode-0}")
		front.Env = append(front.Env, behindEnv+"=1")
	}
	return s
}

// engines load together, and their routers start when all are ready: one that started before
// would have refused.
func engines(t *testing.T, r deploy.Runtime) {
	s := pools(t, 2, Ready, Ready, Ready)
	d := Start(t, r, s)
	var got []string
	bases := map[string]bool{}
	for _, e := range d.Engines() {
		got = append(got, fmt.Sprintf("%d %s", e.Replica, e.Name))
		bases[e.URL] = true
		if status := Get(t.Context(), e.URL+"/health"); status != 200 {
			t.Errorf("%s answers %d", e.Name, status)
		}
	}
	if want := []string{"0 prefill-0", "0 decode-0", "1 prefill-0", "1 decode-0"}; !slices.Equal(got, want) {
		t.Errorf("engines %v, want %v", got, want)
	}
	for _, target := range d.Targets() {
		bases[target] = true
		if status := Get(t.Context(), target+"/health"); status != 200 {
			t.Errorf("router answers %d", status)
		}
	}
	if len(d.Targets()) != 2 || len(bases) != 6 {
		t.Errorf("%d routers at %d addresses of 6", len(d.Targets()), len(bases))
	}
	stop(t, d)
	NothingLeft(t, s, 6)
	for _, name := range []string{"0", "1", "0.prefill-0", "1.decode-0"} {
		if !strings.Contains(log(t, s, name), Hello) {
			t.Errorf("log of %s lacks the output", name)
		}
	}
}

// engineRefuses: an engine that refuses while the other loads ends the start with its reason,
// and its router is not started.
func engineRefuses(t *testing.T, r deploy.Runtime) {
	s := pools(t, 1, Ready, Never, Refuse)
	if e := failsWith[*deploy.RefusedError](t, r, s); e.Reason != RefusalLine || !strings.Contains(e.Log, "replica-0.decode-0.log") {
		t.Errorf("refused with %+v", e)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "replica-0.log")); err == nil {
		t.Error("the router was started")
	}
	NothingLeft(t, s, 1)
}

func engineNeverReady(t *testing.T, r deploy.Runtime) {
	s := pools(t, 1, Ready, Never, Ready)
	e := as[*deploy.InfraError](t, Late(t, r, s, AskedLine))
	if !strings.Contains(e.Error(), "replica 0's prefill-0 is not ready after") {
		t.Errorf("error %q does not name the engine", e)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "replica-0.log")); err == nil {
		t.Error("the router was started")
	}
	NothingLeft(t, s, 1)
}

func routerNeverReady(t *testing.T, r deploy.Runtime) {
	s := pools(t, 1, Never, Ready, Ready)
	e := as[*deploy.InfraError](t, Late(t, r, s, AskedLine))
	if !strings.Contains(e.Error(), "replica 0 is not ready after") {
		t.Errorf("error %q does not name the router", e)
	}
	NothingLeft(t, s, 3)
}

// engineDies: the end of an engine behind a router that serves on ends the deployment.
func engineDies(t *testing.T, r deploy.Runtime) {
	s := pools(t, 1, Ready, Ready, Ready)
	d := Start(t, r, s)
	Get(t.Context(), d.Engines()[1].URL+"/die")
	select {
	case <-d.Done():
	case <-time.After(soon):
		t.Fatal("the end of an engine goes unnoticed")
	}
	e, ok := errors.AsType[*deploy.DiedError](d.Err())
	if !ok {
		t.Fatalf("Err is %T %v, want a DiedError", d.Err(), d.Err())
	}
	if e.Replica != 0 || e.Peer != "decode-0" || e.Reason != DeathLine || !strings.Contains(e.Error(), "replica 0's decode-0 died") {
		t.Errorf("died with %+v", e)
	}
	stop(t, d)
	NothingLeft(t, s, 3)
}

// Pools is a deployment of two engines behind a router, which have to be ready before it.
func Pools(t *testing.T) deploy.Spec { return pools(t, 1, Ready, Ready, Ready) }

// kill ends a process of the fake engines as an accident would.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("end process %d: %v", pid, err)
	}
}
