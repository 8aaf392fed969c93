package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"perflab/internal/deploy"
	"perflab/internal/test/deploytest"
)

// shown starts a fake engine behind a shell that first prints what script asks for, and
// returns the log.
func shown(t *testing.T, r deploy.Process, script string) string {
	t.Helper()
	s := deploytest.Spec(t, deploytest.Ready)
	m := &s.Replicas[0].Member
	m.Argv = append([]string{"/bin/sh", "-c", script + `; exec "$@"`, "sh"}, m.Argv...)
	d := deploytest.Start(t, r, s)
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	deploytest.NothingLeft(t, s, 1)
	b, err := os.ReadFile(filepath.Join(s.Dir, "replica-0.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestProcessLimits(t *testing.T) {
	t.Parallel()
	r := quick()
	r.Limits = deploy.Limits{OpenFiles: 321, Stack: "4096", NoCore: true, NiceIncrement: 3}
	text := shown(t, r, `echo "files $(ulimit -n) stack $(ulimit -s) core $(ulimit -c) nice $(nice)"`)
	out, err := exec.Command("nice").Output() // of these tests, which an engine inherits
	if err != nil {
		t.Fatal(err)
	}
	own, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("files 321 stack 4096 core 0 nice %d", min(own+3, 19)); !strings.Contains(text, want) {
		t.Errorf("log lacks %q:\n%s", want, text)
	}
	// The command at the head is the engine's own: that is what a reader repeats.
	if head, _, _ := strings.Cut(text, "\n"); strings.Contains(head, "ulimit -n 321") {
		t.Errorf("head %s", head)
	}
}

func TestProcessCPUs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("taskset is Linux's")
	}
	t.Parallel()
	r := quick()
	r.Limits.CPUs = "0"
	if text := shown(t, r, "grep Cpus_allowed_list /proc/self/status"); !strings.Contains(text, "Cpus_allowed_list:\t0\n") {
		t.Errorf("log:\n%s", text)
	}
}

func TestProcessDir(t *testing.T) {
	t.Parallel()
	r := quick()
	r.Dir = t.TempDir()
	if text := shown(t, r, `echo "in $(pwd -P)"`); !strings.Contains(text, "in "+r.Dir) {
		t.Errorf("log lacks %s:\n%s", r.Dir, text)
	}
}

func TestLimitsValidate(t *testing.T) {
	for _, l := range []deploy.Limits{{LockedMemory: "much"}, {Stack: "-1"}, {OpenFiles: -1}, {MemoryGiB: -1}, {CPUs: "0; reboot"}} {
		if l.Validate() == nil {
			t.Errorf("%+v is valid", l)
		}
	}
	if err := (deploy.Limits{LockedMemory: "unlimited", Stack: "65536", CPUs: "0-3,8"}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestProcessCommand(t *testing.T) {
	var out bytes.Buffer
	if err := quick().Command(t.Context(), "", []string{"sh", "-c", "echo one; echo two >&2"}, &out); err != nil || out.String() != "one\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	err := quick().Command(t.Context(), "", []string{"sh", "-c", "echo why HF_TOKEN=hunter2hunter2 >&2; exit 7", "--api-key", "hunter3hunter3"}, &out)
	if e, ok := errors.AsType[*deploy.ExitError](err); !ok || e.Code != 7 || !strings.Contains(e.Error(), "why") || strings.Contains(e.Error(), "hunter") {
		t.Errorf("%v, want status 7 with the reason and no secret", err)
	}
	err = quick().Command(t.Context(), "", []string{"perflab-no-such-program"}, &out)
	if e, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(e.Hint(), "not on PATH") {
		t.Errorf("%v, want an InfraError that says so", err)
	}
}

// A command that takes too long ends with what it started.
func TestProcessCommandEndsWithItsChildren(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	late := errors.New("late")
	said, says := io.Pipe()
	var pid int
	read := make(chan error, 1)
	go func() {
		_, err := fmt.Fscanln(said, &pid)
		cancel(late)
		read <- err
	}()
	err := quick().Command(ctx, "", []string{"/bin/sh", "-c", "sleep 60 & echo $!; wait"}, says)
	if got := <-read; got != nil || !errors.Is(err, late) {
		t.Fatalf("command: %v, want %v (%v)", err, late, got)
	}
	endsSoon(t, []int{pid})
}
