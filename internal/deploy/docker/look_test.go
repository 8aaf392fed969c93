package docker

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"perflab/internal/test/dockertest"
)

func TestLook(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	e := dockertest.Start(t)
	t.Setenv("DOCKER_HOST", e.Host)
	d, err := Look(t.Context())
	if err != nil || d.Version != "27.0.0" || !slices.Equal(d.Runtimes, []string{"nvidia", "runc"}) || !d.GivesGPUs() {
		t.Errorf("%+v, %v", d, err)
	}
	e.Down()
	if _, err := Look(t.Context()); err == nil || !strings.Contains(err.Error(), "no Docker engine answers") {
		t.Errorf("an engine that is down: %v", err)
	}
	t.Setenv("DOCKER_HOST", "tcp://docker.invalid:2375")
	if _, err := Look(t.Context()); !errors.Is(err, errElsewhere) {
		t.Errorf("an engine elsewhere: %v", err)
	}
}
