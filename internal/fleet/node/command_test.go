package node

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
)

// TestCommand: a command's output, status and absence come as they are.
func TestCommand(t *testing.T) {
	s := startSite(t)
	s.start(t, "a", nil)
	r := s.lead(t, Leader{Lease: time.Minute}).On("a", deploy.Process{}, nil).(deploy.Commander)
	var out bytes.Buffer
	const odd = "it's $HOME \\ \"x\"\n second line\tÁ ü !! *"
	if err := r.Command(t.Context(), "a", []string{"printf", "%s", odd}, &out); err != nil || out.String() != odd {
		t.Errorf("prints %q, %v", out.String(), err)
	}
	out.Reset()
	if err := r.Command(t.Context(), "a", []string{"sh", "-c", "head -c 2000000 /dev/zero"}, &out); err != nil || out.Len() != 2000000 {
		t.Errorf("of much output comes %d, %v", out.Len(), err)
	}
	err := r.Command(t.Context(), "a", []string{"sh", "-c", "echo why >&2; exit 7"}, &out)
	if e, ok := errors.AsType[*deploy.ExitError](err); !ok || e.Code != 7 || strings.TrimSpace(e.Stderr) != "why" {
		t.Errorf("%v, want status 7 and what was said", err)
	}
	err = r.Command(t.Context(), "a", []string{"perflab-no-such"}, &out)
	if e, ok := errors.AsType[*deploy.InfraError](err); !ok || !errors.Is(err, exec.ErrNotFound) || e.Hint() == "" {
		t.Errorf("a program that is not there: %v", err)
	}
}

// TestCommandStreams: output comes while a command runs, and the end of ctx is its end over there.
func TestCommandStreams(t *testing.T) {
	s := startSite(t)
	s.start(t, "a", nil)
	r := s.lead(t, Leader{Lease: time.Minute}).On("a", deploy.Process{}, nil).(deploy.Commander)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	file := t.TempDir() + "/running"
	err := r.Command(ctx, "a", []string{"sh", "-c", "trap 'rm -f " + file + "' TERM EXIT; : > " + file + "; echo up; while :; do echo more; sleep 0.01; done"}, writer(func(p []byte) (int, error) {
		cancel(enough)
		return len(p), nil
	}))
	if !errors.Is(err, enough) {
		t.Fatalf("%v, want the cause", err)
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
