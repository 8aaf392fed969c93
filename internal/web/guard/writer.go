package guard

import (
	"cmp"
	"io"
	"net/http"
	"time"
)

// writer is an answer under way: it knows its status, and gives up a client that takes nothing of it.
type writer struct {
	http.ResponseWriter
	status  int // 0: nothing was written yet
	stalled time.Duration
	control *http.ResponseController
	events  bool // is an event stream, whose duration says nothing
}

func newWriter(w http.ResponseWriter, stalled time.Duration) *writer {
	return &writer{ResponseWriter: w, stalled: stalled, control: http.NewResponseController(w)}
}

// Unwrap gives http.ResponseController what it needs.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader writes the header.
func (w *writer) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (w *writer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	defer w.patience()()
	return w.ResponseWriter.Write(b)
}

// FlushError sends what was written.
func (w *writer) FlushError() error {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	defer w.patience()()
	return w.control.Flush()
}

// Flush sends what was written.
func (w *writer) Flush() { _ = w.FlushError() } // the next Write tells

// patience bounds what is written until the function that it returns is called. The bound is taken
// off after, since over HTTP/2 it would end a stream that is only waiting for its next event.
func (w *writer) patience() func() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.stalled)) // a writer in a test has none
	return func() { _ = w.control.SetWriteDeadline(time.Time{}) }
}

// last bounds what the server itself still does when the handler has returned: it waits for what is left
// of the body, for which a client has its time, and then sends.
func (w *writer) last() { _ = w.control.SetWriteDeadline(time.Now().Add(2 * w.stalled)) }

// body is the body of a request: it is bounded in size, and has to come.
type body struct {
	io.ReadCloser
	raw     http.ResponseWriter // of the server, which it tells that the rest is not wanted
	answer  *writer
	control *http.ResponseController
	limit   int64
	stalled time.Duration
	began   time.Time
	got     int64
	bounded io.Reader // nil: nothing was read yet
}

// slowest is how many bytes of a body come in a second at least, on average.
const slowest = 1 << 10

// limitBody bounds the body of a request, and gives it time.
func limitBody(w *writer, r *http.Request, limit int64) *body {
	b := &body{ReadCloser: r.Body, raw: w.ResponseWriter, answer: w, control: w.control, limit: limit, stalled: w.stalled, began: time.Now()}
	if r.Body == nil || r.Body == http.NoBody {
		return b
	}
	_ = b.control.SetReadDeadline(b.began.Add(b.stalled)) // for what the handler leaves of it
	r.Body = b
	return b
}

// Read reads more of the body. A byte must come before the client counts as stalled, and all of them
// at the slowest rate.
func (b *body) Read(p []byte) (int, error) {
	if b.bounded == nil {
		b.bounded = http.MaxBytesReader(b.raw, b.ReadCloser, b.limit)
	}
	until := b.began.Add(b.stalled + time.Duration(b.got)*time.Second/slowest)
	if next := time.Now().Add(b.stalled); next.Before(until) {
		until = next
	}
	_ = b.control.SetReadDeadline(until)
	n, err := b.bounded.Read(p)
	b.got += int64(n)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

type bodyKey struct{}

// Body lets requests to a handler have a body of up to limit bytes, more or less than
// Limits.Body; 0 is that. What is longer is refused, before anything of it is read where its length is known.
func (g *Guard) Body(limit int64, next http.Handler) http.Handler {
	limit = cmp.Or(limit, g.o.Limits.Body)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > limit {
			g.refuse(w, r, refusal{http.StatusRequestEntityTooLarge, "size", "this is too large: at most " + sizeText(limit) + " are taken here"})
			return
		}
		if b, ok := r.Context().Value(bodyKey{}).(*body); ok {
			b.limit = limit
		}
		next.ServeHTTP(w, r)
	})
}
