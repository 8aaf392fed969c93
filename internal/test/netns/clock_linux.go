package netns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Clock sets the monotonic clock and the time since boot of commands made from
// now on that far ahead of the host's; 0 gives them the host's. It is ErrMissing where the
// kernel or util-linux cannot. The wall clock is the host's on every machine.
func (m *Machine) Clock(offset time.Duration) error {
	if offset%time.Second != 0 {
		return fmt.Errorf("a clock %s ahead: unshare takes whole seconds", offset)
	}
	if m.time != nil {
		m.time.Close()
		m.time = nil
	}
	if offset == 0 {
		return nil
	}
	space, err := timeSpace(int64(offset / time.Second))
	if err != nil {
		return err
	}
	m.time = space
	var stderr bytes.Buffer
	look := m.Command(context.Background(), "cat", "/proc/self/timens_offsets")
	look.Stderr = &stderr
	out, err := look.Output()
	if err != nil {
		return missing("nsenter enters no time namespace: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	var clock string
	var s int64
	if _, err := fmt.Sscan(string(out), &clock, &s); err != nil || clock != "monotonic" || s != int64(offset/time.Second) {
		return fmt.Errorf("a clock %s ahead: the kernel says %q", offset, out)
	}
	return nil
}

// timeSpace makes a time namespace. Its offsets can be set until something runs in
// it, and not by a process of several threads as this one: unshare does it.
func timeSpace(seconds int64) (*os.File, error) {
	cmd := exec.Command("unshare", "--time", fmt.Sprintf("--monotonic=%d", seconds), fmt.Sprintf("--boottime=%d", seconds), "cat")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make a time namespace: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("make a time namespace: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("make a time namespace: %w", err)
	}
	// cat answers when unshare has become it, with all done.
	_, err = in.Write([]byte{'.'})
	if err == nil {
		_, err = io.ReadFull(out, make([]byte, 1))
	}
	var space *os.File
	if err == nil {
		space, err = os.Open(fmt.Sprintf("/proc/%d/ns/time_for_children", cmd.Process.Pid))
	}
	in.Close()
	if ended := cmd.Wait(); ended != nil {
		if space != nil {
			space.Close()
		}
		return nil, missing("unshare makes no time namespace: %w: %s", ended, bytes.TrimSpace(stderr.Bytes()))
	}
	if err != nil {
		return nil, errors.Join(errors.New("make a time namespace"), err)
	}
	return space, nil
}
