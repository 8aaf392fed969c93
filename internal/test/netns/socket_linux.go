package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listen listens on the machine, in this process: a socket stays where it was made, and
// any goroutine may use it. The address is a number and not a name. Who listens closes it.
func (m *Machine) Listen(network, address string) (l net.Listener, err error) {
	err = m.open(address, func(dialed func(string, string, syscall.RawConn) error) (err error) {
		config := net.ListenConfig{Control: dialed}
		l, err = config.Listen(context.Background(), network, address)
		return err
	})
	return l, err
}

// Dial connects from the machine, in this process. The address is a number and
// not a name. It fits http.Transport's DialContext.
func (m *Machine) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = m.open(address, func(dialed func(string, string, syscall.RawConn) error) (err error) {
		dialer := net.Dialer{Control: dialed}
		c, err = dialer.DialContext(ctx, network, address)
		return err
	})
	return c, err
}

var errTwice = errors.New("the address was not to be had at the first try")

// open calls f in the machine's network namespace, until f calls what it is
// given: then there is a socket, and the thread goes home, so that a thousand that wait
// for their connections do not hold a thousand threads.
func (m *Machine) open(address string, f func(func(string, string, syscall.RawConn) error) error) error {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return fmt.Errorf("a socket on %s: %w", m.Name, err) // names are looked up by other threads, at home
	}
	home, err := os.Open("/proc/thread-self/ns/net") // of whatever thread: all are at home
	if err != nil {
		return fmt.Errorf("a socket on %s: %w", m.Name, err)
	}
	defer home.Close()
	runtime.LockOSThread()
	if err := enter(m.space.network, unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	away := true
	leave := func(string, string, syscall.RawConn) error {
		if !away {
			return errTwice
		}
		away = false
		if err := enter(home, unix.CLONE_NEWNET); err != nil {
			return err // the thread stays locked, and ends with the goroutine
		}
		runtime.UnlockOSThread()
		return nil
	}
	err = f(leave)
	if away {
		err = errors.Join(err, leave("", "", nil))
	}
	return err
}
