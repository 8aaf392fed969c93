package openai

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"
)

const (
	readSize  = 16 << 10
	drainSize = 256 << 10   // of a failed answer's body, to keep its connection
	drainTime = time.Second // for the end of the body after [DONE], and for all of a failed answer's
	firstCap  = 1 << 10     // chunks that a call has room for at its start
	simHeader = "X-Perflab-Simulated"
)

// Send sends one request and reports everything it saw as offsets from start
// on the monotonic clock. It fills Sent and all that follows.
func (c *Client) Send(ctx context.Context, start time.Time, r workload.Request) result.Call {
	var call result.Call
	w := c.watch(ctx)
	defer w.stop()
	req := c.request(w.ctx, c.body.build(r))
	body := req.GetBody
	call.Sent = time.Since(start)
	req.GetBody = func() (io.ReadCloser, error) {
		if time.Since(start)-call.Sent > replayWindow {
			return nil, errNoReplay
		}
		return body()
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		call.End = time.Since(start)
		c.broke(&call, w, err)
		return call
	}
	defer resp.Body.Close()
	call.Headers = time.Since(start)
	call.Status = resp.StatusCode
	call.Sim = resp.Header.Get(simHeader) == "1"
	if resp.StatusCode != http.StatusOK {
		w.drain() // the failure is known: its body is worth a moment only
		c.refused(&call, resp)
		call.End = time.Since(start)
		return call
	}
	c.observe(&call, w, resp, start, r.Output)
	call.Error, call.Text = c.redact(call.Error), c.redact(call.Text)
	return call
}

func (c *Client) request(ctx context.Context, body []byte) *http.Request {
	return (&http.Request{
		Method: http.MethodPost, URL: c.endpoint, Host: c.endpoint.Host, Header: c.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}).WithContext(ctx)
}

// observe reads a 200 answer to its end.
func (c *Client) observe(call *result.Call, w *watch, resp *http.Response, start time.Time, want int) {
	s := newStream(call, c.api, c.cfg.KeepText)
	call.Chunks = make([]result.Chunk, 0, max(16, min(want, firstCap)))
	stamps := &stamper{r: resp.Body, start: start, at: call.Headers}
	err := c.read(s, w, stamps, resp.Header.Get("Content-Encoding"))
	if call.End == 0 {
		call.End = stamps.at
	}
	switch {
	case call.Class != result.OK || s.done:
	case err == nil:
	case w.ctx.Err() != nil:
		w.blame(call)
	case !s.complete():
		s.fail(result.EarlyClose, "the stream broke after %d tokens: %v", s.counted, err)
	}
	s.settle()
	if len(call.Chunks) == 0 {
		call.Chunks = nil
	}
}

// read feeds the body to s until its end, a failure (which s keeps) or a read
// error, which it returns.
func (c *Client) read(s *stream, w *watch, stamps *stamper, encoding string) error {
	var src io.Reader = stamps
	switch strings.ToLower(encoding) {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(stamps)
		if err != nil {
			return fmt.Errorf("unpack gzip: %w", err)
		}
		src = z
	default:
		s.fail(result.BadBody, "the server compressed its answer with %q though none was asked for", encoding)
		return nil
	}
	buf := c.buffers.Get().(*[readSize]byte)
	defer c.buffers.Put(buf)
	for {
		had := len(s.call.Chunks)
		n, err := src.Read(buf[:])
		at := stamps.at
		if n > 0 && !s.feed(buf[:n], at, 0) {
			return nil
		}
		switch {
		case err == io.EOF:
			s.end(at)
			return nil
		case err != nil:
			return err
		case s.done:
			w.drain()
		case len(s.call.Chunks) > had:
			w.token()
		}
	}
}

// stamper stamps each read of a body when it returns, before any of it is
// looked at.
type stamper struct {
	r     io.Reader
	start time.Time
	at    time.Duration // of the last read; before it, of the headers
}

func (s *stamper) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.at = time.Since(s.start)
	return n, err
}

// refused keeps what an answer other than 200 says.
func (c *Client) refused(call *result.Call, resp *http.Response) {
	head, _ := io.ReadAll(io.LimitReader(resp.Body, 4*excerpt))
	io.CopyN(io.Discard, resp.Body, drainSize)
	text := c.redact(clean([]byte(c.redact(string(head)))))
	call.Class = result.HTTPStatus
	call.Error = strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	if text != "" {
		call.Error += ": " + text
	}
	if to := resp.Header.Get("Location"); to != "" {
		call.Error += " (redirects to " + c.redact(to) + "; redirects are not followed)"
	}
	if after := resp.Header.Get("Retry-After"); after != "" {
		call.Error += " (Retry-After: " + c.redact(after) + ")"
	}
}

// broke classes a request that got no answer.
func (c *Client) broke(call *result.Call, w *watch, err error) {
	if w.ctx.Err() != nil {
		w.blame(call)
		return
	}
	call.Class = result.Connect
	call.Error = c.redact(fmt.Sprintf("no answer from %s: %s", c.endpoint.Host, reason(err)))
}

// reason is an error of the network in words, without addresses and ports that
// differ from call to call.
func reason(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset before an answer"
	case errors.Is(err, syscall.EMFILE):
		return "too many open files: raise the limit with ulimit -n"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "no free local port: lower the concurrency or use more target addresses"
	case errors.Is(err, io.EOF):
		return "connection closed before an answer"
	}
	return err.Error()
}

// Causes that end a request's context.
var (
	errFirst = errors.New("first token")
	errIdle  = errors.New("idle")
	errTotal = errors.New("total")
	errDrain = errors.New("drained")
)

// watch bounds a request's time. Each limit cancels the context with a cause
// of its own.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	cfg    *Config
	phase  *time.Timer // for the first token, then between tokens
	total  *time.Timer
	tokens bool // one came
	ended  bool // drain was called
}

func (c *Client) watch(parent context.Context) *watch {
	w := &watch{cfg: &c.cfg}
	w.ctx, w.cancel = context.WithCancelCause(parent)
	w.phase = w.after(c.cfg.FirstTokenTimeout, errFirst)
	w.total = w.after(c.cfg.TotalTimeout, errTotal)
	return w
}

func (w *watch) after(d time.Duration, cause error) *time.Timer {
	return time.AfterFunc(d, func() { w.cancel(cause) })
}

// token starts the wait for the next token.
func (w *watch) token() {
	if w.tokens {
		w.phase.Reset(w.cfg.IdleTimeout)
		return
	}
	w.tokens = true
	w.phase.Stop()
	w.phase = w.after(w.cfg.IdleTimeout, errIdle)
}

// drain starts the wait for the end of a body whose last event came.
func (w *watch) drain() {
	if w.ended {
		return
	}
	w.ended = true
	w.phase.Stop()
	w.phase = w.after(drainTime, errDrain)
}

func (w *watch) stop() {
	w.phase.Stop()
	w.total.Stop()
	w.cancel(nil)
}

// blame classes a call by what ended its context.
func (w *watch) blame(call *result.Call) {
	n := 0
	for _, c := range call.Chunks {
		n += int(c.Tokens)
	}
	switch cause := context.Cause(w.ctx); cause {
	case errFirst:
		call.Class = result.TimeoutFirstToken
		call.Error = fmt.Sprintf("no token within %v", w.cfg.FirstTokenTimeout)
	case errIdle:
		call.Class = result.TimeoutIdle
		call.Error = fmt.Sprintf("nothing for %v after %d tokens", w.cfg.IdleTimeout, n)
	case errTotal:
		call.Class = result.TimeoutTotal
		call.Error = fmt.Sprintf("not done within %v, after %d tokens", w.cfg.TotalTimeout, n)
	default:
		call.Class = result.Cancelled
		call.Error = fmt.Sprintf("cancelled after %d tokens: %v", n, cause)
	}
}
