package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"perflab/internal/jsonl"
	"perflab/internal/result"
)

// client is a connection of a client, and that to the server which its requests go over.
type client struct {
	p     *Proxy
	conn  net.Conn
	bound bound
	in    *bufio.Reader
	up    upstream
	out   []byte // head of what is written next, with what fits behind it
}

// Limits of what a request may have.
const (
	maxHead     = 1 << 20          // bytes of its head
	headLimit   = 1 * time.Minute  // time that its head may take
	firstWrite  = 64 << 10         // head and body that go on as one
	answerLimit = 10 * time.Second // for an answer once the request could not be written
)

func newClient(p *Proxy, conn net.Conn) *client {
	c := &client{p: p, conn: conn, bound: bound{conn, maxHead}, up: upstream{target: p.Target, dial: p.Dial}}
	c.in = bufio.NewReaderSize(&c.bound, 4<<10)
	return c
}

func (c *client) close() {
	c.up.close()
	c.conn.Close()
}

// bound reads so many bytes at most.
type bound struct {
	r    io.Reader
	left int64
}

var errHead = errors.New("the head of the request is too long")

func (b *bound) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errHead
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// next passes one request on, and its answer. It is false when no other can follow.
func (c *client) next() bool {
	if !c.p.mark(c, true) {
		return false
	}
	_, err := c.in.Peek(1)
	at := time.Now()
	if c.p.mark(c, false); err != nil {
		return false
	}
	c.bound.left = maxHead
	c.conn.SetReadDeadline(at.Add(headLimit))
	req, err := http.ReadRequest(c.in)
	c.conn.SetReadDeadline(time.Time{})
	c.bound.left = 1 << 62
	if err != nil || !isSound(req.Header) {
		c.refuse(err)
		return false
	}
	x := c.p.Recorder.begin(at, req)
	again := c.exchange(req, x)
	c.p.Recorder.end(x)
	return again && !req.Close && req.ProtoAtLeast(1, 1)
}

// refuse answers what is no request.
func (c *client) refuse(err error) {
	switch {
	case errors.Is(err, errHead):
		c.say(http.StatusRequestHeaderFieldsTooLarge, "the head of the request is longer than 1 MiB")
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
	default:
		c.say(http.StatusBadRequest, "what was sent is no HTTP/1.1 request")
	}
}

// say answers in place of the server, and has the connection end.
func (c *client) say(status int, text string) {
	body := append(jsonl.AppendText([]byte(`{"error":{"type":"proxy_error","message":`), "perflab record: "+text), "}}\n"...)
	fmt.Fprintf(c.conn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(body), body)
	// What the client still sends would have the kernel drop the answer with the connection.
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		c.conn.SetReadDeadline(time.Now().Add(lingerLimit))
		io.CopyN(io.Discard, c.conn, lingerBytes)
	}
}

// Limits of what is read of a client that is not answered by the server.
const (
	lingerLimit = 500 * time.Millisecond
	lingerBytes = 1 << 20
)

// exchange passes a request on and its answer back. It is false when the connections cannot be used again.
func (c *client) exchange(req *http.Request, x *exchange) bool {
	if strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(c.conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			x.fail(result.Cancelled)
			return false
		}
	}
	whole, err := c.forward(req, x)
	switch {
	case errors.As(err, new(*connectError)):
		c.say(http.StatusBadGateway, "the server cannot be reached: "+err.Error())
		x.status = http.StatusBadGateway
		x.fail(result.Connect)
		return false
	case errors.Is(err, errClient):
		x.fail(result.Cancelled)
		return false
	case err != nil: // the server may have said why it takes no more
		c.up.conn.SetReadDeadline(time.Now().Add(answerLimit))
		whole = false
	}
	again, stale := c.observed(req, x, whole && c.up.used && len(c.out) > 0)
	if stale {
		c.up.close()
		if _, err := c.writeAgain(); err != nil {
			c.say(http.StatusBadGateway, "the server cannot be reached: "+err.Error())
			x.status = http.StatusBadGateway
			x.fail(result.Connect)
			return false
		}
		again, _ = c.observed(req, x, false)
	}
	c.up.used = true
	if !again || !whole {
		c.up.close()
		return false
	}
	return true
}

// observed passes an answer back while it looks whether the client goes away. stale is whether the server has closed a
// connection that it had kept, without a byte, so that the request may be sent again.
func (c *client) observed(req *http.Request, x *exchange, mayRepeat bool) (again, stale bool) {
	w := c.watch()
	if mayRepeat {
		_, err := c.up.in.Peek(1)
		stale = err != nil && !errors.Is(err, net.ErrClosed)
	}
	if !stale {
		again = c.answer(req, x)
	}
	if gone := w.stop(); gone && (stale || x.class != "") {
		x.class = result.Cancelled
		return false, false
	}
	return again, stale
}

// connectError says that there was no connection to the server.
type connectError struct{ err error }

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

var errClient = errors.New("the client went away within its request")

// forward passes a request on. whole is whether all of it was; an error that is neither of the client
// nor of the connection to the server is one of writing to it.
func (c *client) forward(req *http.Request, x *exchange) (whole bool, err error) {
	if err := c.up.connect(); err != nil {
		return false, &connectError{err}
	}
	c.out = appendRequest(c.out[:0], req, c.p.Target.Host, c.p.Target.EscapedPath())
	if req.ContentLength >= 0 && req.ContentLength <= firstWrite {
		n := len(c.out)
		c.out = append(c.out, make([]byte, req.ContentLength)...)
		if _, err := io.ReadFull(req.Body, c.out[n:]); err != nil {
			return false, errClient
		}
		x.keep(c.out[n:], req.ContentLength)
		return c.writeAgain()
	}
	_, err = c.up.conn.Write(c.out)
	c.out = c.out[:0] // it cannot be sent again
	if err != nil {
		return false, err
	}
	return c.stream(req, x)
}

// writeAgain writes a request that is whole in out. A server that closed a connection which it had
// kept for a while is asked again over a new one.
func (c *client) writeAgain() (bool, error) {
	if c.up.conn != nil {
		_, err := c.up.conn.Write(c.out)
		if err == nil || !c.up.used {
			return err == nil, err
		}
		c.up.close()
	}
	if err := c.up.connect(); err != nil {
		return false, &connectError{err}
	}
	_, err := c.up.conn.Write(c.out)
	return err == nil, err
}

// stream passes a long body on as it comes.
func (c *client) stream(req *http.Request, x *exchange) (bool, error) {
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	const head, tail = 6, 2 // a chunk's size in four digits and its line ends
	for {
		n, err := req.Body.Read(buf[head : len(buf)-tail])
		if n > 0 {
			x.keep(buf[head:head+n], req.ContentLength)
			piece := buf[head : head+n]
			if req.ContentLength < 0 {
				copy(buf[:], fmt.Appendf(nil, "%04x\r\n", n))
				copy(buf[head+n:], "\r\n")
				piece = buf[:head+n+tail]
			}
			if _, err := c.up.conn.Write(piece); err != nil {
				return false, err
			}
		}
		switch {
		case errors.Is(err, io.EOF) && req.ContentLength < 0:
			_, err := io.WriteString(c.up.conn, "0\r\n\r\n")
			return err == nil, err
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, errClient
		}
	}
}

// answer passes an answer back. It is false when the connections cannot be used again.
func (c *client) answer(req *http.Request, x *exchange) bool {
	resp, err := c.readHead(req)
	if err != nil {
		x.fail(result.EarlyClose)
		x.status = http.StatusBadGateway
		c.say(http.StatusBadGateway, "the server closed the connection without an answer")
		return false
	}
	x.begun(resp)
	kind := framingOf(resp, req.Method)
	old := kind == chunked && !req.ProtoAtLeast(1, 1) // who speaks HTTP/1.0 knows no chunks
	closing := req.Close || old || kind == untilClose || !req.ProtoAtLeast(1, 1)
	f := kind
	if old {
		f = untilClose
	}
	c.out = appendAnswer(c.out[:0], resp, f, closing)
	if old {
		return c.unchunked(resp, x)
	}
	r := relay{to: c.conn, seen: &x.answer, frame: frame{kind: kind, left: resp.ContentLength}}
	ended := r.begin(c.out, c.up.in)
	if !ended && r.err == nil {
		r.run(c.up.conn)
	}
	x.done(kind, &r)
	return r.err == nil && kind != untilClose && !resp.Close
}

// readHead reads the head of the final answer; what servers say before it is for this hop.
func (c *client) readHead(req *http.Request) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(c.up.in, req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode >= 200 {
			return resp, nil
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return nil, errors.New("the server speaks another protocol, unasked")
		}
	}
}

// unchunked passes the content of chunks on to a client that knows none, and ends with the connection.
func (c *client) unchunked(resp *http.Response, x *exchange) bool {
	_, err := c.conn.Write(c.out)
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for err == nil {
		var n int
		n, err = resp.Body.Read(buf[:])
		x.answer.take(buf[:n])
		if n > 0 {
			if _, e := c.conn.Write(buf[:n]); e != nil {
				x.fail(result.Cancelled)
				return false
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		x.fail(result.EarlyClose)
	}
	return false
}

// watching looks whether a client goes away while its answer is made.
type watching struct {
	c    *client
	done chan struct{}
	gone bool
}

// watch begins to look. A client that goes away takes the connection to the server with it, which
// tells the server to stop.
func (c *client) watch() *watching {
	w := &watching{c: c, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		if _, err := c.in.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			w.gone = true
			c.up.conn.Close()
		}
	}()
	return w
}

// stop ends the look, and says whether the client has gone.
func (w *watching) stop() bool {
	w.c.conn.SetReadDeadline(time.Unix(1, 0))
	<-w.done
	w.c.conn.SetReadDeadline(time.Time{})
	return w.gone
}
