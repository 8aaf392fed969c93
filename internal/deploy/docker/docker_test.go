package docker_test

import (
	"os"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/deploy/deploytest"
	"perflab/internal/deploy/docker"
	"perflab/internal/deploy/docker/dockertest"
)

const ref = "registry.invalid/engines/fake:v1"

func TestMain(m *testing.M) {
	deploytest.EngineMain()
	os.Exit(m.Run())
}

// quick is a runtime over a stand-in, in a hurry.
func quick(e *dockertest.Engine, s docker.Settings) *docker.Runtime {
	s.DockerHost = e.Host
	if s.Container == "" {
		s.Image = ref
	}
	return &docker.Runtime{Settings: s, Grace: 300 * time.Millisecond, Poll: 5 * time.Millisecond}
}

func TestDocker(t *testing.T) {
	deploytest.Run(t, func(t *testing.T) deploy.Runtime {
		return quick(dockertest.Start(t, dockertest.Image{Ref: ref, Entrypoint: []string{"never", "run"}}), docker.Settings{})
	})
}

func TestAttached(t *testing.T) {
	deploytest.Run(t, func(t *testing.T) deploy.Runtime {
		e := dockertest.Start(t, dockertest.Image{Ref: ref})
		e.Run("node", ref, []string{"sleep", "60"}, nil)
		return quick(e, docker.Settings{Container: "node"})
	})
}
