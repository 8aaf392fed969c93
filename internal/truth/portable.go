package truth

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// portable is the server with a goroutine for each connection.
type portable struct {
	ctx  context.Context // of Serve; the server lives no longer than that call
	mu   sync.Mutex
	book *book
	gate chan struct{} // closed when the gate opens or the parameters change
}

func servePortable(ctx context.Context, l net.Listener, b *book) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &portable{ctx: ctx, book: b, gate: make(chan struct{})}
	var conns sync.WaitGroup
	defer conns.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return errors.Join(err, l.Close())
		}
		conns.Go(func() {
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			defer c.Close()
			s.serveConn(c)
		})
	}
}

// serveConn serves one connection until it breaks.
func (s *portable) serveConn(c net.Conn) {
	var in, out []byte
	buf := make([]byte, 16<<10)
	for {
		n, err := c.Read(buf)
		at := time.Now().UnixNano()
		in = append(in, buf[:n]...)
		for {
			r, bad := parseRequest(in)
			if bad != nil {
				c.Write(failure("400 Bad Request", bad)) // it is closed in any case
				return
			}
			if r.size == 0 {
				break
			}
			if out, bad = s.serve(c, r, at, out); bad != nil {
				return
			}
			in = append(in[:0], in[r.size:]...)
		}
		if err != nil {
			return
		}
	}
}

// serve answers one request; out is a buffer to use again.
func (s *portable) serve(c net.Conn, r request, at int64, out []byte) ([]byte, error) {
	chat, ok := r.streams()
	if !ok {
		s.mu.Lock()
		text := s.book.answer(r)
		if r.method == "POST" && r.path == "/truth" {
			s.reopen()
		}
		s.mu.Unlock()
		_, err := c.Write(text)
		return out, err
	}
	s.mu.Lock()
	rec, ready := s.book.add(r.id, chat, at)
	gate := s.gate
	if len(ready) > 1 || len(ready) == 1 && s.book.p.Gate > 0 {
		s.reopen()
	}
	s.mu.Unlock()
	if _, err := c.Write(rec.page.opening); err != nil {
		return out, err
	}
	if len(ready) == 0 {
		select {
		case <-gate:
		case <-s.ctx.Done():
			return out, s.ctx.Err()
		}
	}
	return s.stream(c, rec, out)
}

// reopen lets those at the gate go.
func (s *portable) reopen() {
	close(s.gate)
	s.gate = make(chan struct{})
}

// stream sends the events of one request, each when it is due.
func (s *portable) stream(c net.Conn, rec *record, out []byte) ([]byte, error) {
	if rec.due == noDue {
		return out, errors.New("the parameters changed while the request waited at the gate")
	}
	for last := false; !last; {
		timer := time.NewTimer(time.Duration(rec.next()) - time.Since(s.book.epoch))
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			timer.Stop()
			return out, s.ctx.Err()
		}
		var tokens int
		var at int64
		out, tokens, at = rec.send(out)
		s.mu.Lock()
		last = rec.sent(at, tokens)
		s.mu.Unlock()
		if _, err := c.Write(out); err != nil {
			return out, err
		}
	}
	_, err := c.Write(rec.page.closing)
	return out, err
}
