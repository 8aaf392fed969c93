package deploy_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"perflab/internal/deploy"
	"perflab/internal/test/deploytest"
)

// eachFence runs a test with a cgroup around the engine and with a subreaper alone.
func eachFence(t *testing.T, test func(*testing.T, deploy.Process)) {
	t.Parallel()
	for name, fence := range map[string]deploy.Fence{"cgroup": deploy.AnyFence, "subreaper": deploy.Subreaper} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "cgroup" {
				needCgroup(t)
			}
			r := quick()
			r.Fence = fence
			test(t, r)
		})
	}
}

// needCgroup skips a test where no cgroup can be made.
func needCgroup(t *testing.T) {
	t.Helper()
	if err := deploy.CgroupUsable(); err != nil {
		t.Skip("no cgroup can be made here: ", err)
	}
}

// A process in a session of its own, of which the parent has ended and the environment is
// empty, and which ignores SIGTERM, ends with the deployment.
func TestStopEndsADaemon(t *testing.T) {
	eachFence(t, func(t *testing.T, r deploy.Process) {
		s := deploytest.Spec(t, deploytest.Daemon, deploytest.Ready)
		d := deploytest.Start(t, r, s)
		if err := d.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		deploytest.NothingLeft(t, s, 4)
	})
}

// It does so too when the engine has died before.
func TestStopEndsTheDaemonOfADeadEngine(t *testing.T) {
	eachFence(t, func(t *testing.T, r deploy.Process) {
		s := deploytest.Spec(t, deploytest.Daemon)
		d := deploytest.Start(t, r, s)
		deploytest.Get(t.Context(), d.Targets()[0]+"/die")
		<-d.Done()
		if e, ok := errors.AsType[*deploy.DiedError](d.Err()); !ok || e.Status != "exit status 1" {
			t.Errorf("Err is %v, want an exit with status 1", d.Err())
		}
		if err := d.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		deploytest.NothingLeft(t, s, 3)
	})
}

// When perflab is killed, nobody has to start it again for that.
func TestKillMinus9EndsADaemon(t *testing.T) {
	eachFence(t, func(t *testing.T, r deploy.Process) {
		s := deploytest.Spec(t, deploytest.Daemon, deploytest.Forking)
		owner := startOwner(t, s, fenceEnv(r.Fence))
		if line, err := bufio.NewReader(owner.out).ReadString('\n'); line != "started\n" {
			t.Fatalf("owner says %q (%v)", line, err)
		}
		pids := deploytest.PIDs(t, s.Dir)
		if len(pids) != 5 {
			t.Errorf("processes %v, want 5", pids)
		}
		if guard := recorded(t, s.Dir).Guard.PID; guard > 0 { // it ends last
			pids = append(pids, guard)
		}
		owner.kill()
		endsSoon(t, pids)
		if ended, err := r.Sweep(t.Context(), s.Dir); err != nil || len(ended) > 0 {
			t.Errorf("sweep ends %q, %v; want none", ended, err)
		}
		if _, err := os.Stat(filepath.Join(s.Dir, "processes.json")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("record after the sweep: %v", err)
		}
	})
}

// recorded reads the first process of a deployment's record.
func recorded(t *testing.T, dir string) (p struct {
	PID    int
	Cgroup string
	Guard  struct{ PID int }
}) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "processes.json"))
	if err != nil {
		t.Fatal(err)
	}
	r := struct{ Processes []json.RawMessage }{}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(r.Processes[0], &p); err != nil {
		t.Fatal(err)
	}
	if p.PID == 0 || p.Guard.PID == 0 {
		t.Fatalf("the record leads to no process with a guard: %s", b)
	}
	return p
}

// When perflab and the guard are killed, the engine ends with the guard, and the next
// start finds the rest by its cgroup. The subreaper alone leaves what has an empty environment.
func TestKillMinus9OfPerflabAndGuard(t *testing.T) {
	t.Parallel()
	needCgroup(t)
	s := deploytest.Spec(t, deploytest.Daemon)
	owner := startOwner(t, s)
	if line, err := bufio.NewReader(owner.out).ReadString('\n'); line != "started\n" {
		t.Fatalf("owner says %q (%v)", line, err)
	}
	r := recorded(t, s.Dir)
	stop := syscall.Kill(r.Guard.PID, syscall.SIGSTOP) // it must not see perflab's end
	owner.kill()
	if err := errors.Join(stop, syscall.Kill(r.Guard.PID, syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	lastAlive(t, deploytest.PIDs(t, s.Dir))
	if ended, err := quick().Sweep(t.Context(), s.Dir); err != nil || len(ended) != 1 {
		t.Errorf("sweep ends %q, %v; want one", ended, err)
	}
	deploytest.NothingLeft(t, s, 3)
	if _, err := os.Stat(r.Cgroup); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cgroup %s stays: %v", r.Cgroup, err)
	}
}

// A guard that is killed while perflab runs takes the engine with it, which is noticed.
func TestKillMinus9OfTheGuard(t *testing.T) {
	eachFence(t, func(t *testing.T, f deploy.Process) {
		s := deploytest.Spec(t, deploytest.Forking)
		d := deploytest.Start(t, f, s)
		r := recorded(t, s.Dir)
		if err := syscall.Kill(r.Guard.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-d.Done()
		if e, ok := errors.AsType[*deploy.DiedError](d.Err()); !ok || e.Status != "status unknown" {
			t.Errorf("Err is %v, want an end of unknown status", d.Err())
		}
		if err := d.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		deploytest.NothingLeft(t, s, 2)
	})
}

// An engine has a cgroup as long as it runs, and its guard shows nothing of what was started.
func TestGuardShowsNothing(t *testing.T) {
	eachFence(t, func(t *testing.T, f deploy.Process) {
		const secret = "hunter2-hunter2"
		s := deploytest.Spec(t, deploytest.Ready)
		s.Replicas[0].Env = append(s.Replicas[0].Env, "HF_TOKEN="+secret)
		s.Replicas[0].Argv = append([]string{s.Replicas[0].Argv[0], "--api-key", secret}, s.Replicas[0].Argv[1:]...)
		d := deploytest.Start(t, f, s)
		r := recorded(t, s.Dir)
		if (r.Cgroup != "") != (f.Fence == deploy.AnyFence) {
			t.Errorf("with the fence %q the cgroup is %q", f.Fence, r.Cgroup)
		}
		for name, want := range map[string]string{"cmdline": "perflab-guard\x00replica-0\x00", "environ": "", "comm": "perflab-guard\n"} {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", r.Guard.PID, name))
			if err != nil || string(b) != want {
				t.Errorf("the guard's %s is %q (%v), want %q", name, b, err, want)
			}
		}
		if err := d.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(r.Cgroup); r.Cgroup != "" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the cgroup %s stays: %v", r.Cgroup, err)
		}
	})
}

// What cannot be started is told as without a guard.
func TestGuardCannotStart(t *testing.T) {
	t.Parallel()
	for _, f := range []deploy.Fence{deploy.AnyFence, deploy.NoFence} {
		s := deploytest.Spec(t, deploytest.Ready)
		program := filepath.Join(t.TempDir(), "engine")
		if err := os.WriteFile(program, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		s.Replicas[0].Argv[0] = program
		r := quick()
		r.Fence = f
		_, err := r.Start(t.Context(), s)
		infra(t, err, "fork/exec "+program+": no such file or directory")
	}
}

// TestWorkingDirectory: an engine runs where perflab does, so that paths in its command are
// those of the study, or in the directory that is named, from there.
func TestWorkingDirectory(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	eachFence(t, func(t *testing.T, r deploy.Process) {
		other := t.TempDir()
		relative, err := filepath.Rel(here, other)
		if err != nil {
			t.Fatal(err)
		}
		for dir, want := range map[string]string{"": here, relative: other, other: other} {
			r.Dir = dir
			s := deploytest.Spec(t, deploytest.Ready)
			deploytest.Start(t, r, s)
			got, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", deploytest.PIDs(t, s.Dir)[0]))
			if err != nil || got != want {
				t.Errorf("with directory %q the engine runs in %s, want %s: %v", dir, got, want, err)
			}
		}
	})
}
