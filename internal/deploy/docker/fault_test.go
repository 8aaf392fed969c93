package docker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/engine/cluster"
	"perflab/internal/test/deploytest"
	"perflab/internal/test/dockertest"
)

// TestFaults holds what daemons say at each step, what it is taken for, and that nothing
// is left.
func TestFaults(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	const start, create, inspect, pull = "/start", "/containers/create", "/json", "/images/create"
	for name, c := range map[string]struct {
		at      string // end of the path that fails
		status  int
		message string
		hint    string
		remote  bool
	}{
		"no nvidia runtime":  {start, 500, `could not select device driver "" with capabilities: [[gpu]]`, "NVIDIA Container Toolkit", false},
		"nvidia fails":       {start, 500, `failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown`, "NVIDIA Container Toolkit", false},
		"unknown runtime":    {create, 400, `unknown or invalid runtime name: kata`, "container_runtime", false},
		"disk full":          {create, 500, `write /var/lib/docker/tmp/x: no space left on device`, "docker system df", false},
		"name taken":         {create, 409, `Conflict. The container name "/x" is already in use by container "y". You have to remove (or rename) that container to be able to reuse that name.`, "docker rm -f", false},
		"no mount source":    {create, 400, `invalid mount config for type "bind": bind source path does not exist: /models`, "correct mounts", false},
		"no device":          {start, 500, `error gathering device information while adding custom device "/dev/kfd": no such file or directory`, "correct devices", false},
		"not executable":     {start, 400, `OCI runtime create failed: exec: "/opt/x": permission denied: unknown`, "not executable in the image", false},
		"no such path":       {start, 400, `OCI runtime create failed: container_linux.go:380: starting container process caused: exec: "/opt/x": stat /opt/x: no such file or directory: unknown`, "does not exist in the image", false},
		"no registry":        {pull, 500, `Get "https://registry.invalid/v2/": dial tcp: lookup registry.invalid: no such host`, "cannot reach the registry", true},
		"pull limit":         {pull, 429, `toomanyrequests: You have reached your pull rate limit.`, "docker login, or wait", true},
		"other platform":     {pull, 404, `no matching manifest for linux/arm64 in the manifest list entries`, "set platform", true},
		"disk full at pull":  {pull, 500, `failed to register layer: write /usr/x: no space left on device`, "docker system prune", true},
		"something else":     {create, 500, `the moon is in the wrong phase`, "", false},
		"image is not there": {inspect, 404, `No such image: ` + ref, "", false}, // then pulled, and still not there
	} {
		e := dockertest.Start(t, dockertest.Image{Ref: ref, Remote: c.remote})
		e.FailWith(func(method, path string) (int, string) {
			if method+path == "GET/containers/json" || !strings.HasSuffix(path, c.at) {
				return 0, ""
			}
			return c.status, c.message
		})
		_, err := quick(e, docker.Settings{}).Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
		i, ok := errors.AsType[*deploy.InfraError](err)
		if !ok || !strings.Contains(i.Error(), c.message) || !strings.Contains(i.Hint(), c.hint) || c.hint == "" && name == "something else" && i.Hint() != "" {
			t.Errorf("%s: %v, with the hint %q, want %q", name, err, i.Hint(), c.hint)
		}
		if left := e.Containers(); len(left) != 0 {
			t.Errorf("%s: left is %+v", name, left)
		}
	}
}

func TestNoSuchImage(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	for image, hint := range map[string]string{"registry.invalid/engines/fake:v2": "correct its name or tag", "registry.invalid/engines/none:v1": "docker login"} {
		r := &docker.Runtime{Settings: docker.Settings{Image: image, DockerHost: e.Host}}
		_, err := r.Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
		if i, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(i.Hint(), hint) || !strings.Contains(i.Error(), image) {
			t.Errorf("%s: %v (%s)", image, err, i.Hint())
		}
		if _, ok := r.Resolved(); ok {
			t.Errorf("%s is resolved", image)
		}
	}
}

// A port that another container publishes is no reason to give up.
//
// Not parallel: a test beside it may take a port that this one has just given back, and a stop then
// says that the engine still serves it.
func TestTakenPortIsRetried(t *testing.T) {
	for _, message := range []string{
		"driver failed programming external connectivity on endpoint x (y): Bind for 127.0.0.1:41234 failed: port is already allocated",
		"driver failed programming external connectivity on endpoint x: Error starting userland proxy: listen tcp4 127.0.0.1:41234: bind: address already in use",
	} {
		e := dockertest.Start(t, dockertest.Image{Ref: ref})
		failures := 1
		e.FailWith(func(_, path string) (int, string) {
			if strings.HasSuffix(path, "/start") && failures > 0 {
				failures--
				return 500, message
			}
			return 0, ""
		})
		d := deploytest.Start(t, quick(e, docker.Settings{Network: docker.NetworkBridge}), deploytest.Spec(t, deploytest.Ready))
		only(t, e)
		if err := d.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		failures = 100
		_, err := quick(e, docker.Settings{Network: docker.NetworkBridge}).Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
		if p, ok := errors.AsType[*deploy.PortError](err); !ok || p.Hint() == "" {
			t.Errorf("a port that stays taken: %v", err)
		}
		if left := e.Containers(); len(left) != 0 {
			t.Errorf("left is %+v", left)
		}
	}
}

func TestNoDaemon(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	for _, host := range []string{"unix://" + filepath.Join(t.TempDir(), "docker.sock"), "tcp://127.0.0.1:1"} {
		r := &docker.Runtime{Settings: docker.Settings{Image: ref, DockerHost: host}}
		_, err := r.Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
		if i, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(i.Hint(), "start Docker") {
			t.Errorf("%s: %v", host, err)
		}
		if ended, err := r.Sweep(t.Context(), t.TempDir()); err != nil || ended != nil {
			t.Errorf("a sweep of nothing asks the daemon: %q, %v", ended, err)
		}
	}
	r := &docker.Runtime{Settings: docker.Settings{Image: ref, Pull: "daily"}}
	if _, err := r.Start(t.Context(), deploytest.Spec(t, deploytest.Ready)); err == nil || !strings.Contains(err.Error(), "pull") {
		t.Errorf("bad settings: %v", err)
	}
}

// A daemon that goes away while the deployment is stopped: the error names the container.
func TestDaemonIsGoneAtStop(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := deploytest.Spec(t, deploytest.Ready)
	r := quick(e, docker.Settings{})
	if err := r.Hurry(500*time.Millisecond, 0); err != nil {
		t.Fatal(err)
	}
	d, err := r.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	id := only(t, e).ID
	e.Down()
	err = d.Stop(t.Context())
	i, ok := errors.AsType[*deploy.InfraError](err)
	if !ok || !strings.Contains(i.Error(), id[:12]) || !strings.Contains(i.Error(), "cannot be removed") || !strings.Contains(i.Hint(), "docker rm -f") {
		t.Errorf("stop: %v", err)
	}
	e.Restart()
	if ended, err := quick(e, docker.Settings{}).Sweep(t.Context(), s.Dir); err != nil || len(ended) != 1 || len(e.Containers()) != 0 {
		t.Errorf("the sweep afterwards ends %q, %v", ended, err)
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]docker.Settings{"image": {}, "container": {Container: "node"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := dockertest.Start(t, dockertest.Image{Ref: ref, Entrypoint: []string{"never", "run"}})
			before := 0
			if settings.Container != "" {
				e.Run("node", ref, []string{"sleep", "60"}, nil)
				before = 1
			}
			tryCommands(t, quick(e, settings))
			if got := len(e.Containers()); got != before {
				t.Errorf("%d containers are left, want %d", got, before)
			}
		})
	}
	t.Run("deployment", func(t *testing.T) {
		t.Parallel()
		e := dockertest.Start(t, dockertest.Image{Ref: ref})
		d := deploytest.Start(t, quick(e, docker.Settings{}), deploytest.Spec(t, deploytest.Ready))
		c, ok := d.(deploy.Commander)
		if !ok {
			t.Fatal("a deployment is no Commander")
		}
		tryCommands(t, c)
		if err := d.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if err := c.Command(t.Context(), "", []string{"true"}, io.Discard); err == nil || !strings.Contains(err.Error(), "no container of the deployment runs") {
			t.Errorf("after stop: %v", err)
		}
	})
}

// The checks before a start run inside a container, by what that has.
func TestPreflightInContainer(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	e.Run("node", ref, []string{"sleep", "60"}, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	p := deploy.Preflight{Version: []string{"/bin/sh", "-c", "echo loading; echo 1.2.3"}, Ports: []int{port}, Nodes: []cluster.Node{{Interface: "lo", Addr: "127.0.0.1"}}}
	findings, err := p.Run(t.Context(), quick(e, docker.Settings{Container: "node"}))
	i, ok := errors.AsType[*deploy.InfraError](err)
	if !ok || i.Err.Error() != fmt.Sprintf("port %d of this machine is in use: end what listens there, or choose another", port) {
		t.Errorf("%v", err)
	}
	var found []string
	for _, f := range findings {
		found = append(found, f.Text)
	}
	if text := strings.Join(found, "; "); !strings.Contains(text, "this machine has version 1.2.3") || !strings.Contains(text, "the interface lo of this machine has 127.0.0.1") {
		t.Errorf("found %q", found)
	}
}

// tryCommands tries what deploy.Commander promises.
func tryCommands(t *testing.T, c deploy.Commander) {
	t.Helper()
	if n := c.Nodes(); len(n) != 1 || n[0] != "" {
		t.Errorf("nodes %q", n)
	}
	var out strings.Builder
	if err := c.Command(t.Context(), "", []string{"/bin/sh", "-c", "echo usage; echo warning >&2"}, &out); err != nil || out.String() != "usage\n" {
		t.Errorf("output %q, %v", out.String(), err)
	}
	err := c.Command(t.Context(), "", []string{"/bin/sh", "-c", "echo first >&2; echo bad option >&2; exit 2", "--api-key", "hunter2-hunter2"}, io.Discard)
	if e, ok := errors.AsType[*deploy.ExitError](err); !ok || e.Code != 2 || !strings.Contains(e.Stderr, "bad option") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a command that fails: %v", err)
	}
	err = c.Command(t.Context(), "", []string{"perflab-no-such-program"}, io.Discard)
	if e, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(e.Hint(), "perflab-no-such-program is not on PATH") {
		t.Errorf("a program that is not there: %v", err)
	}
	if err := c.Command(t.Context(), "node7", []string{"true"}, io.Discard); err == nil || !strings.Contains(err.Error(), "node7") {
		t.Errorf("a node that is not there: %v", err)
	}
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	began := time.Now()
	err = c.Command(ctx, "", []string{"/bin/sh", "-c", "echo reading; exec sleep 50"}, writerFunc(func([]byte) { cancel(interrupted) }))
	if !errors.Is(err, interrupted) || time.Since(began) > 10*time.Second {
		t.Errorf("a command that is interrupted: %v after %v", err, time.Since(began))
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
