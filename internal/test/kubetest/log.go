package kubetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// logs is what a container wrote, in lines.
type logs struct {
	mu     sync.Mutex
	lines  []line
	rest   []byte // of a line that has no end yet
	closed bool
	more   chan struct{} // closed when there is more
}

type line struct {
	at   time.Time
	text []byte // with its end
}

func newLogs() *logs { return &logs{more: make(chan struct{})} }

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			break
		}
		l.lines = append(l.lines, line{time.Now(), bytes.Clone(l.rest[:i+1])})
		l.rest = l.rest[i+1:]
	}
	l.wake()
	return len(p), nil
}

func (l *logs) wake() {
	close(l.more)
	l.more = make(chan struct{})
}

// close says that there will be no more.
func (l *logs) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		l.lines = append(l.lines, line{time.Now(), l.rest})
		l.rest = nil
	}
	l.closed = true
	l.wake()
}

// from are the lines from the n-th on, whether there may be more, and when to look again.
func (l *logs) from(n int) (lines []line, open bool, more chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[min(n, len(l.lines)):], !l.closed, l.more
}

// last is the end of the log, of at most so many bytes.
func (l *logs) last(limit int) string {
	lines, _, _ := l.from(0)
	var b []byte
	for _, line := range lines {
		b = append(b, line.text...)
	}
	return string(b[max(0, len(b)-limit):])
}

// logOptions are a reader's wishes.
type logOptions struct {
	follow, timestamps bool
	first              int // the line to begin with
	since              time.Time
	limit              int64
}

func (l *logs) options(q url.Values) (o logOptions, err error) {
	o.follow, o.timestamps = q.Get("follow") == "true", q.Get("timestamps") == "true"
	if text := q.Get("tailLines"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return o, err
		}
		lines, _, _ := l.from(0)
		o.first = max(0, len(lines)-n)
	}
	if text := q.Get("sinceSeconds"); text != "" {
		s, err := strconv.Atoi(text)
		if err != nil {
			return o, err
		}
		o.since = time.Now().Add(-time.Duration(s) * time.Second)
	}
	if text := q.Get("sinceTime"); text != "" {
		if o.since, err = time.Parse(time.RFC3339, text); err != nil {
			return o, err
		}
	}
	o.limit = 1 << 62
	if text := q.Get("limitBytes"); text != "" {
		o.limit, err = strconv.ParseInt(text, 10, 64)
	}
	return o, err
}

// write writes lines to a reader, and those that come if it follows.
func (l *logs) write(ctx context.Context, w io.Writer, flush func(), o logOptions) {
	left := o.limit
	for n := o.first; ; {
		lines, open, more := l.from(n)
		for _, line := range lines {
			if line.at.Before(o.since) {
				continue
			}
			text := line.text
			if o.timestamps {
				text = append(fmt.Appendf(nil, "%s ", line.at.UTC().Format(time.RFC3339Nano)), text...)
			}
			text = text[:min(int64(len(text)), left)]
			left -= int64(len(text))
			if _, err := w.Write(text); err != nil || left == 0 {
				return
			}
		}
		n += len(lines)
		flush()
		if !o.follow || !open {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// serveLogs gives a container's log.
func (n *Node) serveLogs(w http.ResponseWriter, r *http.Request) {
	c, ok := n.asked(w, r)
	if !ok {
		return
	}
	c.mu.Lock()
	l, waiting := c.log, c.state.Waiting
	none := c.state == (corev1.ContainerState{})
	if r.URL.Query().Get("previous") == "true" || waiting != nil && c.previous != nil {
		l = c.previous
		none = false
	}
	c.mu.Unlock()
	switch {
	case l == nil:
		http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found", c.spec.Name, c.pod.object.Name), http.StatusBadRequest)
		return
	case none || waiting != nil && c.previous == nil:
		reason := "ContainerCreating"
		if waiting != nil {
			reason = waiting.Reason
		}
		http.Error(w, fmt.Sprintf("container %q in pod %q is waiting to start: %s", c.spec.Name, c.pod.object.Name, reason), http.StatusBadRequest)
		return
	}
	o, err := l.options(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	l.write(r.Context(), w, func() { _ = flush.Flush() }, o) // the reader has gone
}
