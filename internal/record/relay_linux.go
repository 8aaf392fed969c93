package record

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// run passes on until the body has ended. The whole body is one Read of the connection, and a buffer is
// held only while there is something to pass on: a thousand streams that wait need none.
func (r *relay) run(from net.Conn) {
	sc, ok := from.(syscall.Conn)
	if !ok {
		r.copyFrom(from)
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		r.failed(err)
		return
	}
	if err := raw.Read(r.readAll); err != nil && r.err == nil {
		r.failed(err)
	}
}

// readAll passes on all that there is. It is false when there is nothing more now.
func (r *relay) readAll(fd uintptr) (ended bool) {
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for {
		n, err := syscall.Read(int(fd), buf[:])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return false
		case err != nil:
			r.failed(err)
			return true
		case n == 0:
			r.failed(io.EOF)
			return true
		}
		if r.pass(buf[:n]) {
			return true
		}
	}
}

// stillOpen says whether an idle connection can take another request: the server has neither closed
// it nor said anything over it.
func stillOpen(conn net.Conn) bool {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && open
}
