package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Command is a program on the machine, to be started as any other. It heads a process group of its
// own, all of which is killed when ctx ends. A clock that Clock set counts for commands made after.
//
// The program is that process, since nsenter becomes it. Nothing asks the kernel to
// kill it when the thread that started it ends, which in a Go program may be at any
// time: the guard kills it when the test has ended.
func (m *Machine) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	enter := []string{"--net=" + m.space.net(), "--uts=" + path(m.space.uts)}
	if m.time != nil {
		enter = append(enter, "--time="+path(m.time), "--no-fork")
	}
	cmd := exec.CommandContext(ctx, "nsenter", slices.Concat(enter, []string{"--", name}, args)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	cmd.WaitDelay = 5 * time.Second // for what it started and left behind with its output
	return cmd
}

// Crash kills all processes on the machine at once, without a word to anybody
// but what the kernel says: it closes their connections. Cut it before to have it silent.
func (m *Machine) Crash() error {
	if err := killer(nil, m.space).Run(); err != nil {
		return fmt.Errorf("kill what runs on %s: %w", m.Name, err)
	}
	return nil
}

// kill waits until its input ends, which it does with the process that holds the other
// end, and then kills all that is in the network namespaces with these inodes.
const kill = `
cat >/dev/null
cd /proc
for i in "$@"; do names="$names -o -lname net:?$i?"; done
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	all=$(find [0-9]*/ns/net -maxdepth 0 -false $names 2>/dev/null | cut -d/ -f1)
	[ -n "$all" ] || exit 0
	kill -9 $all 2>/dev/null
done
echo "processes are left:" $all >&2
exit 1`

// killer runs kill, apart from signals to the test's group.
func killer(in io.Reader, spaces ...*space) *exec.Cmd {
	args := []string{"-c", kill, "netns-guard"}
	for _, s := range spaces {
		args = append(args, strconv.FormatUint(s.inode, 10))
	}
	cmd := exec.Command("sh", args...)
	cmd.Stdin = in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// guard is a process that waits for the end of the test.
type guard struct {
	cmd    *exec.Cmd
	in     io.Closer
	stderr strings.Builder
}

// startGuard has the processes in the spaces killed when this process has ended.
func startGuard(spaces []*space) (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the guard of the machines: %w", err)
	}
	defer r.Close()
	g := &guard{cmd: killer(r, spaces...), in: w}
	g.cmd.Stderr = &g.stderr
	if err := g.cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("start the guard of the machines: %w", err)
	}
	return g, nil
}

// end kills the processes now.
func (g *guard) end() error {
	if g == nil {
		return nil
	}
	g.in.Close()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, g.stderr.String())
	}
	return nil
}
