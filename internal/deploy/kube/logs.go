package kube

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"perflab/internal/redact"
)

// follower copies the log of a container as it grows. Lines come with their times, so that after a
// lost connection each line is written once.
type follower struct {
	*launch
	pod       string
	uid       types.UID
	container string
	to        io.Writer

	stop    context.CancelFunc
	copying sync.WaitGroup
	ended   chan struct{} // closed when the container has ended
	last    time.Time     // of the last line that was written
	whole   bool          // the log came to its end
}

func (f *follower) start(ctx context.Context) {
	f.ended = make(chan struct{})
	reading, cancel := context.WithCancel(ctx)
	f.stop = cancel
	f.copying.Go(func() { f.copy(reading) })
}

// finish returns when the log of the ended container is there, or cannot be had. Of a container that
// was started again it is the previous one.
func (f *follower) finish() {
	close(f.ended)
	late := time.AfterFunc(logDrain, f.stop)
	defer late.Stop()
	if f.restarted() {
		f.stop() // what is being read may be the log of what was started since
	}
	f.copying.Wait()
	defer f.stop()
	if f.whole {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), logDrain)
	defer cancel()
	if f.read(ctx, false, true) != nil {
		_ = f.read(ctx, false, false) // of a pod that is gone there is no more
	}
}

// restarted reports whether the kubelet has started the container again.
func (f *follower) restarted() bool {
	p, _ := f.view.pod(f.uid)
	s, _ := statusOf(p.Pod, f.container)
	return s.RestartCount > 0
}

// copy follows the log until its end.
func (f *follower) copy(ctx context.Context) {
	for pause := firstPause; !f.restarted(); pause = min(2*pause, lastPause) {
		err := f.read(ctx, true, false)
		if f.whole = err == nil; f.whole {
			pause = lastPause // the end of the log is that of the container, of which news is on the way
		}
		select {
		case <-f.ended:
			return
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// read writes what the log has after the last line.
func (f *follower) read(ctx context.Context, follow, previous bool) error {
	r := f.core.Get().Namespace(f.namespace).Resource("pods").Name(f.pod).SubResource("log").
		Param("container", f.container).Param("timestamps", "true")
	if follow {
		r = r.Param("follow", "true")
	}
	if previous {
		r = r.Param("previous", "true")
	}
	if !f.last.IsZero() {
		r = r.Param("sinceTime", f.last.UTC().Format(time.RFC3339))
	}
	body, err := r.Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := &stampedLines{f: f, after: f.last}
	_, err = io.Copy(lines, body)
	return err
}

// stampedLines takes the time off each line, and leaves out lines that were written.
type stampedLines struct {
	f     *follower
	after time.Time
	head  []byte // of a line whose time is not complete
	in    bool   // within a line
	drop  bool   // that line is known
}

func (s *stampedLines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if !s.in {
			i := bytes.IndexAny(p, " \n")
			if i < 0 {
				s.head = append(s.head, p...)
				return n, nil
			}
			s.head = append(s.head, p[:i]...)
			s.open()
			if p[i] == ' ' {
				i++
			}
			p = p[i:]
			continue
		}
		line := p
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			line, s.in = p[:i+1], false
		}
		p = p[len(line):]
		if s.drop {
			continue
		}
		if _, err := s.f.to.Write(line); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// open begins a line by its time. What has none is not of the container but of the kubelet, about it.
func (s *stampedLines) open() {
	at, err := time.Parse(time.RFC3339Nano, string(s.head))
	s.head, s.in = s.head[:0], true
	s.drop = err != nil || !at.After(s.after)
	if !s.drop && at.After(s.f.last) { // a node's clock may be set back
		s.f.last = at
	}
}

// worker is the log of a pod beside the one that serves.
type worker struct {
	*follower
	name   string
	file   *os.File
	masked maskedLines
}

// finish is follower's, and closes the file.
func (w *worker) finish() {
	w.follower.finish()
	w.masked.flush()
	w.file.Close()
}

// quote writes the end of the log into that of the replica, where the reason of its end is looked for.
func (w *worker) quote(to io.Writer) {
	fmt.Fprintf(to, "# %s has ended; the last of its log:\n", w.name)
	_, _ = to.Write(w.masked.tail)
}

// maskedLines writes lines without their secrets, and keeps the last.
type maskedLines struct {
	to   io.Writer
	rest []byte
	tail []byte
}

func (m *maskedLines) Write(p []byte) (int, error) {
	m.rest = append(m.rest, p...)
	i := bytes.LastIndexByte(m.rest, '\n') + 1
	if i == 0 {
		return len(p), nil
	}
	text := redact.Text(string(m.rest[:i]))
	m.rest = append(m.rest[:0], m.rest[i:]...)
	const most = 16 << 10
	m.tail = append(m.tail, text...)
	if extra := len(m.tail) - most; extra > 0 {
		m.tail = append(m.tail[:0], m.tail[extra:]...)
	}
	_, err := io.Copy(m.to, strings.NewReader(text))
	return len(p), err
}

func (m *maskedLines) flush() {
	if len(m.rest) > 0 {
		_, _ = m.Write([]byte("\n"))
	}
}
