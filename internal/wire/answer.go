package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// answer takes an HTTP/1.1 answer in pieces cut anywhere and gives the body to
// a sink. A piece of a body is not copied.
type answer struct {
	state state
	head  []byte // of a head whose end has not come
	left  uint64 // bytes of the body or of the chunk still to come
	line  int    // bytes of the line being read: the size of a chunk, or a trailer
	keep  bool   // the connection can serve another request
	heard bool   // the head is whole
}

type state uint8

const (
	inHead    state = iota
	inBody          // of a known length
	inRest          // of a body that ends with the connection
	inSize          // of a chunk
	inExt           // of that line, behind the size
	inChunk         // of its data
	inEnd           // of the line behind the data
	inTrailer       // lines until an empty one
	ended
)

// Bounds on what a server may send outside a body.
const (
	maxHead = 1 << 20
	maxLine = 16 << 10
)

var (
	errHead  = fmt.Errorf("the head of the answer is longer than %d KiB", maxHead>>10)
	errChunk = errors.New("the answer's chunked coding is broken")
	errStop  = errors.New("the sink has enough")
)

// feed takes what one read brought. rest is what lies behind the answer's end.
func (a *answer) feed(p []byte, at Stamp, sink Sink) (rest []byte, err error) {
	for len(p) > 0 && a.state != ended {
		switch a.state {
		case inHead:
			if p, err = a.readHead(p, at, sink); err != nil {
				return nil, err
			}
		case inRest:
			if !sink.Body(p, at) {
				return nil, errStop
			}
			return nil, nil
		case inBody, inChunk:
			n := min(uint64(len(p)), a.left)
			a.left -= n
			if !sink.Body(p[:n], at) {
				return nil, errStop
			}
			p = p[n:]
			switch {
			case a.left > 0:
			case a.state == inChunk:
				a.state = inEnd
			default:
				a.state = ended
			}
		default:
			if err := a.frame(p[0]); err != nil {
				return nil, err
			}
			p = p[1:]
		}
	}
	return p, nil
}

// frame takes one byte of the chunked coding outside the data.
func (a *answer) frame(c byte) error {
	if a.line++; a.line > maxLine {
		return errChunk
	}
	switch a.state {
	case inSize:
		switch v := unhex(c); {
		case v < 16 && a.left < 1<<56:
			a.left = a.left<<4 | uint64(v)
			return nil
		case a.line == 1 || v < 16:
			return errChunk // no digit, or too many
		case c == '\n':
			a.sized()
		case c == '\r' || c == ';' || c == ' ' || c == '\t':
			a.state = inExt
		default:
			return errChunk
		}
	case inExt:
		if c == '\n' {
			a.sized()
		}
	case inEnd:
		switch {
		case c == '\n':
			a.state, a.left, a.line = inSize, 0, 0
		case c != '\r' || a.line > 1:
			return errChunk
		}
	case inTrailer:
		switch {
		case c == '\n' && a.line == 1:
			a.state = ended
		case c == '\n':
			a.line = 0
		case c == '\r' && a.line == 1:
			a.line = 0
		}
	}
	return nil
}

// sized begins what follows the line with a chunk's size.
func (a *answer) sized() {
	a.line = 0
	if a.state = inChunk; a.left == 0 {
		a.state = inTrailer
	}
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 0xff
}

// message is how many bytes of p belong to the message that is under way or
// comes next: a chunk of the chunked coding, which servers send for each event,
// an event, or a head. All of p where its end is not there.
func (a *answer) message(p []byte) int {
	n, i := len(p), 0
	switch left := a.left; a.state {
	case inHead:
		if k := headEnd(p, 0); k > 0 {
			n = k
		}
	case inBody, inRest:
		if k := bytes.Index(p, []byte("\n\n")); k >= 0 {
			n = k + 2
		}
	case inSize, inExt:
		for ; a.state == inSize && i < n && unhex(p[i]) < 16 && left < 1<<56; i++ {
			left = left<<4 | uint64(unhex(p[i]))
		}
		k := bytes.IndexByte(p[i:], '\n')
		if k < 0 || left == 0 { // the end of the body
			return n
		}
		i += k + 1
		fallthrough
	case inChunk:
		if rest := uint64(n - i); left < rest {
			n = min(n, i+int(left)+len("\r\n"))
		}
	}
	return n
}

// readHead takes bytes up to the end of the head and returns those behind it.
func (a *answer) readHead(p []byte, at Stamp, sink Sink) ([]byte, error) {
	from := max(0, len(a.head)-3)
	a.head = append(a.head, p...)
	n := headEnd(a.head, from)
	if n < 0 {
		if len(a.head) > maxHead {
			return nil, errHead
		}
		return nil, nil
	}
	p = p[len(p)-(len(a.head)-n):]
	resp, err := http.ReadResponse(bufio.NewReaderSize(bytes.NewReader(a.head[:n]), 16), &request)
	a.head = a.head[:0]
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 1 && resp.StatusCode != http.StatusSwitchingProtocols {
		return p, nil // the answer itself follows
	}
	a.heard, a.keep = true, !resp.Close && resp.StatusCode != http.StatusSwitchingProtocols
	switch {
	case len(resp.TransferEncoding) > 0:
		a.state, a.left, a.line = inSize, 0, 0
	case resp.ContentLength > 0:
		a.state, a.left = inBody, uint64(resp.ContentLength)
	case resp.ContentLength == 0:
		a.state = ended
	default:
		a.state, a.keep = inRest, false
	}
	sink.Head(resp.StatusCode, resp.Header, at)
	return p, nil
}

// request is what the framing of an answer depends on.
var request = http.Request{Method: http.MethodPost}

// headEnd is the length of a head, with the empty line that ends it; -1: it is
// not whole. The bytes before from were searched already.
func headEnd(b []byte, from int) int {
	for i := from; i < len(b); {
		k := bytes.IndexByte(b[i:], '\n')
		if k < 0 {
			return -1
		}
		i += k + 1
		switch rest := b[i:]; {
		case len(rest) > 0 && rest[0] == '\n':
			return i + 1
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			return i + 2
		}
	}
	return -1
}

// eof takes the end of the connection.
func (a *answer) eof() error {
	switch {
	case a.state == ended:
		return nil
	case a.state == inRest:
		a.state = ended
		return nil
	case a.heard:
		return io.ErrUnexpectedEOF
	case len(a.head) == 0:
		return io.EOF
	}
	if bytes.HasPrefix(a.head, []byte("HTTP/")) {
		return errors.New("the connection closed within the head of the answer")
	}
	return fmt.Errorf("malformed HTTP response %.40q", bytes.TrimSpace(a.head))
}
