package deploy

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"perflab/internal/redact"
)

// Limits of a start where its Spec gives none.
const (
	StartTimeout = 2 * time.Hour    // until every replica is ready
	StartSilence = 15 * time.Minute // without progress in any log
)

const lookPause = time.Second // between two looks at the logs

// LateError is why a start was given up that takes too long.
type LateError struct {
	Limit   time.Duration // of the start as a whole, or of silence
	Silence bool          // Limit is how long no log showed progress
	Phase   string        // what an engine did last, "" where no log tells
}

func (e *LateError) Error() string {
	text := fmt.Sprintf("not ready after %v", e.Limit)
	if e.Silence {
		text = fmt.Sprintf("not ready, and its log shows no progress for %v", e.Limit)
	}
	if e.Phase != "" {
		text += " (" + e.Phase + ")"
	}
	return text
}

// startWatch follows the logs of a deployment that starts. Progress is a line that tells a
// phase and is not the one before it, and any line of a shape that was not printed yet: one
// that differs from others in numbers alone is none, as an engine that hangs says every minute
// for how long it has waited.
type startWatch struct {
	d     *deployment
	seed  maphash.Seed
	logs  map[*member]*watchedLog
	phase string
	since time.Time     // of the last progress
	idle  time.Duration // of the Host, at the last look
}

// watchedLog is how far a log has been read.
type watchedLog struct {
	next   int64
	rest   []byte // a line that has not ended
	marked uint64 // hash of the last line with a phase
	shapes map[uint64]bool
}

const (
	glance    = 16 << 20 // of a log at most, more than is written between two looks
	longest   = 4 << 10  // of a line that is looked at
	mostShape = 1 << 14
)

// watchStart ends the start by its cause when the deadline is there, or when the logs show no
// progress for as long as the specification allows. What the Host waits for others counts for
// neither. The caller ends it by ctx.
func (d *deployment) watchStart(ctx context.Context, deadline time.Time, end context.CancelCauseFunc) {
	limit := cmp.Or(d.spec.Silence, StartSilence)
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	w := &startWatch{d: d, seed: maphash.MakeSeed(), logs: map[*member]*watchedLog{}, since: time.Now()}
	tick := time.NewTicker(min(lookPause, max(limit/10, time.Millisecond)))
	defer tick.Stop()
	granted := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-late.C:
			if more := d.waited() - granted; more > 0 {
				granted += more
				late.Reset(more)
				continue
			}
			w.look(now)
			end(&LateError{Limit: cmp.Or(d.spec.Timeout, StartTimeout), Phase: w.phase})
			return
		case now := <-tick.C:
			w.look(now)
			if now.Sub(w.since) >= limit {
				end(&LateError{Limit: limit, Silence: true, Phase: w.phase})
				return
			}
		}
	}
}

// look reads what the logs have got since the last look. As long as nothing runs, an image
// is being fetched or a machine reached, and no log can tell.
func (w *startWatch) look(now time.Time) {
	w.d.mu.Lock()
	members := slices.Clone(w.d.members)
	w.d.mu.Unlock()
	if idle := w.d.waited(); len(members) == 0 || idle > w.idle {
		w.since, w.idle = now, idle
	}
	for _, m := range members {
		l := w.logs[m]
		if l == nil {
			l = &watchedLog{shapes: map[uint64]bool{}}
			w.logs[m], w.since = l, now
		}
		b, from := m.log.read(l.next, glance)
		if len(b) == 0 {
			continue
		}
		if from > l.next { // the begin of its first line is not here
			l.rest = nil
		}
		l.next = from + int64(len(b))
		if w.read(l, b) {
			w.since = now
		}
	}
}

// read takes a further part of a log, and reports whether it shows progress. Bars of progress
// end their lines by a return.
func (w *startWatch) read(l *watchedLog, b []byte) (progress bool) {
	b = append(l.rest, b...)
	for {
		i := bytes.IndexAny(b, "\r\n")
		if i < 0 {
			break
		}
		progress = w.line(l, b[:i]) || progress
		b = b[i+1:]
	}
	l.rest = slices.Clone(b[:min(len(b), longest)])
	return w.line(l, l.rest) || progress // dots of llama.cpp's loading
}

// line reports whether a line is progress.
func (w *startWatch) line(l *watchedLog, line []byte) bool {
	line = line[:min(len(line), longest)]
	if len(bytes.TrimSpace(line)) == 0 {
		return false
	}
	if phase, ok := w.d.phase(string(line)); ok {
		if phase != w.phase {
			w.phase = phase
			w.d.tell(phase)
		}
		hash := maphash.Bytes(w.seed, line)
		changed := hash != l.marked
		l.marked = hash
		return changed
	}
	shape := maphash.Bytes(w.seed, shapeOf(line))
	known := l.shapes[shape]
	if len(l.shapes) < mostShape {
		l.shapes[shape] = true
	}
	return !known
}

// shapeOf is a line without its numbers.
func shapeOf(line []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, line)
}

// waited is how long the Host has waited for what is not the engine's.
func (d *deployment) waited() time.Duration {
	if w, ok := d.Host.(Waiter); ok {
		return w.Waited()
	}
	return 0
}

func (d *deployment) phase(line string) (phase string, ok bool) {
	if d.spec.Phase == nil {
		return "", false
	}
	return d.spec.Phase(redact.Plain(line))
}

func (d *deployment) tell(phase string) {
	if d.spec.Progress != nil {
		d.spec.Progress(phase)
	}
}
