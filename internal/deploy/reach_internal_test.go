package deploy

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// far is this machine as one to whose ports no way is found in time.
type far struct{ local }

func (h far) Spawn(ctx context.Context, j Job) (Running, error) {
	run, err := h.local.Spawn(ctx, j)
	return unreached{run}, err
}

type unreached struct{ Running }

func (unreached) URL(ctx context.Context, _ int) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// A start whose time is over while the way to a port is made is late like any other: a
// failure of the machinery, which is tried again, and no end of everything.
func TestLateOnTheWay(t *testing.T) {
	t.Parallel()
	l := Launcher{Host: far{}, Kind: "process", Bind: loopback, Grace: 100 * time.Millisecond}
	_, err := l.Start(t.Context(), Spec{Name: "trial 3", Dir: t.TempDir(), Timeout: 200 * time.Millisecond,
		Replicas: []Replica{{Member: Member{Argv: []string{"/bin/sh", "-c", "echo up; exec sleep 60", "{port}"}}}}})
	if e, ok := errors.AsType[*InfraError](err); !ok || !strings.Contains(e.Error(), "start trial 3: replica 0 is not ready after 200ms") || e.Log == "" {
		t.Errorf("start: %T %v, want an InfraError that says so", err, err)
	}
}
