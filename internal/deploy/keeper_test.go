package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/proc"
	"perflab/internal/test/deploytest"
)

// here is a Transport to this machine, with a shell of choice.
type here struct {
	shell []string
	tmp   string // TMPDIR
}

type hereSession struct {
	io.WriteCloser
	cmd *exec.Cmd
}

func (h here) Open(_ context.Context, _ string, argv []string, stdout, stderr io.Writer) (deploy.Session, error) {
	argv = append(h.shell, argv[1:]...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Env = append(os.Environ(), "TMPDIR="+h.tmp)
	cmd.WaitDelay = 200 * time.Millisecond // for what keeps the output open
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return hereSession{in, cmd}, cmd.Start()
}

func (s hereSession) CloseWrite() error { return s.WriteCloser.Close() }
func (s hereSession) Close() error      { return s.cmd.Process.Kill() }
func (s hereSession) Wait() error {
	_ = s.cmd.Wait()
	return nil
}

// kept is a Keeper on this machine as a Host.
type kept struct{ deploy.Keeper }

type keptProcess struct{ *deploy.KeeperProcess }

func (h kept) Spawn(ctx context.Context, j deploy.Job) (deploy.Running, error) {
	k, err := h.Keeper.Spawn(ctx, j)
	if err != nil {
		return nil, err
	}
	return keptProcess{k}, nil
}

func (p keptProcess) URL(_ context.Context, port int) (string, error) {
	p.Serves(port)
	return fmt.Sprintf("http://127.0.0.1:%d", port), nil
}

func keptBy(tmp string, shell ...string) deploy.Launcher {
	return deploy.Launcher{
		Host: kept{deploy.Keeper{Transport: here{shell, tmp}, Silence: 5 * time.Second, Grace: 300 * time.Millisecond}},
		Kind: "kept", Bind: "127.0.0.1", Grace: 300 * time.Millisecond, Poll: 5 * time.Millisecond,
	}
}

// shells are those that the keeper's script is tried under, but for one that is
// /bin/sh already.
func shells() [][]string {
	out := [][]string{{"/bin/sh"}}
	sh, _ := filepath.EvalSymlinks("/bin/sh")
	for _, s := range [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		if filepath.Base(sh) != s[0] {
			out = append(out, s)
		}
	}
	return out
}

func TestKeeper(t *testing.T) {
	t.Parallel()
	for i, shell := range shells() {
		var some []string // of the suite: those whose end takes the script other ways
		if i > 0 {
			some = []string{"StartAndStop", "Refuses", "MissingProgram", "DiesAndLeavesAChild", "StopsTheStubborn", "StopsWhatLeftTheGroup", "LeaksItsPort", "Files", "Peers"}
		}
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			if _, err := exec.LookPath(shell[0]); err != nil {
				t.Skip(err)
			}
			t.Parallel()
			tmp := t.TempDir()
			t.Run("suite", func(t *testing.T) {
				deploytest.Run(t, func(*testing.T) deploy.Runtime { return keptBy(tmp, shell...) }, some...)
			})
			nothingIn(t, tmp)
		})
	}
}

// cutOff is a Transport whose sessions can be cut off: nothing passes any more, and
// nobody over there is told; new ones cannot be had.
type cutOff struct {
	here
	cut *atomic.Bool
}

type cutOffSession struct {
	deploy.Session
	cut *atomic.Bool
}

func (c cutOff) Open(ctx context.Context, node string, argv []string, stdout, stderr io.Writer) (deploy.Session, error) {
	if c.cut.Load() {
		return nil, errors.New("the network is down")
	}
	s, err := c.here.Open(ctx, node, argv, cutOffWriter{stdout, c.cut}, stderr)
	return cutOffSession{s, c.cut}, err
}

func (s cutOffSession) Write(p []byte) (int, error) {
	if s.cut.Load() {
		return len(p), nil
	}
	return s.Session.Write(p)
}

func (s cutOffSession) CloseWrite() error {
	if s.cut.Load() {
		return nil
	}
	return s.Session.CloseWrite()
}

func (s cutOffSession) Close() error { return s.CloseWrite() }

type cutOffWriter struct {
	io.Writer
	cut *atomic.Bool
}

func (w cutOffWriter) Write(p []byte) (int, error) {
	if w.cut.Load() {
		return len(p), nil
	}
	return w.Writer.Write(p)
}

// A keeper that hears nothing ends the engine, with what left its group, and cleans up
// although nobody told it that the connection is gone.
func TestKeeperAlone(t *testing.T) {
	t.Parallel()
	for _, shell := range shells() {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			if _, err := exec.LookPath(shell[0]); err != nil {
				t.Skip(err)
			}
			t.Parallel()
			tmp, cut := t.TempDir(), new(atomic.Bool)
			l := keptBy(tmp, shell...)
			l.Host = kept{deploy.Keeper{Transport: cutOff{here{shell, tmp}, cut}, Silence: 2 * time.Second, Grace: 300 * time.Millisecond}}
			s := deploytest.Spec(t, deploytest.Forking)
			d, err := l.Start(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			cut.Store(true)
			endsSoon(t, deploytest.PIDs(t, s.Dir))
			nothingIn(t, tmp)
			<-d.Done()
			if e, ok := errors.AsType[*deploy.DiedError](d.Err()); !ok || !strings.Contains(e.Status, "lost") {
				t.Errorf("Err is %v, want a lost connection", d.Err())
			}
			infra(t, d.Stop(t.Context()), "is out of reach with process", tmp, "the network is down")
			cut.Store(false)
			if _, err := l.Sweep(t.Context(), s.Dir); err != nil { // of what Stop could not reach
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(s.Dir, "processes.json")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("record stays: %v", err)
			}
		})
	}
}

// A port that somebody serves on whom nothing leads to is told of.
func TestKeeperLeakedPort(t *testing.T) {
	t.Parallel()
	l := keptBy(t.TempDir(), "/bin/sh")
	s := deploytest.Spec(t, deploytest.Ready)
	// The child has neither marker nor group.
	s.Replicas[0].Argv = append([]string{"/bin/sh", "-c", `env -u "$0" setsid "$@" & sleep 60`, "PERFLAB_DEPLOYMENT"}, s.Replicas[0].Argv...)
	d, err := l.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Stop(t.Context())
	for _, pid := range deploytest.PIDs(t, s.Dir) {
		if p, err := os.FindProcess(pid); err == nil {
			p.Kill()
		}
	}
	infra(t, err, "still served although every process of the engine has ended", "ss -ltnp")
}

// What a record leads to by number and start time is ended by a keeper on the machine that it
// was on, and since the same boot, alone.
func TestKeeperEndsByBoot(t *testing.T) {
	t.Parallel()
	sleeper := exec.Command("sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		sleeper.Process.Kill()
		sleeper.Wait()
	}()
	id, ok := proc.Read(sleeper.Process.Pid)
	if !ok {
		t.Skip("there is no /proc to know a process by")
	}
	for _, c := range []struct {
		boot  string
		ended int
	}{{"another", 0}, {id.Boot, 1}} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "processes.json"), fmt.Sprintf(
			`{"kind": "kept", "processes": [{"pid": %d, "start": %d, "boot": %q, "marker": "PERFLAB_DEPLOYMENT=none/0"}]}`, id.PID, id.Start, c.boot))
		ended, err := keptBy(t.TempDir(), "/bin/sh").Sweep(t.Context(), dir)
		if err != nil || len(ended) != c.ended {
			t.Errorf("boot %s: ends %q, %v; want %d", c.boot, ended, err, c.ended)
		}
	}
}
