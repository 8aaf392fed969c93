package render_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/deploy/render"
	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
	"perflab/internal/test/deploytest"
)

// soon bounds what should take a moment, on a machine that is busy.
const soon = 30 * time.Second

// running is a script under way.
type running struct {
	cmd   *exec.Cmd
	dir   string
	lines chan string
	errs  strings.Builder
}

// run starts a script of a plan in a directory of its own, with what PATH has first.
func run(t *testing.T, p render.Plan, path string, args ...string) *running {
	t.Helper()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the script needs %s, which is not here", program)
		}
	}
	text, err := render.Script(p)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{dir: t.TempDir(), lines: make(chan string, 100)} // a script prints a few lines
	file := filepath.Join(r.dir, "serve.sh")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r.cmd = r.command(file, path, args...)
	r.cmd.Stderr = &r.errs
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	t.Cleanup(func() { r.cmd.Process.Signal(syscall.SIGTERM) })
	return r
}

func (r *running) command(file, path string, args ...string) *exec.Cmd {
	cmd := exec.Command("bash", append([]string{file}, args...)...)
	cmd.Env = append(os.Environ(), "PERFLAB_RUN_DIR="+filepath.Join(r.dir, "run dir"), "GRACE_S=1")
	if path != "" {
		cmd.Env = append(cmd.Env, "PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	return cmd
}

// ready waits for the line that says so, and returns its targets.
func (r *running) ready(t *testing.T) []string {
	t.Helper()
	for end := time.After(soon); ; {
		select {
		case line, ok := <-r.lines:
			if urls, found := strings.CutPrefix(line, "ready: "); found {
				return strings.Fields(urls)
			}
			if !ok {
				r.cmd.Wait()
				t.Fatalf("the script ended before it was ready:\n%s", r.errs.String())
			}
		case <-end:
			t.Fatal("the script is not ready in time")
		}
	}
}

// end waits for the script's end and returns its status.
func (r *running) end(t *testing.T) int {
	t.Helper()
	late := time.AfterFunc(soon, func() { r.cmd.Process.Kill() })
	defer late.Stop()
	for range r.lines { // Wait closes the pipe
	}
	r.cmd.Wait()
	if _, err := os.Stat(filepath.Join(r.dir, "run dir", "pid")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the script ended before it had cleaned up: %v", err)
	}
	return r.cmd.ProcessState.ExitCode()
}

// fakes is a plan of fake engines on ports that are free now.
func fakes(t *testing.T, behaviours ...deploytest.Behaviour) render.Plan {
	t.Helper()
	s := deploytest.Spec(t, behaviours...)
	return render.Plan{Name: "fakes", Spec: s, Port: deploytest.UnusedPorts(t, len(behaviours)), Bench: "perflab bench --base-url http://HOST:PORT"}
}

func TestScriptStartsAndStops(t *testing.T) {
	t.Parallel()
	p := fakes(t, deploytest.Ready, deploytest.Stubborn)
	p.Spec.Replicas[0].Files = []deploy.File{{Name: "extra.yaml", Text: "it's: {port}\n"}}
	p.Spec.Replicas[0].Env = append(p.Spec.Replicas[0].Env, "FILE={file:extra.yaml}")
	r := run(t, p, "")
	targets := r.ready(t)
	if len(targets) != 2 {
		t.Fatalf("targets %v", targets)
	}
	for _, target := range targets {
		if status := deploytest.Get(t.Context(), target+"/health"); status != 200 {
			t.Errorf("%s answers %d", target, status)
		}
	}
	b, err := os.ReadFile(filepath.Join(r.dir, "run dir", "replica-0.extra.yaml"))
	if want := fmt.Sprintf("it's: %d\n", p.Port); err != nil || string(b) != want {
		t.Errorf("the file holds %q, want %q (%v)", b, want, err)
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	if code := r.end(t); code != 143 {
		t.Errorf("exit status %d\n%s", code, r.errs.String())
	}
	deploytest.NothingLeft(t, p.Spec, 2)
}

func TestScriptStops(t *testing.T) {
	t.Parallel()
	p := fakes(t, deploytest.Ready)
	r := run(t, p, "")
	r.ready(t)
	file := filepath.Join(r.dir, "serve.sh")
	if out, err := r.command(file, "").CombinedOutput(); err == nil || !strings.Contains(string(out), "runs it already") {
		t.Errorf("a second start: %v\n%s", err, out)
	}
	if out, err := r.command(file, "", "stop").CombinedOutput(); err != nil {
		t.Errorf("stop: %v\n%s", err, out)
	}
	if code := r.end(t); code != 143 {
		t.Errorf("exit status %d", code)
	}
	deploytest.NothingLeft(t, p.Spec, 1)
	if out, err := r.command(file, "", "stop").CombinedOutput(); err == nil || !strings.Contains(string(out), "nothing of") {
		t.Errorf("a second stop: %v\n%s", err, out)
	}
}

// TestScriptEnds: when one replica ends, all do, and the script says which and why.
func TestScriptEnds(t *testing.T) {
	t.Parallel()
	p := fakes(t, deploytest.Ready, deploytest.Ready)
	r := run(t, p, "")
	targets := r.ready(t)
	deploytest.Get(t.Context(), targets[1]+"/die")
	if code := r.end(t); code != 1 {
		t.Errorf("exit status %d", code)
	}
	if text := r.errs.String(); !strings.Contains(text, "replica-1 has ended") || !strings.Contains(text, deploytest.DeathLine) {
		t.Errorf("it says %q", text)
	}
	deploytest.NothingLeft(t, p.Spec, 2)
}

func TestScriptRefused(t *testing.T) {
	t.Parallel()
	p := fakes(t, deploytest.Ready, deploytest.Refuse)
	r := run(t, p, "")
	if code := r.end(t); code != 1 {
		t.Errorf("exit status %d", code)
	}
	if text := r.errs.String(); !strings.Contains(text, "replica-1 ended before it was ready") || !strings.Contains(text, deploytest.RefusalLine) {
		t.Errorf("it says %q", text)
	}
	deploytest.NothingLeft(t, p.Spec, 2)
}

func TestScriptTooSlow(t *testing.T) {
	t.Parallel()
	p := fakes(t, deploytest.Never)
	p.Spec.Timeout = 3 * time.Second // bash counts whole seconds of the clock: of one there may be nothing left
	r := run(t, p, "")
	if code := r.end(t); code != 1 || !strings.Contains(r.errs.String(), "3 s passed before it was ready") {
		t.Errorf("exit status %d, it says %q", code, r.errs.String())
	}
	deploytest.NothingLeft(t, p.Spec, 1)
}

// pooledFakes is a plan of two fake engines behind a router, which ends where one of them is
// not ready when it starts.
func pooledFakes(t *testing.T) render.Plan {
	t.Helper()
	return render.Plan{Name: "fakes", Spec: deploytest.Pools(t), Port: deploytest.UnusedPorts(t, 1)}
}

// TestScriptPools: the router starts when its engines are ready, and an engine's end ends all.
func TestScriptPools(t *testing.T) {
	p := pooledFakes(t)
	r := run(t, p, "")
	targets := r.ready(t)
	if len(targets) != 1 || deploytest.Get(t.Context(), targets[0]+"/health") != 200 {
		t.Errorf("targets %v", targets)
	}
	log, err := os.ReadFile(filepath.Join(r.dir, "run dir", "replica-0.decode-0.log"))
	if err != nil || !strings.Contains(string(log), deploytest.Hello) {
		t.Errorf("log of the decode engine: %q, %v", log, err)
	}
	deploytest.Get(t.Context(), "http://127.0.0.1:20016/die") // the second port
	if code := r.end(t); code != 1 {
		t.Errorf("exit status %d", code)
	}
	if text := r.errs.String(); !strings.Contains(text, "replica-0.decode-0 has ended") || !strings.Contains(text, deploytest.DeathLine) {
		t.Errorf("it says %q", text)
	}
	deploytest.NothingLeft(t, p.Spec, 3)
}

// TestScriptPoolRefuses: the router of an engine that refuses is not started.
func TestScriptPoolRefuses(t *testing.T) {
	p := pooledFakes(t)
	refuse := deploytest.Beside(t, p.Spec.Dir, "x", deploytest.Refuse)
	p.Spec.Replicas[0].Peers[1].Env = refuse.Env
	r := run(t, p, "")
	if code := r.end(t); code != 1 {
		t.Errorf("exit status %d", code)
	}
	if text := r.errs.String(); !strings.Contains(text, "replica-0.decode-0 ended before it was ready") || !strings.Contains(text, deploytest.RefusalLine) {
		t.Errorf("it says %q", text)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "run dir", "replica-0.log")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the router was started: %v", err)
	}
	deploytest.NothingLeft(t, p.Spec, 2)
}

// sshStub stands in for ssh: it runs the command here, as a login shell of the host
// would: in a session of its own, whose input ends when the connection does. It notes
// the host, and has kill take its time, as where a machine is busy: what a process does
// in an instant it has done before anybody looks.
const sshStub = `#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift 2; done
echo "$1" >>"$(dirname "$0")/hosts"
shift
mkfifo "$0.$$"
exec 3<&0
cat <&3 >"$0.$$" & cat=$!
BASH_ENV="$0.slow" setsid sh -c "$*" <"$0.$$" 3<&-
status=$?
kill "$cat"
exit "$status"
`

// TestScriptRemote has processes of other machines, by a stand-in for ssh: a peer that
// ends by itself, one that says when it is up, and the engine.
func TestScriptRemote(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("the stand-in for ssh needs setsid, which is not here")
	}
	bin := t.TempDir()
	for name, text := range map[string]string{"ssh": sshStub, "ssh.slow": `kill() { sleep 0.1; builtin kill "$@"; }`} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := fakes(t, deploytest.Ready)
	p.Nodes = []cluster.Node{{Name: "alpha", Addr: "127.0.0.1"}, {Name: "beta", Addr: "127.0.0.1"}}
	front := &p.Spec.Replicas[0]
	front.Node = "alpha"
	front.Env = append(front.Env, "ODD=a 'b' $c")
	note := filepath.Join(bin, "note")
	front.Peers = []deploy.Peer{
		{Member: deploy.Member{Node: "beta", Argv: []string{"sh", "-c", `printf %s "$NOTE" >` + engine.Quote(note)}, Env: []string{"NOTE=it's $HOME & \"more\""}}, Name: "prepare", Once: true},
		{Member: deploy.Member{Node: "beta", Argv: []string{"sh", "-c", `echo up on {port:ray}; exec sleep 60`}}, Name: "worker", Up: "up on 20000"},
	}
	r := run(t, p, bin)
	r.ready(t)
	if b, err := os.ReadFile(note); err != nil || string(b) != `it's $HOME & "more"` {
		t.Errorf("the environment arrives as %q (%v)", b, err)
	}
	hosts, err := os.ReadFile(filepath.Join(bin, "hosts"))
	if err != nil || string(hosts) != "beta\nbeta\nalpha\n" {
		t.Errorf("hosts %q (%v)", hosts, err)
	}
	r.cmd.Process.Signal(syscall.SIGINT)
	if code := r.end(t); code != 130 {
		t.Errorf("exit status %d\n%s", code, r.errs.String())
	}
	gone(t, p.Spec)
}

// gone waits until the engine's process has ended: what ends a remote one runs there,
// after the script.
func gone(t *testing.T, s deploy.Spec) {
	t.Helper()
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		left := 0
		for _, pid := range deploytest.PIDs(t, s.Dir) {
			if deploytest.Alive(pid) {
				left++
			}
		}
		if left == 0 {
			return
		}
	}
	t.Error("an engine still runs")
}
