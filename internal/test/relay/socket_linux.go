package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reader reads a connection with the kernel's stamps of what it received.
type reader struct {
	raw syscall.RawConn
	err error // of opening it
	oob []byte
}

func newReader(c *net.TCPConn) *reader {
	r := &reader{oob: make([]byte, 128)}
	if r.raw, r.err = c.SyscallConn(); r.err != nil {
		return r
	}
	_ = r.raw.Control(func(fd uintptr) {
		// Without stamps a byte counts from when it is read, and comes a little later.
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	return r
}

// read waits for bytes. Their age is how long ago the kernel received the newest.
func (r *reader) read(b []byte) (n int, age time.Duration, err error) {
	if r.err != nil {
		return 0, 0, r.err
	}
	var oob int
	waited := r.raw.Read(func(fd uintptr) bool {
		for {
			n, oob, _, _, err = unix.Recvmsg(int(fd), b, r.oob, unix.MSG_DONTWAIT)
			if !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	now := time.Now()
	switch {
	case waited != nil:
		return 0, 0, waited
	case err != nil:
		return 0, 0, err
	case n == 0:
		return 0, 0, io.EOF
	}
	if wall := stamp(r.oob[:oob]); wall > 0 {
		age = max(0, time.Duration(now.UnixNano()-wall))
	}
	return n, age, nil
}

// stamp is the time in the control data of a read; 0: there is none.
func stamp(oob []byte) (wall int64) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) == 16 {
			return int64(binary.NativeEndian.Uint64(m.Data))*1e9 + int64(binary.NativeEndian.Uint64(m.Data[8:]))
		}
	}
	return 0
}

// writeNow writes what there is room for.
func writeNow(c *net.TCPConn, b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	wrote := raw.Write(func(fd uintptr) bool {
		n, err = unix.Write(int(fd), b)
		return true
	})
	if wrote != nil {
		return 0, wrote
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		err = nil
	}
	return max(n, 0), err
}

// bell wakes the pacer before its time.
type bell struct{ fd int }

func newBell() (*bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("open an eventfd: %w", err)
	}
	return &bell{fd}, nil
}

func (b *bell) ring() {
	one := [8]byte{1}
	_, _ = unix.Write(b.fd, one[:]) // full: it has been rung
}

func (b *bell) close() { unix.Close(b.fd) }

// final is how long before an instant the kernel's timer is set; the rest is
// spun, since the timer wakes late by some 50 us.
const final = 60 * time.Microsecond

// waiter gives a function that waits until an instant, or until the bell rings.
// The goroutine stays on its thread, which the kernel wakes without slack, until done.
func (b *bell) waiter(base time.Time) (wait func(until time.Duration), done func()) {
	runtime.LockOSThread()
	// Both are wishes. Before others: what a relay does is short, and its lateness enters what is measured.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	before, unknown := unix.Getpriority(unix.PRIO_PROCESS, 0) // of this thread; the kernel says 20 less what it takes
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	wait = func(until time.Duration) {
		var timeout *unix.Timespec
		if until != never {
			t := unix.NsecToTimespec(int64(max(0, until-time.Since(base)-final)))
			timeout = &t
		}
		fds := []unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}}
		if n, err := unix.Ppoll(fds, timeout, nil); n > 0 || err != nil {
			var rung [8]byte
			_, _ = unix.Read(b.fd, rung[:])
			return
		}
		for until != never && time.Since(base) < until {
		}
	}
	return wait, func() {
		if unknown == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 20-before)
		}
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // the thread's own
		runtime.UnlockOSThread()
	}
}
