package deploy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/test/deploytest"
)

// hooked is an existing endpoint whose hooks start and end a fake engine.
func hooked(t *testing.T, b deploytest.Behaviour) (deploy.Existing, deploy.Spec) {
	t.Helper()
	s := deploytest.Spec(t, b)
	port := deploytest.UnusedPorts(t, 1)
	s.Timeout = 10 * time.Second
	pid := filepath.Join(t.TempDir(), "pid")
	return deploy.Existing{
		URLs: []string{fmt.Sprintf("http://127.0.0.1:%d", port)}, Poll: 5 * time.Millisecond,
		Hooks: deploy.Hooks{
			Start: `echo "starts $PERFLAB_NAME"; eval "exec env $PERFLAB_COMMAND" >` + pid + `.log 2>&1 & echo $! >` + pid,
			Stop:  "kill $(cat " + pid + ")",
		},
	}, s
}

func TestHooks(t *testing.T) {
	t.Parallel()
	r, s := hooked(t, deploytest.Ready)
	d := deploytest.Start(t, r, s)
	if status := deploytest.Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
		t.Errorf("target answers %d, want 200", status)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if status := deploytest.Get(t.Context(), d.Targets()[0]+"/health"); status != 0 {
		t.Errorf("target answers %d after the stop hook", status)
	}
	b, err := os.ReadFile(filepath.Join(s.Dir, "hook-start.log"))
	if err != nil || !strings.Contains(string(b), "starts trial 3") {
		t.Errorf("log of the hook: %s, %v", b, err)
	}
}

func TestHooksThatFail(t *testing.T) {
	t.Parallel()
	r, s := hooked(t, deploytest.Ready)
	r.Hooks = deploy.Hooks{Start: "echo no such node; exit 4", Stop: "true"}
	_, err := r.Start(t.Context(), s)
	if e, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(e.Error(), "start hook of trial 3: exit status 4") {
		t.Errorf("start: %v", err)
	}
	r.Hooks.Start = "echo '" + deploytest.RefusalLine + "'; exit 1"
	_, err = r.Start(t.Context(), s)
	if e, ok := errors.AsType[*deploy.RefusedError](err); !ok || e.Reason != deploytest.RefusalLine {
		t.Errorf("start: %v, want the engine's refusal", err)
	}
}

// A server that the stop hook leaves up would be measured as the next configuration.
func TestStopHookThatDoesNot(t *testing.T) {
	t.Parallel()
	up := server(t, func() int { return 200 })
	r := deploy.Existing{URLs: []string{up}, Poll: time.Millisecond, Hooks: deploy.Hooks{Start: "true", Stop: "true"}, Down: 50 * time.Millisecond}
	d, err := r.Start(t.Context(), deploy.Spec{Name: "trial 3", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "still serves after the stop hook") {
		t.Errorf("stop: %v", err)
	}
}
