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
	file      *os.File // in which it all ends up

	from    int64 // where the file was when it began
	stop    context.CancelFunc
	copying sync.WaitGroup
	ended   chan struct{} // closed when the container has ended
	last    time.Time     // of the last line that was written
	whole   bool          // the log came to its end
}

func (f *follower) start(ctx context.Context) {
	f.ended = make(chan struct{})
	if info, err := f.file.Stat(); err == nil {
		f.from = info.Size()
	}
	reading, cancel := context.WithCancel(ctx)
	f.stop = cancel
	f.copying.Go(func() { f.copy(reading) })
}

// finish returns when the log of the ended container is there, or cannot be had. Of a container that
// was started again it is the previous one, while what has been read may be of what runs since.
func (f *follower) finish() {
	close(f.ended)
	late := time.AfterFunc(logDrain, f.stop)
	defer late.Stop()
	if f.restarts() > 0 {
		f.stop()
	}
	f.copying.Wait()
	defer f.stop()
	ctx, cancel := context.WithTimeout(context.Background(), logDrain)
	defer cancel()
	if !f.whole && f.restarts() == 0 {
		_ = f.read(ctx, false) // of a pod that is gone there is no more
	}
	// Of a later life the log may differ, but it is better than none.
	if n := f.restarts(); n == 1 || n > 1 && f.last.IsZero() {
		_ = f.rewrite(ctx) // else what was read is all there is
	}
}

// rewrite replaces what was read by the log of the container's last life before this one, if that can
// be had.
func (f *follower) rewrite(ctx context.Context) error {
	body, err := f.open(ctx, false, true, time.Time{})
	if err != nil {
		return err
	}
	defer body.Close()
	if err := f.file.Truncate(f.from); err != nil {
		return err
	}
	if w, ok := f.to.(*maskedLines); ok {
		w.rest, w.tail = nil, nil
	}
	f.last = time.Time{}
	return f.take(body)
}

// restarts is how often the kubelet has started the container again.
func (f *follower) restarts() int32 {
	p, _ := f.view.pod(f.uid)
	s, _ := statusOf(p.Pod, f.container)
	return s.RestartCount
}

// copy follows the log until its end.
func (f *follower) copy(ctx context.Context) {
	for pause := firstPause; f.restarts() == 0; pause = min(2*pause, lastPause) {
		err := f.read(ctx, true)
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
func (f *follower) read(ctx context.Context, follow bool) error {
	body, err := f.open(ctx, follow, false, f.last)
	if err != nil {
		return err
	}
	defer body.Close()
	return f.take(body)
}

// open asks for the log from an instant on.
func (f *follower) open(ctx context.Context, follow, previous bool, since time.Time) (io.ReadCloser, error) {
	r := f.core.Get().Namespace(f.namespace).Resource("pods").Name(f.pod).SubResource("log").
		Param("container", f.container).Param("timestamps", "true")
	if follow {
		r = r.Param("follow", "true")
	}
	if previous {
		r = r.Param("previous", "true")
	}
	if !since.IsZero() {
		r = r.Param("sinceTime", since.UTC().Format(time.RFC3339))
	}
	return r.Stream(ctx)
}

// take writes the lines that are new.
func (f *follower) take(body io.Reader) error {
	lines := &stampedLines{f: f, after: f.last}
	if _, err := io.Copy(lines, body); err != nil {
		return err
	}
	return lines.end()
}

// stampedLines takes the time off each line, and leaves out lines that were written. A line counts
// once it is there as a whole: one that a lost connection cut off is read again.
type stampedLines struct {
	f     *follower
	after time.Time
	rest  []byte // of a line that has not ended
}

func (s *stampedLines) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	whole := bytes.LastIndexByte(s.rest, '\n') + 1
	for line := range bytes.Lines(s.rest[:whole]) {
		if err := s.line(line); err != nil {
			return 0, err
		}
	}
	s.rest = append(s.rest[:0], s.rest[whole:]...)
	return len(p), nil
}

// end takes what stands after the last line's end for a line too.
func (s *stampedLines) end() error {
	if len(s.rest) == 0 {
		return nil
	}
	return s.line(s.rest)
}

// line writes a line that is new. What has no time is not of the container but of the kubelet, about it.
func (s *stampedLines) line(line []byte) error {
	stamp, text, _ := bytes.Cut(line, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil || !at.After(s.after) {
		return nil
	}
	if _, err := s.f.to.Write(text); err != nil {
		return err
	}
	if at.After(s.f.last) { // a node's clock may be set back
		s.f.last = at
	}
	return nil
}

// worker is the log of a pod beside the one that serves.
type worker struct {
	*follower
	name   string
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
