package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"perflab/internal/deploy"
	"perflab/internal/deploy/deploytest"
	"perflab/internal/deploy/docker"
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
	t.Run("Conformance", func(t *testing.T) {
		// The ids of the machine, for the suite looks whether processes are gone.
		s := docker.Settings{Image: realRef, Pull: docker.PullNever, PID: "host", Mounts: realMounts(t)}
		deploytest.Run(t, func(*testing.T) deploy.Runtime {
			return &docker.Runtime{Settings: s, Grace: time.Second, Poll: 5 * time.Millisecond}
		})
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
