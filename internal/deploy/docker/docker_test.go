package docker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/test/deploytest"
	"perflab/internal/test/dockertest"
)

const ref = "registry.invalid/engines/fake:v1"

// ownerEnv makes the test binary a perflab that starts a deployment in the directory it
// names, says so, and waits to be killed.
const ownerEnv = "PERFLAB_TEST_OWNER"

func TestMain(m *testing.M) {
	deploytest.EngineMain()
	if dir := os.Getenv(ownerEnv); dir != "" {
		own(dir)
	}
	os.Exit(deploytest.Main(m))
}

func own(dir string) {
	time.AfterFunc(time.Minute, func() { os.Exit(3) })
	var r docker.Runtime
	s := deploy.Spec{Dir: dir}
	for key, v := range map[string]any{"_REPLICAS": &s.Replicas, "_SETTINGS": &r.Settings} {
		if err := json.Unmarshal([]byte(os.Getenv(ownerEnv+key)), v); err != nil {
			panic(err)
		}
	}
	hurry(&r)
	if _, err := r.Start(context.Background(), s); err != nil {
		panic(err)
	}
	os.Stdout.WriteString("started\n")
	select {}
}

// killOwner has another process start the deployment, and kills it.
func killOwner(t *testing.T, settings docker.Settings, s deploy.Spec) {
	t.Helper()
	owner, out := startOwner(t, settings, s)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		t.Errorf("owner says %q (%v)", line, err)
	}
	owner.Process.Kill()
	owner.Wait()
}

// startOwner has another process start the deployment.
func startOwner(t *testing.T, settings docker.Settings, s deploy.Spec) (*exec.Cmd, io.Reader) {
	t.Helper()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"="+s.Dir)
	for key, v := range map[string]any{"_REPLICAS": s.Replicas, "_SETTINGS": settings} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		owner.Env = append(owner.Env, ownerEnv+key+"="+string(b))
	}
	owner.Stderr = os.Stderr
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	return owner, out
}

// quick is a runtime over a stand-in, in a hurry.
func quick(e *dockertest.Engine, s docker.Settings) *docker.Runtime {
	s.DockerHost = e.Host
	if s.Container == "" {
		s.Image = ref
	}
	r := &docker.Runtime{Settings: s}
	hurry(r)
	return r
}

// hurry shortens what a runtime waits for.
func hurry(r *docker.Runtime) {
	r.Grace, r.Poll = 300*time.Millisecond, 5*time.Millisecond
	if err := r.Hurry(20*time.Second, 5*time.Second); err != nil {
		panic(err)
	}
}

func TestDocker(t *testing.T) {
	t.Parallel()
	deploytest.Run(t, func(t *testing.T) deploy.Runtime {
		return quick(dockertest.Start(t, dockertest.Image{Ref: ref, Entrypoint: []string{"never", "run"}}), docker.Settings{})
	})
}

func TestAttached(t *testing.T) {
	t.Parallel()
	deploytest.Run(t, func(t *testing.T) deploy.Runtime {
		e := dockertest.Start(t, dockertest.Image{Ref: ref})
		e.Run("node", ref, []string{"sleep", "60"}, nil)
		return quick(e, docker.Settings{Container: "node"})
	})
}
