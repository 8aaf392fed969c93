package record

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
)

// buffer is what one read takes.
type buffer [16 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// relay passes the bytes of one body on as they come.
type relay struct {
	to    net.Conn
	seen  *answer
	frame frame

	err    error // it could not go on
	fromTo bool  // because of the client
}

// begin writes the head of an answer with what of the body came behind it, as one. It is true when that is all.
func (r *relay) begin(head []byte, in *bufio.Reader) (ended bool) {
	if in.Buffered() > 0 && r.frame.kind != empty {
		data, _ := in.Peek(in.Buffered()) // which is there
		n, done, err := r.frame.advance(data, r.seen)
		head = append(head, data[:n]...)
		in.Discard(n)
		ended, r.err = done, err
	}
	if _, err := r.to.Write(head); err != nil {
		r.err, r.fromTo = err, true
	}
	if ended = ended || r.frame.kind == empty; ended && in.Buffered() > 0 {
		r.err = errors.New("the server says more than its answer")
	}
	return ended
}

// pass passes on what was read, and says whether the body ends with it.
func (r *relay) pass(data []byte) (ended bool) {
	n, done, err := r.frame.advance(data, r.seen)
	if _, e := r.to.Write(data[:n]); e != nil {
		r.err, r.fromTo = e, true
		return true
	}
	if err == nil && n < len(data) {
		err = errors.New("the server says more than its answer")
	}
	r.err = err
	return done || err != nil
}

// failed takes the end of the connection: for a body without another end it is that.
func (r *relay) failed(err error) {
	if r.frame.kind != untilClose || !errors.Is(err, io.EOF) {
		r.err = err
	}
}

// copyFrom is the way of run that is always possible.
func (r *relay) copyFrom(from net.Conn) {
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n > 0 && r.pass(buf[:n]) {
			return
		}
		if err != nil {
			r.failed(err)
			return
		}
	}
}
