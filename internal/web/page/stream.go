package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Stream is a stream of events to a browser (text/event-stream).
type Stream struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// beat is how often a stream says that it lives where nothing else is to say.
const beat = 15 * time.Second

// Beat is a ticker for Stream.Alive.
func Beat() *time.Ticker { return time.NewTicker(beat) }

// OpenStream begins a stream.
func OpenStream(w http.ResponseWriter) (*Stream, error) {
	s := &Stream{w: w, c: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	_ = s.c.SetWriteDeadline(time.Time{}) // one that cannot has none
	if _, err := fmt.Fprint(w, "retry: 2000\n\n"); err != nil {
		return nil, fmt.Errorf("begin a stream of events: %w", err)
	}
	return s, s.flush()
}

// Send sends an event with a JSON value; id is what a browser that comes back says in
// Last-Event-ID.
func (s *Stream) Send(event, id string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the event %s: %w", event, err)
	}
	return s.write(event, id, string(b))
}

// SendText sends an event with a text, which may have lines: a piece of a page.
func (s *Stream) SendText(event, id, text string) error { return s.write(event, id, text) }

func (s *Stream) write(event, id, data string) error {
	var b strings.Builder
	b.WriteString("event: " + event + "\n")
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	for line := range strings.Lines(data) {
		b.WriteString("data: " + strings.TrimRight(line, "\r\n") + "\n")
	}
	b.WriteString("\n")
	if _, err := s.w.Write([]byte(b.String())); err != nil {
		return fmt.Errorf("send the event %s: %w", event, err)
	}
	return s.flush()
}

// Alive sends a comment, so that what lies between sees that the stream lives.
func (s *Stream) Alive() error {
	if _, err := fmt.Fprint(s.w, ": alive\n\n"); err != nil {
		return fmt.Errorf("keep a stream of events alive: %w", err)
	}
	return s.flush()
}

func (s *Stream) flush() error {
	if err := s.c.Flush(); err != nil {
		return fmt.Errorf("flush a stream of events: %w", err)
	}
	return nil
}
