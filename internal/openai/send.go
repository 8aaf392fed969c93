package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"perflab/internal/otlp"
	"perflab/internal/result"
	"perflab/internal/wire"
	"perflab/internal/workload"
)

const (
	drainSize = 256 << 10 // of a failed answer's body, to keep its connection
	firstCap  = 1 << 10   // chunks that a call has room for at its start
	simHeader = "X-Perflab-Simulated"
)

// Send sends one request and reports everything it saw as offsets from start
// on the monotonic clock. It fills Sent and all that follows.
func (c *Client) Send(ctx context.Context, start time.Time, r workload.Request) result.Call {
	return c.Start(ctx, start, r)()
}

// Start is Send in two steps: it writes the request if a connection is idle,
// which takes microseconds, and returns what does the rest.
func (c *Client) Start(ctx context.Context, start time.Time, r workload.Request) (finish func() result.Call) {
	rec := &callRecorder{c: c, w: c.watch(ctx, start), want: r.Output}
	rec.stream = newStream(&rec.call, c.api, c.cfg.KeepText)
	rec.x = wire.Exchange{Start: start, Body: c.Build(r).Body, Sink: rec}
	if c.cfg.Traceparent {
		t := otlp.NewContext()
		rec.x.Fields = append(rec.x.Fields, wire.Field{Name: "Traceparent", Value: t.Header()})
		rec.call.TraceID, rec.call.SpanID = t.TraceID(), t.SpanID()
	}
	if c.cfg.SessionHeader != "" && r.Session > 0 {
		rec.x.Fields = append(rec.x.Fields, wire.Field{Name: c.cfg.SessionHeader, Value: c.cfg.SessionRun + "-" + strconv.Itoa(r.Session)})
	}
	started := c.wire.Start(&rec.x)
	return func() result.Call {
		defer rec.w.stop()
		return rec.finish(started.Wait(rec.w.ctx))
	}
}

// Build makes the request's body, unless it is there.
func (c *Client) Build(r workload.Request) workload.Request {
	if r.Body == nil {
		r.Body = c.body.build(r)
	}
	return r
}

// finish makes the call of an exchange that has ended.
func (r *callRecorder) finish(err error) result.Call {
	call, x := &r.call, &r.x
	call.Conn = result.Conn(x.Conn)
	call.Sent, call.Wrote, call.First, call.Reads, call.Coarse = x.Sent, x.Wrote, x.First, x.Reads, x.Coarse
	r.end(x, err)
	if call.End == 0 {
		call.End = x.Last
		if err != nil {
			call.End = time.Since(x.Start)
		}
	}
	call.Error, call.Finish, call.Field = r.c.redact(call.Error), r.c.redact(call.Finish), r.c.redact(call.Field)
	call.Text = r.c.secrets.Mask(call.Text) // data: only what was sent counts as a secret in it
	return *call
}

// callRecorder turns an answer, as it arrives, into the facts of a call.
type callRecorder struct {
	c      *Client
	w      *watch
	x      wire.Exchange
	call   result.Call
	stream *stream
	want   int       // output tokens asked for
	unpack *unpacker // of a compressed body

	stopped bool // the rest of the body is not wanted

	refused   bool // the status is not 200
	refusal   []byte
	bodyBytes int // bytes of the body
	location  string
	retry     string
}

// Head takes the status line and the headers.
func (r *callRecorder) Head(status int, h http.Header, at wire.Stamp) {
	call := &r.call
	call.Headers, call.Status = at.At, status
	call.Sim = h.Get(simHeader) == "1"
	if status != http.StatusOK {
		r.refused, r.location, r.retry = true, h.Get("Location"), h.Get("Retry-After")
		r.w.drain(time.Since(r.w.start)) // the failure is known: its body is worth a moment only
		return
	}
	call.Chunks = make([]result.Chunk, 0, max(16, min(r.want, firstCap)))
	switch coding := h.Get("Content-Encoding"); strings.ToLower(coding) {
	case "", "identity":
	case "gzip", "x-gzip":
		r.unpack = newUnpacker(r.feed)
	default:
		r.stream.fail(result.BadBody, "the server compressed its answer with %q though none was asked for", coding)
	}
}

// Body takes what a read brought of the body.
func (r *callRecorder) Body(p []byte, at wire.Stamp) bool {
	switch {
	case r.refused:
		r.bodyBytes += len(p)
		r.refusal = append(r.refusal, p[:min(len(p), 4*excerpt-len(r.refusal))]...)
		r.stopped = r.bodyBytes > drainSize
	case r.call.Class != result.OK:
		r.stopped = true
	case r.unpack != nil:
		r.stopped = !r.unpack.feed(p, at)
	default:
		r.stopped = !r.feed(p, at)
	}
	if r.stopped {
		r.call.End = at.At
	}
	return !r.stopped
}

func (r *callRecorder) feed(p []byte, at wire.Stamp) bool {
	had := len(r.call.Chunks)
	r.stream.span = at.Span
	if !r.stream.feed(p, at.At, at.Read) {
		return false
	}
	switch {
	case r.stream.done:
		r.w.drain(at.At)
	case len(r.call.Chunks) > had:
		r.w.token(at.At)
	}
	if seen := r.c.cfg.Seen; seen != nil && len(r.call.Chunks) > had {
		r.reportTokens(seen, had)
	}
	return true
}

// reportTokens reports the chunks from had on.
func (r *callRecorder) reportTokens(seen func(int, time.Duration, bool), had int) {
	chunks, from, n := r.call.Chunks, r.x.Sent, 0
	if had > 0 {
		from = chunks[had-1].At
	}
	for _, k := range chunks[had:] {
		n += int(k.Tokens)
	}
	seen(n, chunks[len(chunks)-1].At-from, had == 0)
}

// end judges a call by how its exchange ended.
func (r *callRecorder) end(x *wire.Exchange, err error) {
	call, s := &r.call, r.stream
	if r.unpack != nil {
		if uerr := r.unpack.end(); err == nil && !r.stopped {
			err = uerr
		}
	}
	switch {
	case call.Status == 0:
		r.c.broke(call, r.w, err)
		return
	case r.refused:
		r.recordRefusal()
		return
	case err == nil && !r.stopped:
		s.end(x.Last)
	case call.Class != result.OK || s.done || err == nil:
	case r.w.ctx.Err() != nil:
		r.w.classify(call)
	case !s.complete():
		s.fail(result.EarlyClose, "the stream broke after %d tokens: %s", s.counted, reason(err))
	default:
		call.End = x.Last
	}
	s.settle()
	if len(call.Chunks) == 0 {
		call.Chunks = nil
	}
}

// recordRefusal keeps what an answer other than 200 says.
func (r *callRecorder) recordRefusal() {
	c, call := r.c, &r.call
	text := c.redact(clean([]byte(c.redact(string(r.refusal)))))
	call.Class = result.HTTPStatus
	call.Error = strings.TrimSpace(fmt.Sprintf("%d %s", call.Status, http.StatusText(call.Status)))
	if text != "" {
		call.Error += ": " + text
	}
	if r.location != "" {
		call.Error += " (redirects to " + c.redact(r.location) + "; redirects are not followed)"
	}
	if r.retry != "" {
		call.Error += " (Retry-After: " + c.redact(r.retry) + ")"
	}
}

// broke classes a request that got no answer.
func (c *Client) broke(call *result.Call, w *watch, err error) {
	if w.ctx.Err() != nil {
		w.classify(call)
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
		return "connection reset"
	case errors.Is(err, syscall.EMFILE):
		return "too many open files: raise the limit with ulimit -n"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "no free local port: lower the concurrency or use more target addresses"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed within the answer"
	case errors.Is(err, io.EOF):
		return "connection closed before an answer"
	}
	return strings.TrimPrefix(err.Error(), "net/http: HTTP/1.x transport connection broken: ")
}
