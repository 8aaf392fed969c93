package wire

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// message is what recvmsg needs, kept to be used again.
type message struct {
	hdr unix.Msghdr
	iov unix.Iovec
	oob [64]byte // one control message with a timespec takes 32
}

// recv reads what is there without waiting. wall is the instant at which the
// kernel received the newest of the bytes, in nanoseconds since 1970; 0 where
// it does not say. It enters no scheduler: the call does not block.
func recv(fd int, p []byte, m *message) (n int, wall int64, err error) {
	if len(p) == 0 {
		return 0, 0, nil
	}
	m.iov.Base = &p[0]
	m.iov.SetLen(len(p))
	m.hdr.Iov = &m.iov
	m.hdr.SetIovlen(1)
	m.hdr.Control = &m.oob[0]
	for {
		m.hdr.SetControllen(len(m.oob))
		r, _, e := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.hdr)), unix.MSG_DONTWAIT)
		switch e {
		case 0:
			return int(r), m.stamp(), nil
		case unix.EINTR:
		default:
			return 0, 0, e
		}
	}
}

// peek copies what is there without taking it. An error that it meets no later
// read will tell.
func peek(fd int, p []byte) (int, error) {
	for {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_PEEK, 0, 0)
		switch e {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, e
		}
	}
}

// stamp is the receive time in the control message.
func (m *message) stamp() int64 {
	if int(m.hdr.Controllen) < unix.SizeofCmsghdr+int(unsafe.Sizeof(unix.Timespec{})) {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&m.oob[0]))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SCM_TIMESTAMPNS {
		return 0
	}
	return (*unix.Timespec)(unsafe.Pointer(&m.oob[unix.SizeofCmsghdr])).Nano()
}

// stampReads asks the kernel to stamp what it receives.
func stampReads(fd uintptr) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
}

// haveKernelStamps says whether the kernel stamps what it receives: those of some sandboxes and
// emulators do not.
var haveKernelStamps = sync.OnceValue(func() bool {
	keep := keepStamping()
	if keep == nil {
		return false
	}
	keep.Close()
	return true
})

// keepStamping opens a socket that asks for stamps and does nothing else. The
// kernel stamps packets only while some socket wants it, and begins a moment
// after the first one does.
func keepStamping() io.Closer {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	if err := stampReads(uintptr(fd)); err != nil {
		unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), "stamps")
}

// stampConn makes the reads of a TCP connection carry kernel stamps; another
// connection, or a kernel that will not, keeps stamps of our own.
func stampConn(nc net.Conn) *stamped {
	c := &stamped{Conn: nc}
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return c
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	var stampErr error
	if err := rc.Control(func(fd uintptr) { stampErr = stampReads(fd) }); err != nil || stampErr != nil {
		return c
	}
	m := new(message)
	c.recv = func(p []byte) (n int, wall int64, err error) {
		if len(p) == 0 {
			return 0, 0, nil
		}
		var failed error
		err = rc.Read(func(fd uintptr) bool {
			n, wall, failed = recv(int(fd), p, m)
			return failed != syscall.EAGAIN
		})
		switch {
		case err != nil:
			return 0, 0, err
		case failed != nil:
			return 0, 0, readError(failed)
		case n == 0:
			return 0, 0, io.EOF
		}
		return n, wall, nil
	}
	return c
}

func readError(err error) error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("recvmsg", err)}
}
