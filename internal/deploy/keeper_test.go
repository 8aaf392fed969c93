package deploy_test

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/deploy/deploytest"
)

// here is a Transport to this machine, with a shell of choice.
type here struct{ shell []string }

type hereSession struct {
	io.WriteCloser
	cmd *exec.Cmd
}

func (h here) Open(_ context.Context, _ string, argv []string, stdout, stderr io.Writer) (deploy.Session, error) {
	argv = append(h.shell, argv[1:]...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return hereSession{in, cmd}, cmd.Start()
}

func (s hereSession) CloseWrite() error { return s.WriteCloser.Close() }
func (s hereSession) Close() error      { return s.cmd.Process.Kill() }
func (s hereSession) Wait() error {
	_ = s.cmd.Wait()
	return nil
}

// kept is a Keeper on this machine as a Host.
type kept struct{ deploy.Keeper }

type keptProcess struct{ *deploy.Kept }

func (h kept) Spawn(ctx context.Context, j deploy.Job) (deploy.Running, error) {
	k, err := h.Keeper.Spawn(ctx, j)
	if err != nil {
		return nil, err
	}
	return keptProcess{k}, nil
}

func (p keptProcess) URL(_ context.Context, port int) (string, error) {
	p.Serves(port)
	return fmt.Sprintf("http://127.0.0.1:%d", port), nil
}

func keptBy(shell ...string) deploy.Launcher {
	return deploy.Launcher{
		Host: kept{deploy.Keeper{Transport: here{shell}, Silence: 5 * time.Second, Grace: 300 * time.Millisecond}},
		Kind: "kept", Bind: "127.0.0.1", Grace: 300 * time.Millisecond, Poll: 5 * time.Millisecond,
	}
}

// shells are those that the keeper's script is tried under.
func shells() [][]string {
	return [][]string{{"/bin/sh"}, {"dash"}, {"bash", "--posix"}, {"busybox", "sh"}}
}

func TestKeeper(t *testing.T) {
	for _, shell := range shells() {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			if _, err := exec.LookPath(shell[0]); err != nil {
				t.Skip(err)
			}
			deploytest.Run(t, func(*testing.T) deploy.Runtime { return keptBy(shell...) })
		})
	}
}
