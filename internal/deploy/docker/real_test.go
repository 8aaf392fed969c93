package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/test/deploytest"
)

// realRef is an image with nothing in it: what runs comes from this machine by mounts.
const realRef = "perflab-test:empty"

// realEngine skips unless a Docker Engine of this machine is named; it makes the image.
func realEngine(t *testing.T) *client.Client {
	if os.Getenv("PERFLAB_DOCKER_TEST") != "1" && os.Getenv("DOCKER_HOST") == "" {
		t.Skip("needs a Docker Engine on this machine: set DOCKER_HOST to its socket, or PERFLAB_DOCKER_TEST=1 for the usual one")
	}
	api, err := client.New(client.FromEnv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { api.Close() })
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, dir := range []string{"tmp", "proc", "sys", "dev", "etc"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o777}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	made, err := api.ImageImport(t.Context(), client.ImageImportSource{Source: &b, SourceName: "-"}, realRef, client.ImageImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	if _, err := new(bytes.Buffer).ReadFrom(made); err != nil {
		t.Fatal(err)
	}
	return api
}

// realMounts are the programs of this machine, and where tests keep things.
func realMounts(t *testing.T) (out []string) {
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib64", "/usr"} {
		if _, err := os.Stat(dir); err == nil {
			out = append(out, dir+":"+dir+":ro")
		}
	}
	tmp := os.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(self, tmp+"/") {
		out = append(out, filepath.Dir(self)+":"+filepath.Dir(self)+":ro")
	}
	return append(out, tmp+":"+tmp)
}

// noneLeft fails when a container of a deployment is left.
func noneLeft(t *testing.T, api *client.Client) {
	t.Helper()
	list, err := api.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", "perflab.deployment")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		t.Errorf("container %s is left", c.Names)
	}
}

func TestRealDocker(t *testing.T) {
	api := realEngine(t)
	// The ids of the machine, for the suite looks whether processes are gone.
	s := docker.Settings{Image: realRef, Pull: docker.PullNever, PID: "host", Mounts: realMounts(t), Env: []string{"PATH=/usr/bin:/bin"}}
	t.Run("Conformance", func(t *testing.T) {
		deploytest.Run(t, func(*testing.T) deploy.Runtime {
			return &docker.Runtime{Settings: s, Grace: time.Second, Poll: 5 * time.Millisecond}
		})
	})
	t.Run("Commands", func(t *testing.T) {
		tryCommands(t, &docker.Runtime{Settings: s})
		d := deploytest.Start(t, &docker.Runtime{Settings: s, Grace: time.Second}, deploytest.Spec(t, deploytest.Ready))
		tryCommands(t, d.(deploy.Commander))
	})
	t.Run("KilledPerflab", func(t *testing.T) {
		spec := deploytest.Spec(t, deploytest.Forking, deploytest.Ready)
		killOwner(t, s, spec)
		r := &docker.Runtime{Settings: s}
		for _, want := range []int{2, 0} {
			if ended, err := r.Sweep(t.Context(), spec.Dir); err != nil || len(ended) != want {
				t.Errorf("sweep ends %q, %v; want %d", ended, err, want)
			}
		}
		deploytest.NothingLeft(t, spec, 3)
	})
	t.Run("Files", func(t *testing.T) {
		spec := deploytest.Spec(t, deploytest.Ready)
		m := &spec.Replicas[0].Member
		m.Files = []deploy.File{{Name: "extra.yaml", Text: "port: {port}\n"}}
		m.Argv = append([]string{"/bin/sh", "-c", `cat "$0"; exec "$@"`, "{file:extra.yaml}"}, m.Argv...)
		d := deploytest.Start(t, &docker.Runtime{Settings: s, Grace: time.Second}, spec)
		if err := d.Stop(t.Context()); err != nil { // the log is complete then
			t.Fatal(err)
		}
		if text := readLog(t, spec); !strings.Contains(text, "\nport: "+strings.TrimPrefix(d.Targets()[0], "http://127.0.0.1:")+"\n") {
			t.Errorf("the engine does not find its file:\n%s", text)
		}
	})
	t.Run("OutOfMemory", func(t *testing.T) {
		limited := s
		limited.PID, limited.Memory = "", "64m"
		spec := deploytest.Spec(t, deploytest.Ready)
		spec.Replicas[0].Argv = []string{"tail", "/dev/zero", "--", "/dev/no-{port}"}
		_, err := (&docker.Runtime{Settings: limited, Grace: time.Second}).Start(t.Context(), spec)
		if err == nil || !strings.Contains(err.Error(), "exit status 137 (the kernel ended it: out of memory)") {
			t.Errorf("start: %v", err)
		}
	})
	t.Run("NoGPUs", func(t *testing.T) {
		gpus := s
		gpus.GPUs = docker.GPUsAll
		if _, err := os.Stat("/dev/nvidiactl"); err == nil {
			t.Skip("this machine has GPUs")
		}
		_, err := (&docker.Runtime{Settings: gpus}).Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
		if i, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(i.Hint(), "NVIDIA Container Toolkit") {
			t.Errorf("start: %v", err)
		}
	})
	noneLeft(t, api)
}

// startReal starts a container that runs on, as somebody else would.
func startReal(t *testing.T, api *client.Client, name, pid string) {
	t.Helper()
	hc := &container.HostConfig{NetworkMode: "host", PidMode: container.PidMode(pid)}
	for _, m := range realMounts(t) {
		p := strings.Split(m, ":")
		hc.Mounts = append(hc.Mounts, mount.Mount{Type: mount.TypeBind, Source: p[0], Target: p[1], ReadOnly: len(p) == 3})
	}
	made, err := api.ContainerCreate(t.Context(), client.ContainerCreateOptions{Name: name, Config: &container.Config{Image: realRef, Cmd: []string{"sleep", "600"}, Env: []string{"PATH=/usr/bin:/bin"}}, HostConfig: hc})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := api.ContainerRemove(context.Background(), made.ID, client.ContainerRemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	if _, err := api.ContainerStart(t.Context(), made.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestRealAttached(t *testing.T) {
	api := realEngine(t)
	startReal(t, api, "perflab-test-node", "host")
	t.Run("Conformance", func(t *testing.T) {
		deploytest.Run(t, func(*testing.T) deploy.Runtime {
			return &docker.Runtime{Settings: docker.Settings{Container: "perflab-test-node"}, Grace: time.Second, Poll: 5 * time.Millisecond}
		})
	})
}

// In a container with process ids of its own.
func TestRealAttachedApart(t *testing.T) {
	api := realEngine(t)
	startReal(t, api, "perflab-test-apart", "")
	processes := func() (n int) {
		top, err := api.ContainerTop(t.Context(), "perflab-test-apart", client.ContainerTopOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(top.Processes)
	}
	alone := func() {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); processes() > 1; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d processes are left in the container", processes()-1)
			}
		}
	}
	s := docker.Settings{Container: "perflab-test-apart"}
	r := &docker.Runtime{Settings: s}
	hurry(r)
	d := deploytest.Start(t, r, deploytest.Spec(t, deploytest.Forking))
	if n := processes(); n < 3 {
		t.Errorf("%d processes, want the engine and its child", n)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	alone()
	spec := deploytest.Spec(t, deploytest.Forking)
	killOwner(t, s, spec)
	alone()
	if ended, err := r.Sweep(t.Context(), spec.Dir); err != nil || len(ended) != 0 {
		t.Errorf("sweep ends %q, %v", ended, err)
	}
	tryCommands(t, r)
	alone()
}
