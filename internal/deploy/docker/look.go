package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"github.com/moby/moby/client"
)

// Daemon is what the Docker engine of this machine says of itself.
type Daemon struct {
	Version  string   `json:"version"`
	Runtimes []string `json:"runtimes"` // of containers, such as runc and nvidia
}

// GivesGPUs reports whether its containers can be given NVIDIA GPUs.
func (d Daemon) GivesGPUs() bool { return slices.Contains(d.Runtimes, "nvidia") }

// errElsewhere says that the Docker engine is not asked.
var errElsewhere = errors.New("the Docker engine is on another machine, which is not asked: a study may use it as docker_host")

// Look asks the Docker engine that studies would use, where it is on this machine.
func Look(ctx context.Context) (Daemon, error) { return look(ctx, Settings{}) }

func look(ctx context.Context, s Settings) (Daemon, error) {
	e, err := connect(s, nil)
	if err != nil {
		return Daemon{}, err
	}
	defer e.api.Close()
	if !e.local() {
		return Daemon{}, errElsewhere
	}
	got, err := e.api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return Daemon{}, fmt.Errorf("no Docker engine answers at %s: %w", e.api.DaemonHost(), cause(err))
	}
	return Daemon{got.Info.ServerVersion, slices.Sorted(maps.Keys(got.Info.Runtimes))}, nil
}

// cause is what the system says of a connection, which the client wraps in advice of its own.
func cause(err error) error {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e
	}
	return err
}
