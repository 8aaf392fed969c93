package deploy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/engine/logs"
	"perflab/internal/test/deploytest"
)

// ownerEnv makes the test binary a perflab that starts a deployment in the
// directory it names, says so, and waits to be killed.
const ownerEnv = "PERFLAB_TEST_OWNER"

func TestMain(m *testing.M) {
	deploytest.EngineMain()
	rankMain()
	if dir := os.Getenv(ownerEnv); dir != "" {
		own(dir)
	}
	os.Exit(deploytest.Main(m))
}

func own(dir string) {
	time.AfterFunc(time.Minute, func() { os.Exit(3) })
	var s deploy.Spec
	if err := json.Unmarshal([]byte(os.Getenv(ownerEnv+"_REPLICAS")), &s.Replicas); err != nil {
		panic(err)
	}
	s.Dir = dir
	q := quick()
	q.Fence = deploy.Fence(os.Getenv(ownerEnv + "_FENCE"))
	var r deploy.Runtime = q
	if config := os.Getenv(ownerEnv + "_SSH"); config != "" {
		r = quickSSH(config)
	}
	if _, err := r.Start(context.Background(), s); err != nil {
		panic(err)
	}
	os.Stdout.WriteString("started\n")
	select {}
}

// fenceEnv has an owner use a fence.
func fenceEnv(f deploy.Fence) string { return ownerEnv + "_FENCE=" + string(f) }

func quick() deploy.Process {
	return deploy.Process{Grace: 300 * time.Millisecond, Poll: 5 * time.Millisecond}
}

func TestProcess(t *testing.T) {
	t.Parallel()
	deploytest.Run(t, func(*testing.T) deploy.Runtime { return quick() })
}

// What holds of an engine with a cgroup around it holds with less.
func TestProcessFences(t *testing.T) {
	t.Parallel()
	for _, f := range []deploy.Fence{deploy.Subreaper, deploy.NoFence} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			deploytest.Run(t, func(*testing.T) deploy.Runtime {
				r := quick()
				r.Fence = f
				return r
			}, "StartAndStop", "Refuses", "DiesInTheMiddle", "DiesAndLeavesAChild", "StopsTheStubborn", "StopsWhatLeftTheGroup", "LeaksItsPort", "GoesToBackground", "Peers")
		})
	}
}

// Engines see the devices that they are dealt, whatever perflab itself is shown.
func TestProcessDevices(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "2,3,4,5")
	deploytest.Devices(t, quick())
}

func TestProcessRetriesATakenPort(t *testing.T) {
	t.Parallel()
	s := deploytest.Spec(t, deploytest.Taken)
	d := deploytest.Start(t, quick(), s)
	if status := deploytest.Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
		t.Errorf("target answers %d, want 200", status)
	}
	if n := len(deploytest.PIDs(t, s.Dir)); n != 2 {
		t.Errorf("%d launches, want 2", n)
	}
}

func TestProcessGrace(t *testing.T) {
	t.Parallel()
	const grace = 300 * time.Millisecond
	s := deploytest.Spec(t, deploytest.Stubborn)
	d := deploytest.Start(t, deploy.Process{Grace: grace, Poll: 5 * time.Millisecond}, s)
	began := time.Now()
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < grace {
		t.Errorf("killed after %v, before the grace of %v is over", took, grace)
	}
	deploytest.NothingLeft(t, s, 1)
}

func TestProcessStopIsHurriedByContext(t *testing.T) {
	t.Parallel()
	s := deploytest.Spec(t, deploytest.Stubborn)
	d := deploytest.Start(t, deploy.Process{Grace: time.Hour, Poll: 5 * time.Millisecond}, s)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { first <- d.Stop(t.Context()) }()
	cancel() // a second, impatient caller
	if err := d.Stop(ctx); err != nil {
		t.Error(err)
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
	deploytest.NothingLeft(t, s, 1)
}

func TestProcessStopsTheObedientWithoutTheGrace(t *testing.T) {
	t.Parallel()
	s := deploytest.Spec(t, deploytest.Ready)
	d := deploytest.Start(t, deploy.Process{Grace: time.Hour, Poll: 5 * time.Millisecond}, s)
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	deploytest.NothingLeft(t, s, 1)
}

// An engine that prints why it cannot run and then hangs is refused too.
func TestProcessRefusedWhileHanging(t *testing.T) {
	t.Parallel()
	s := deploytest.Spec(t, deploytest.Never)
	s.Diagnose = func(log string) (logs.Failure, bool) {
		return logs.Failure{Line: "the reason"}, strings.Contains(log, deploytest.Hello)
	}
	err := deploytest.Late(t, quick(), s, deploytest.Hello)
	if e, ok := errors.AsType[*deploy.RefusedError](err); !ok || e.Reason != "the reason" {
		t.Errorf("start: %v, want a refusal", err)
	}
}

func TestProcessWritesNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	s := deploytest.Spec(t, deploytest.Crash)
	s.Replicas[0].Env = append(s.Replicas[0].Env, "HF_TOKEN="+secret, "VISIBLE=yes")
	// The engine prints its arguments, as real ones do.
	s.Replicas[0].Argv = []string{"/bin/sh", "-c", `echo "args: $*"; exit 1`, "--api-key", secret, "{port}"}
	_, err := quick().Start(t.Context(), s)
	e, ok := errors.AsType[*deploy.InfraError](err)
	if !ok {
		t.Fatalf("start: %v, want an InfraError", err)
	}
	if text := e.Error() + e.Hint(); strings.Contains(text, secret) || !strings.Contains(text, "args: ") {
		t.Errorf("error shows the secret, or not the line: %s", text)
	}
	b, err := os.ReadFile(filepath.Join(s.Dir, "replica-0.log"))
	if err != nil {
		t.Fatal(err)
	}
	header, _, _ := strings.Cut(string(b), "\n")
	if strings.Contains(header, secret) || !strings.Contains(header, "VISIBLE=yes") {
		t.Errorf("header %q", header)
	}
}

// What cannot be started is refused with a sentence, and nothing is written.
func TestProcessRejectsBadSpecs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	one := func(m deploy.Member, peers ...deploy.Peer) deploy.Spec {
		return deploy.Spec{Dir: dir, Replicas: []deploy.Replica{{Member: m, Peers: peers}}}
	}
	for _, c := range []struct {
		name string
		spec deploy.Spec
		want string
	}{
		{"no replica", deploy.Spec{Dir: t.TempDir()}, "at least one replica"},
		{"no directory", deploy.Spec{Replicas: []deploy.Replica{{Member: deploy.Member{Argv: []string{"a", "{port}"}}}}}, "directory"},
		{"no command", deploy.Spec{Dir: t.TempDir(), Replicas: []deploy.Replica{{}}}, "command is empty"},
		{"no port", deploy.Spec{Dir: t.TempDir(), Replicas: []deploy.Replica{{Member: deploy.Member{Argv: []string{"a"}}}}}, "no {port}"},
		{"bad environment", deploy.Spec{Dir: t.TempDir(), Replicas: []deploy.Replica{{Member: deploy.Member{Argv: []string{"a", "{port}"}, Env: []string{"b"}}}}}, "not KEY=value"},
		{"bad health path", deploy.Spec{Dir: t.TempDir(), Health: "health", Replicas: []deploy.Replica{{Member: deploy.Member{Argv: []string{"a", "{port}"}}}}}, "begin with /"},
		{"unclosed port", one(deploy.Member{Argv: []string{"a", "{port}", "{port:dist"}}), "{port:dist\" is not closed"},
		{"nameless port", one(deploy.Member{Argv: []string{"a", "{port}", "--x={port:}"}}), "{port:}"},
		{"odd port", one(deploy.Member{Argv: []string{"a", "{port}"}, Env: []string{"A={port:a b}"}}), "{port:a b}"},
		{"unknown file", one(deploy.Member{Argv: []string{"a", "{port}", "{file:b.yaml}"}, Files: []deploy.File{{Name: "a.yaml"}}}), "{file:b.yaml} names none of its files, which are a.yaml"},
		{"no files", one(deploy.Member{Argv: []string{"a", "{port}", "{file:b.yaml}"}}), "and there are none"},
		{"unclosed file", one(deploy.Member{Argv: []string{"a", "{port}", "{file:b.yaml"}}), "is not closed"},
		{"odd port in a file", one(deploy.Member{Argv: []string{"a", "{port}"}, Files: []deploy.File{{Name: "a.yaml", Text: "p: {port:}"}}}), "{port:}"},
		{"file twice", one(deploy.Member{Argv: []string{"a", "{port}"}, Files: []deploy.File{{Name: "a.yaml"}, {Name: "a.yaml"}}}), "two files are named a.yaml"},
		{"peer's file is not its own", one(deploy.Member{Argv: []string{"a", "{port}", "{file:a}"}}, deploy.Peer{Name: "head", Member: deploy.Member{Argv: []string{"a"}, Files: []deploy.File{{Name: "a"}}}}), "{file:a}"},
		{"nameless peer", one(deploy.Member{Argv: []string{"a", "{port}"}}, deploy.Peer{Member: deploy.Member{Argv: []string{"a"}}}), "is no name for a process"},
		{"peer with a slash", one(deploy.Member{Argv: []string{"a", "{port}"}}, deploy.Peer{Name: "../x", Member: deploy.Member{Argv: []string{"a"}}}), `"../x" is no name for a process`},
		{"peers alike", one(deploy.Member{Argv: []string{"a", "{port}"}}, deploy.Peer{Name: "b", Member: deploy.Member{Argv: []string{"a"}}}, deploy.Peer{Name: "b", Member: deploy.Member{Argv: []string{"a"}}}), "two processes are named b"},
		{"NUL", one(deploy.Member{Argv: []string{"a", "{port}\x00"}}), "NUL"},
		{"unwritable", deploy.Spec{Dir: "/dev/null/x", Replicas: []deploy.Replica{{Member: deploy.Member{Argv: []string{"sh", "{port}"}}}}}, "/dev/null"},
	} {
		_, err := quick().Start(t.Context(), c.spec)
		if e, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%s: %v, want an InfraError with %q", c.name, err, c.want)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of a deployment that cannot be is there: %v", err)
	}
}

func TestProcessKeepsARecordWhileItRuns(t *testing.T) {
	t.Parallel()
	s := deploytest.Spec(t, deploytest.Ready)
	d := deploytest.Start(t, quick(), s)
	path := filepath.Join(s.Dir, "processes.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Marker    string
		Processes []struct {
			PID  int
			Argv []string
		}
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if pids := deploytest.PIDs(t, s.Dir); len(r.Processes) != 1 || r.Processes[0].PID != pids[0] || len(r.Processes[0].Argv) != 4 {
		t.Errorf("record %s, want process %v", b, pids)
	}
	if ended, err := quick().Sweep(t.Context(), s.Dir); err != nil || len(ended) > 0 {
		t.Errorf("sweep while perflab runs: %v, %v", ended, err)
	}
	if status := deploytest.Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
		t.Errorf("target answers %d after the sweep, want 200", status)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("record after stop: %v", err)
	}
}

// When perflab is killed, engines that have no guard end with it, and what they started is found
// and ended by the next one.
func TestKillMinus9(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	for _, next := range []string{"Sweep", "Start"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			s := deploytest.Spec(t, deploytest.Forking, deploytest.Ready)
			stray := killOwner(t, s, fenceEnv(deploy.NoFence))
			if next == "Start" {
				s.Replicas = s.Replicas[1:]
				deploytest.Start(t, quick(), s)
			} else {
				sweepTwice(t, s.Dir)
			}
			if deploytest.Alive(stray) {
				t.Errorf("process %d still runs", stray)
			}
		})
	}
}

// Engines behind a router and the router itself end with a perflab that is killed.
func TestKillMinus9OfPools(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	for _, fence := range []deploy.Fence{deploy.NoFence, ""} {
		t.Run("fence "+string(fence), func(t *testing.T) {
			t.Parallel()
			s := deploytest.Pools(t)
			endsSoon(t, killedOwner(t, s, fenceEnv(fence)))
			if ended, err := quick().Sweep(t.Context(), s.Dir); err != nil || len(ended) > 0 {
				t.Errorf("sweep ends %q, %v; want nothing", ended, err)
			}
		})
	}
}

func sweepTwice(t *testing.T, dir string) {
	t.Helper()
	for _, want := range []int{1, 0} {
		// The directory of the study, of which the deployment's is a part.
		ended, err := quick().Sweep(t.Context(), filepath.Dir(dir))
		if err != nil || len(ended) != want {
			t.Errorf("sweep ends %q, %v; want %d", ended, err, want)
		}
	}
}

// Deployments of two perflabs leave each other alone: a sweep over both ends neither, and
// none starts in the other's directory.
func TestTwoPerflabs(t *testing.T) {
	t.Parallel()
	study := t.TempDir()
	in := func(dir string) (s deploy.Spec) {
		s = deploytest.Spec(t)
		s.Dir = filepath.Join(study, dir)
		s.Replicas = []deploy.Replica{deploytest.Engine(t, s.Dir, deploytest.Ready)}
		return s
	}
	theirs, ours := in("trial-1"), in("trial-2")
	owner := startOwner(t, theirs)
	pids := owner.await(t, 1)
	d := deploytest.Start(t, quick(), ours)
	if ended, err := quick().Sweep(t.Context(), study); err != nil || len(ended) > 0 {
		t.Errorf("sweep ends %q, %v", ended, err)
	}
	intruder := in("trial-1")
	_, err := quick().Start(t.Context(), intruder)
	infra(t, err, theirs.Dir+": a deployment runs there, of the perflab with process id", "choose another directory")
	intruder = in("trial-2") // of this perflab itself
	_, err = quick().Start(t.Context(), intruder)
	infra(t, err, ours.Dir+": a deployment runs there")
	if !deploytest.Alive(pids[0]) || deploytest.Get(t.Context(), d.Targets()[0]+"/health") != 200 {
		t.Error("one of the deployments has ended")
	}
	owner.kill()
	endsSoon(t, pids)
}

// between is a deployment that is killed between two replicas: the first has more than its
// front process, the second waits for a peer that never comes up.
func between(t *testing.T) deploy.Spec {
	t.Helper()
	s := deploytest.Spec(t, deploytest.Forking, deploytest.Ready)
	worker := deploytest.Beside(t, s.Dir, "worker", deploytest.Worker)
	worker.Up = "no worker says this"
	s.Replicas[1].Peers = []deploy.Peer{worker}
	return s
}

// A perflab that is killed while it starts a deployment leaves nothing that the next does
// not find.
func TestKillMinus9BetweenReplicas(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	t.Parallel()
	s := between(t)
	owner := startOwner(t, s, fenceEnv(deploy.NoFence))
	pids := owner.await(t, 3)
	owner.kill()
	stray := lastAlive(t, pids)
	if ended, err := quick().Sweep(t.Context(), s.Dir); err != nil || len(ended) != 1 || deploytest.Alive(stray) {
		t.Errorf("sweep ends %q, %v; process %d runs: %v", ended, err, stray, deploytest.Alive(stray))
	}
}

// killOwner has another process start the deployment, kills it, waits for the
// engines' end and returns the process that is left.
func killOwner(t *testing.T, s deploy.Spec, env ...string) (stray int) {
	t.Helper()
	return lastAlive(t, killedOwner(t, s, env...))
}

// killedOwner has another process, with more in its environment, start the deployment,
// kills it, and returns the processes of the three that there are of engines.
func killedOwner(t *testing.T, s deploy.Spec, env ...string) (pids []int) {
	t.Helper()
	owner := startOwner(t, s, env...)
	line, err := bufio.NewReader(owner.out).ReadString('\n')
	all := deploytest.PIDs(t, s.Dir)
	for _, pid := range all { // those of a start whose port somebody else took meanwhile have ended, and it was made again
		if deploytest.Alive(pid) {
			pids = append(pids, pid)
		}
	}
	if line != "started\n" || len(pids) != 3 {
		t.Errorf("owner says %q (%v) with processes %v of %v, want 3", line, err, pids, all)
	}
	owner.kill()
	return pids
}

// owner is another perflab.
type owner struct {
	cmd *exec.Cmd
	out io.Reader
	dir string
}

// startOwner has another process, with more in its environment, start a deployment.
func startOwner(t *testing.T, s deploy.Spec, env ...string) *owner {
	t.Helper()
	replicas, err := json.Marshal(s.Replicas)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), ownerEnv+"="+s.Dir, ownerEnv+"_REPLICAS="+string(replicas))
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &owner{cmd, out, s.Dir}
	t.Cleanup(o.kill)
	return o
}

// await waits until so many processes of engines have begun.
func (o *owner) await(t *testing.T, n int) []int {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		pids := deploytest.PIDs(t, o.dir)
		if len(pids) >= n {
			return pids
		}
		if time.Now().After(end) {
			t.Fatalf("processes %v, want %d", pids, n)
		}
	}
}

// kill ends it as an accident would.
func (o *owner) kill() {
	o.cmd.Process.Kill()
	o.cmd.Wait()
}

// lastAlive waits until only one of the processes runs.
func lastAlive(t *testing.T, pids []int) int {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var alive []int
		for _, pid := range pids {
			if deploytest.Alive(pid) {
				alive = append(alive, pid)
			}
		}
		if len(alive) == 1 {
			return alive[0]
		}
		if time.Now().After(end) || len(alive) == 0 {
			t.Fatalf("processes %v run after the kill, want one", alive)
		}
	}
}
