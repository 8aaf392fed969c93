package record

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"perflab/internal/result"
)

// exchange is one request with its answer, as they go by.
type exchange struct {
	rec *Recorder
	seen
	answer answer
}

// seen is what is kept of an exchange that has ended.
type seen struct {
	at, first, until time.Time
	api              string // "": of no API, which is passed on and not recorded
	session          string // value of the header that names it
	status           int
	class            result.Class // of what failed
	stream           bool         // the answer is one of events
	simulated        bool

	body   []byte // of the request
	size   int64  // what of the memory for bodies it holds
	packed string // how the body is compressed
	lost   bool   // the body, or part of it, was not kept

	tokens     tokens // counted by the engine
	textEvents int
}

// maxBody is the longest body that is taken apart.
const maxBody = 64 << 20

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// begin begins to look at a request whose head has come.
func (r *Recorder) begin(at time.Time, req *http.Request) *exchange {
	x := exchanges.Get().(*exchange)
	x.rec, x.seen = r, seen{at: at}
	x.answer.reset()
	if req.Method == http.MethodPost {
		x.api = apiOf(req.URL.Path)
	}
	if x.api != "" {
		x.session = req.Header.Get(r.options.SessionHeader)
		x.packed = req.Header.Get("Content-Encoding")
		r.start(at)
	}
	return x
}

func (a *answer) reset() {
	a.size, a.events, a.first, a.hasData, a.anything, a.zip, a.zips = 0, 0, 0, false, false, nil, false
}

// keep keeps a piece of the body, whose length is below 0 where it is not known.
func (x *exchange) keep(p []byte, length int64) {
	if x.api == "" || x.lost {
		return
	}
	need := int64(len(x.body) + len(p))
	if x.body == nil && length > 0 {
		need = length
	}
	if more := need - x.size; more > 0 {
		if need > maxBody || !x.rec.take(more) {
			x.rec.give(x.size)
			x.body, x.size, x.lost = nil, 0, true
			return
		}
		x.size = need
	}
	if x.body == nil && length > 0 {
		x.body = make([]byte, 0, length)
	}
	x.body = append(x.body, p...)
}

// begun takes the head of the answer.
func (x *exchange) begun(resp *http.Response) {
	x.first = time.Now()
	x.status = resp.StatusCode
	x.stream = strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	x.simulated = resp.Header.Get("X-Perflab-Simulated") != ""
	switch resp.Header.Get("Content-Encoding") {
	case "", "identity":
	default:
		x.answer.zips = true
	}
}

// fail says what kind of failure ended it, the first that does.
func (x *exchange) fail(class result.Class) {
	if x.class == result.OK {
		x.class = class
	}
}

// done takes the end of the answer's way.
func (x *exchange) done(kind framing, r *relay) {
	switch {
	case r.fromTo:
		x.fail(result.Cancelled)
	case errors.Is(r.err, os.ErrClosed):
		x.fail(result.Cancelled)
	case r.err != nil && kind != empty:
		x.fail(result.EarlyClose)
	case x.status >= 300:
		x.fail(result.HTTPStatus)
	}
}

// end counts what went by, and hands it over.
func (r *Recorder) end(x *exchange) {
	x.until = time.Now()
	if x.api != "" {
		x.answer.unzip()
		x.tokens = x.answer.counted()
		if x.stream && x.tokens.answer == 0 {
			x.textEvents = x.answer.textEvents()
		}
		if x.stream && x.answer.failed() {
			x.fail(result.StreamError)
		}
	}
	r.hand(x.seen)
	x.seen = seen{}
	exchanges.Put(x)
}

// text is the body as it was before it was compressed. It is nil where that is not known.
func (s *seen) text() []byte {
	switch s.packed {
	case "", "identity":
		return s.body
	case "gzip":
		r, err := gzip.NewReader(bytes.NewReader(s.body))
		if err != nil {
			return nil
		}
		if text, err := io.ReadAll(io.LimitReader(r, maxBody)); err == nil {
			return text
		}
	}
	return nil
}
