package record

import (
	"errors"
	"net/http"
)

// framing is how the end of a body is told.
type framing int

const (
	empty      framing = iota // there is none
	byLength                  // it has so many bytes
	chunked                   // its last chunk is empty
	untilClose                // the connection ends with it
)

// framingOf is how the body of an answer ends.
func framingOf(resp *http.Response, method string) framing {
	switch {
	case method == http.MethodHead, resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusNotModified:
		return empty
	case len(resp.TransferEncoding) > 0:
		return chunked
	case resp.ContentLength > 0:
		return byLength
	case resp.ContentLength == 0:
		return empty
	}
	return untilClose
}

// frame finds the end of a body whose bytes go by, and what of them is its content.
type frame struct {
	kind  framing
	left  int64 // of the body, or of the chunk
	state chunkState
	size  int64 // of the chunk, as far as it is read
	line  int   // bytes of this line of the trailer
}

// chunkState is where in the framing of chunks the next byte is.
type chunkState int

const (
	inSize chunkState = iota
	inExtension
	inData
	behindData
	inTrailer
)

var errFraming = errors.New("the answer's chunks are malformed")

// maxChunk bounds a chunk far below where its size overflows.
const maxChunk = 1 << 50

// advance goes over bytes of the body, gives its content to see, and returns how many of them belong
// to it, and whether it ends there.
func (f *frame) advance(data []byte, see *answer) (n int, done bool, err error) {
	switch f.kind {
	case empty:
		return 0, true, nil
	case untilClose:
		see.take(data)
		return len(data), false, nil
	case byLength:
		n = int(min(f.left, int64(len(data))))
		see.take(data[:n])
		f.left -= int64(n)
		return n, f.left == 0, nil
	}
	for n < len(data) && !done {
		if f.state == inData {
			k := int(min(f.left, int64(len(data)-n)))
			see.take(data[n : n+k])
			n += k
			if f.left -= int64(k); f.left == 0 {
				f.state = behindData
			}
			continue
		}
		done, err = f.step(data[n])
		n++
		if err != nil {
			return n, false, err
		}
	}
	return n, done, nil
}

// step takes a byte of the framing.
func (f *frame) step(b byte) (done bool, err error) {
	switch f.state {
	case inSize:
		return false, f.sizeByte(b)
	case inExtension:
		if b == '\n' {
			f.begin()
		}
	case behindData:
		if b == '\n' {
			f.state, f.size = inSize, 0
		} else if b != '\r' {
			return false, errFraming
		}
	case inTrailer:
		switch {
		case b == '\n' && f.line == 0:
			return true, nil
		case b == '\n':
			f.line = 0
		case b != '\r':
			f.line++
		}
	}
	return false, nil
}

func (f *frame) sizeByte(b byte) error {
	var digit byte
	switch {
	case b >= '0' && b <= '9':
		digit = b - '0'
	case b >= 'a' && b <= 'f':
		digit = b - 'a' + 10
	case b >= 'A' && b <= 'F':
		digit = b - 'A' + 10
	case b == '\n':
		f.begin()
		return nil
	case b == ';' || b == '\r' || b == ' ' || b == '\t':
		f.state = inExtension
		return nil
	default:
		return errFraming
	}
	if f.size = f.size<<4 | int64(digit); f.size > maxChunk {
		return errFraming
	}
	return nil
}

// begin begins a chunk's content, or what is behind the last one.
func (f *frame) begin() {
	f.state, f.left, f.line = inData, f.size, 0
	if f.size == 0 {
		f.state = inTrailer
	}
}
