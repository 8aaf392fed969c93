package openai

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"

	"perflab/internal/wire"
)

// unpacker decompresses a body as it arrives. The decompressor reads, so it
// runs in a coroutine that hands over when it has used up what came.
type unpacker struct {
	next func() (struct{}, bool)
	stop func()
	in   []byte
	at   wire.Stamp
	eof  bool
	full bool  // the recorder wants no more
	err  error // of the packed body
}

// newUnpacker gives what it unpacks to take, with the stamp of the read that
// completed it.
func newUnpacker(take func(p []byte, at wire.Stamp) bool) *unpacker {
	u := new(unpacker)
	u.next, u.stop = iter.Pull(func(yield func(struct{}) bool) {
		z, err := gzip.NewReader(source{u, yield})
		if err != nil {
			u.err = fmt.Errorf("unpack gzip: %w", err)
			return
		}
		buf := make([]byte, 16<<10)
		for {
			n, err := z.Read(buf)
			switch {
			case n > 0 && !take(buf[:n], u.at):
				u.full = true
				return
			case err == io.EOF:
				return
			case err != nil:
				u.err = fmt.Errorf("unpack gzip: %w", err)
				return
			}
		}
	})
	return u
}

// feed unpacks what a read brought; false: the recorder wants no more.
func (u *unpacker) feed(p []byte, at wire.Stamp) bool {
	u.in, u.at = p, at
	u.next()
	return !u.full
}

// end takes the end of the packed body.
func (u *unpacker) end() error {
	u.eof = true
	u.next()
	u.stop()
	return u.err
}

// source is the packed body as the decompressor reads it.
type source struct {
	u     *unpacker
	yield func(struct{}) bool
}

var errStopped = errors.New("stopped")

func (s source) Read(p []byte) (int, error) {
	for len(s.u.in) == 0 {
		if s.u.eof {
			return 0, io.EOF
		}
		if !s.yield(struct{}{}) {
			return 0, errStopped
		}
	}
	n := copy(p, s.u.in)
	s.u.in = s.u.in[n:]
	return n, nil
}
