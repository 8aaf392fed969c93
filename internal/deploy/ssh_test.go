package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/test/deploytest"
)

func TestSSH(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "127.0.0.1")
	r := s.runtime(t) // one, whose connections the deployments share
	t.Run("suite", func(t *testing.T) {
		deploytest.Run(t, func(*testing.T) deploy.Runtime { return r })
	})
	nothingIn(t, s.tmp)
}

// infra is the error that must be an InfraError, with what it must say.
func infra(t *testing.T, err error, want ...string) {
	t.Helper()
	e, ok := errors.AsType[*deploy.InfraError](err)
	if !ok {
		t.Fatalf("%T %v, want an InfraError", err, err)
	}
	for _, w := range want {
		if text := e.Error() + ": " + e.Hint(); !strings.Contains(text, w) {
			t.Errorf("error %q lacks %q", text, w)
		}
	}
	if e.Hint() == "" {
		t.Errorf("error %q says not what to do", e)
	}
}

func TestSSHCommand(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "127.0.0.1")
	r := s.runtime(t)
	if nodes := r.Nodes(); !slices.Equal(nodes, []string{"there"}) {
		t.Errorf("nodes %q", nodes)
	}
	const odd = "it's $HOME \\ \"x\"\n second line\tÁ ü !! *"
	var out bytes.Buffer
	if err := r.Command(t.Context(), "there", []string{"printf", "%s", odd}, &out); err != nil || out.String() != odd {
		t.Errorf("prints %q, %v; want %q", out.String(), err, odd)
	}
	err := r.Command(t.Context(), "", []string{"sh", "-c", "echo some; echo why >&2; exit 7"}, &out)
	if e, ok := errors.AsType[*deploy.ExitError](err); !ok || e.Code != 7 || strings.TrimSpace(e.Stderr) != "why" {
		t.Errorf("%#v, want status 7 and what was said", err)
	}
	// A status that the ssh client has for itself.
	err = r.Command(t.Context(), "", []string{"sh", "-c", "exit 255"}, &out)
	if e, ok := errors.AsType[*deploy.ExitError](err); !ok || e.Code != 255 {
		t.Errorf("%v, want status 255", err)
	}
	err = r.Command(t.Context(), "", []string{"sh", "-c", "kill -9 $$"}, &out)
	if e, ok := errors.AsType[*deploy.ExitError](err); !ok || e.Code != -1 {
		t.Errorf("%v, want an end by a signal", err)
	}
	infra(t, r.Command(t.Context(), "", []string{"perflab-no-such"}, &out), "not on PATH of a session on", "full path")
	infra(t, r.Command(t.Context(), "", []string{"/no/such"}, &out), "/no/such does not exist")
	infra(t, r.Command(t.Context(), "", []string{"/etc/passwd"}, &out), "not executable")
	infra(t, r.Command(t.Context(), "other", []string{"true"}, &out), "host other is not in the inventory, which has there")
}

// A command's output comes while it runs, and the end of ctx is its end over there.
func TestSSHCommandStreams(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "127.0.0.1")
	r := s.runtime(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	lines := &firstLine{seen: func(string) { cancel(enough) }}
	err := r.Command(ctx, "", []string{"sh", "-c", "echo $$; exec sleep 60"}, lines)
	if !errors.Is(err, enough) {
		t.Fatalf("%v, want the cause", err)
	}
	var pid int
	if _, err := fmt.Sscan(lines.text.String(), &pid); err != nil {
		t.Fatal(err)
	}
	endsSoon(t, []int{pid})
}

// firstLine tells of the first line that is written.
type firstLine struct {
	text bytes.Buffer
	once sync.Once
	seen func(string)
}

func (l *firstLine) Write(p []byte) (int, error) {
	l.text.Write(p)
	if strings.Contains(l.text.String(), "\n") {
		l.once.Do(func() { l.seen(l.text.String()) })
	}
	return len(p), nil
}

// endsSoon waits for the processes' end.
func endsSoon(t testing.TB, pids []int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); slices.ContainsFunc(pids, deploytest.Alive); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("one of the processes %v still runs", pids)
			return
		}
	}
}

func TestSSHErrors(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "127.0.0.1")
	config := func(replace ...string) string {
		b, err := os.ReadFile(s.config)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "config")
		writeFile(t, path, strings.NewReplacer(replace...).Replace(string(b)))
		return path
	}
	empty := filepath.Join(t.TempDir(), "empty")
	writeFile(t, empty, "")
	other := filepath.Join(t.TempDir(), "other")
	output(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other)
	port := fmt.Sprintf("Port %d", s.port)
	for _, c := range []struct {
		name, config string
		host         deploy.HostEntry
		want         []string
	}{
		{"nobody listens", config(port, fmt.Sprintf("Port %d", deploytest.UnusedPorts(t, 1))), deploy.HostEntry{Name: "there"}, []string{"connect to there", "no ssh server answers", "start sshd on there"}},
		{"key not known", config(s.dir+"/known_hosts", empty), deploy.HostEntry{Name: "there"}, []string{"host key is not known", "ssh there"}},
		{"not let in", s.config, deploy.HostEntry{Name: "there", Identity: other, User: "nobody"}, []string{"Permission denied", "ssh-add"}},
		{"no such name", empty, deploy.HostEntry{Name: "no-such-host.invalid"}, []string{"cannot be resolved", "add an entry for no-such-host.invalid"}},
		{"bad option", config("StrictHostKeyChecking", "StrictestOfAll"), deploy.HostEntry{Name: "there"}, []string{"correct the ssh configuration"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := quickSSH(c.config)
			r.Hosts = []deploy.HostEntry{c.host}
			defer r.Close()
			infra(t, r.Command(t.Context(), "", []string{"true"}, os.Stdout), c.want...)
			_, err := r.Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
			infra(t, err, c.want...)
		})
	}
	r := quickSSH(s.config)
	spec := deploytest.Spec(t, deploytest.Ready)
	spec.Replicas[0].Node = "nowhere"
	_, err := r.Start(t.Context(), spec)
	infra(t, err, "host nowhere is not in the inventory")
}

// An inventory that says it all needs no entry in the configuration.
func TestSSHInventory(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "127.0.0.1")
	config := filepath.Join(t.TempDir(), "config")
	writeFile(t, config, "UserKnownHostsFile "+s.dir+"/known_hosts\n")
	r := quickSSH(config)
	r.Hosts = []deploy.HostEntry{{Name: "node-7", Address: "127.0.0.1", Port: s.port, Identity: s.dir + "/key"}}
	r.Direct = true
	t.Cleanup(func() { r.Close() })
	d := deploytest.Start(t, r, deploytest.Spec(t, deploytest.Ready))
	if status := deploytest.Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
		t.Errorf("target %s answers %d, want 200", d.Targets()[0], status)
	}
}

// What a process needs to be secret is in no argument of any process, here or there, and
// in no header of a log.
func TestSSHHidesSecrets(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "127.0.0.1")
	const inEnv, inFile = "hunter4-environment", "hunter4-file"
	spec := deploytest.Spec(t, deploytest.Ready)
	rep := &spec.Replicas[0]
	rep.Env = append(rep.Env, "HF_TOKEN="+inEnv, "CONFIG={file:engine.yaml}")
	rep.Files = []deploy.File{{Name: "engine.yaml", Text: "a: 'b'\nkey: " + inFile + "\n\tÁ"}}
	stop, seen := make(chan struct{}), make(chan string, 1)
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, p := range paths {
				if b, _ := os.ReadFile(p); bytes.Contains(b, []byte("hunter4-")) {
					select {
					case seen <- string(b):
					default:
					}
				}
			}
		}
	})
	d := deploytest.Start(t, s.runtime(t), spec)
	close(stop)
	watch.Wait()
	select {
	case argv := <-seen:
		t.Errorf("a secret is in the arguments %q", argv)
	default:
	}
	log, err := os.ReadFile(filepath.Join(spec.Dir, "replica-0.log"))
	if err != nil || bytes.Contains(log, []byte("hunter4-")) {
		t.Errorf("log, %v:\n%s", err, log)
	}
	checkFile(t, deploytest.PIDs(t, spec.Dir)[0], rep.Files[0].Text)
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	nothingIn(t, s.tmp)
}

// checkFile looks at the file that a process's CONFIG leads to.
func checkFile(t *testing.T, pid int, want string) {
	t.Helper()
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut("\x00"+string(environ), "\x00CONFIG=")
	path, _, _ := strings.Cut(rest, "\x00")
	b, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || string(b) != want || info.Mode().Perm() != 0o600 {
		t.Errorf("file %s: %q, %v, %v; want %q for its owner alone", path, b, err, info, want)
	}
}

// More replicas than sshd allows sessions over one connection.
func TestSSHManyReplicas(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "127.0.0.1")
	behaviours := slices.Repeat([]deploytest.Behaviour{deploytest.Ready}, 6)
	spec := deploytest.Spec(t, behaviours...)
	d := deploytest.Start(t, s.runtime(t), spec)
	for _, target := range d.Targets() {
		if status := deploytest.Get(t.Context(), target+"/health"); status != 200 {
			t.Errorf("%s answers %d, want 200", target, status)
		}
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	deploytest.NothingLeft(t, spec, len(behaviours))
	nothingIn(t, s.tmp)
}

// A connection that breaks is the end of a deployment, and of its processes; Stop
// makes sure of that through a new one.
func TestSSHConnectionBreaks(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "127.0.0.1")
	r := s.runtime(t)
	spec := deploytest.Spec(t, deploytest.Forking)
	d := deploytest.Start(t, r, spec)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the end of the connection goes unnoticed")
	}
	e, ok := errors.AsType[*deploy.DiedError](d.Err())
	if !ok || !strings.Contains(e.Status, "connection") || !strings.Contains(e.Status, "lost") {
		t.Errorf("Err is %v, want a lost connection", d.Err())
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	deploytest.NothingLeft(t, spec, 2)
	nothingIn(t, s.tmp)
}

// When perflab is killed, all that it started over there ends, also what left its
// group, and the next perflab finds nothing.
func TestSSHKillMinus9(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "127.0.0.1")
	spec := deploytest.Spec(t, deploytest.Forking, deploytest.Ready)
	pids := killedOwner(t, spec, ownerEnv+"_SSH="+s.config)
	endsSoon(t, pids)
	nothingIn(t, s.tmp)
	ended, err := s.runtime(t).Sweep(t.Context(), filepath.Dir(spec.Dir))
	if err != nil || len(ended) > 0 {
		t.Errorf("sweep ends %q, %v; want nothing", ended, err)
	}
	if _, err := os.Stat(filepath.Join(spec.Dir, "processes.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("record stays: %v", err)
	}
}

// The same while it starts a deployment: the keepers end what there is.
func TestSSHKillMinus9BetweenReplicas(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "127.0.0.1")
	spec := between(t)
	owner := startOwner(t, spec, ownerEnv+"_SSH="+s.config)
	pids := owner.await(t, 3)
	owner.kill()
	endsSoon(t, pids)
	nothingIn(t, s.tmp)
	if ended, err := s.runtime(t).Sweep(t.Context(), spec.Dir); err != nil || len(ended) > 0 {
		t.Errorf("sweep ends %q, %v; want nothing", ended, err)
	}
}

// Of engines behind a router each has a keeper, which ends it.
func TestSSHKillMinus9OfPools(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "127.0.0.1")
	spec := deploytest.Pools(t)
	endsSoon(t, killedOwner(t, spec, ownerEnv+"_SSH="+s.config))
	nothingIn(t, s.tmp)
	if ended, err := s.runtime(t).Sweep(t.Context(), spec.Dir); err != nil || len(ended) > 0 {
		t.Errorf("sweep ends %q, %v; want nothing", ended, err)
	}
}
