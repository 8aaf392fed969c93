package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// stream is a connection to an engine's port, on the node. The leader writes and reads a frame at a time, and has the
// next one on its way when the last was answered: whoever is slow keeps the other side waiting, and
// nothing piles up between.
type stream struct {
	conn    *net.TCPConn
	closing sync.Once
}

func (x *stream) close() { x.closing.Do(func() { _ = x.conn.Close() }) }

// Limits of a stream.
const (
	dialWithin  = 5 * time.Second
	writeWithin = 30 * time.Second
)

// open connects to a port that an engine of the holder may listen on. There is no way to another port, or to another machine.
func (h *holder) open(o openOrder) (any, error) {
	e, err := h.engine(o.Engine)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(e.ports, o.Port) {
		return nil, fmt.Errorf("port %d is none of engine %d: connections lead to an engine's own ports alone", o.Port, o.Engine)
	}
	d := net.Dialer{Timeout: dialWithin}
	c, err := d.DialContext(h.ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port)))
	if err != nil {
		return nil, err
	}
	e.serves(o.Port)
	x := &stream{conn: c.(*net.TCPConn)}
	if _, err := add(h, h.streams, o.Number, func() (*stream, error) { return x, nil }); err != nil {
		x.close()
		return nil, err
	}
	return nil, nil
}

// read gives what has come of a stream, as soon as there is something.
func (h *holder) read(o numbered) (chunk, error) {
	x, err := find(h, h.streams, o.Number, "connection")
	if err != nil {
		return chunk{}, err
	}
	if err := x.conn.SetReadDeadline(time.Now().Add(longPoll)); err != nil {
		return chunk{}, err
	}
	b := make([]byte, frame)
	n, err := x.conn.Read(b)
	switch {
	case n > 0:
		return chunk{Bytes: b[:n]}, nil
	case errors.Is(err, io.EOF):
		return chunk{End: true}, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return chunk{}, nil
	}
	return chunk{}, err
}

// write gives bytes to a stream, and answers when the engine's system has them.
func (h *holder) write(o writeOrder) (any, error) {
	x, err := find(h, h.streams, o.Number, "connection")
	if err != nil {
		return nil, err
	}
	if err := x.conn.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return nil, err
	}
	_, err = x.conn.Write(o.Bytes)
	return nil, err
}

// shut ends a stream, or says that nothing more is written.
func (h *holder) shut(o shutOrder) (any, error) {
	x, err := find(h, h.streams, o.Number, "connection")
	if err != nil {
		return nil, nil // it has ended
	}
	if o.Half {
		return nil, x.conn.CloseWrite()
	}
	h.forget(func() { delete(h.streams, o.Number) })
	x.close()
	return nil, nil
}

// forwarder is a port on this machine's loopback interface that leads to one of an engine on a node.
type forwarder struct {
	h      *hold
	engine int
	port   int
	l      net.Listener
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// forward opens one, until close.
func forward(h *hold, engine, port int) (*forwarder, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(h.ctx)
	f := &forwarder{h: h, engine: engine, port: port, l: l, cancel: cancel}
	f.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.work.Go(func() { f.carry(ctx, c.(*net.TCPConn)) })
		}
	})
	f.work.Go(func() { // also where the node is lost
		<-ctx.Done()
		_ = l.Close()
	})
	return f, nil
}

func (f *forwarder) url() string { return "http://" + f.l.Addr().String() }

func (f *forwarder) close() {
	f.cancel()
	f.work.Wait()
}

// carry carries a connection to the engine and back, until both sides have ended it or one broke.
func (f *forwarder) carry(ctx context.Context, c *net.TCPConn) {
	defer c.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	number := f.h.number()
	if _, err := once[struct{}](ctx, f.h, wordOpen, openOrder{number, f.engine, f.port}); err != nil {
		_ = c.SetLinger(0) // refused there: refused here
		return
	}
	defer func() {
		last, done := context.WithTimeout(context.WithoutCancel(ctx), dialWithin)
		defer done()
		_, _ = once[struct{}](last, f.h, wordShut, shutOrder{Number: number}) // else its end is the holder's
	}()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	var up sync.WaitGroup
	up.Go(func() {
		if err := f.up(ctx, c, number); err != nil {
			cancel()
		}
	})
	if err := f.down(ctx, c, number); err != nil {
		_ = c.SetLinger(0) // a broken connection must not look like the end of an answer
	}
	cancel()
	up.Wait()
}

// up writes what comes here to the engine.
func (f *forwarder) up(ctx context.Context, c *net.TCPConn, number int) error {
	b := make([]byte, frame)
	for {
		n, err := c.Read(b)
		if n > 0 {
			if _, err := once[struct{}](ctx, f.h, wordWrite, writeOrder{number, b[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			_, err = once[struct{}](ctx, f.h, wordShut, shutOrder{number, true})
			return err
		}
		if err != nil {
			return err
		}
	}
}

// down writes what comes of the engine here.
func (f *forwarder) down(ctx context.Context, c *net.TCPConn, number int) error {
	for {
		part, err := once[chunk](ctx, f.h, wordRead, numbered{number})
		if err != nil {
			return err
		}
		if len(part.Bytes) > 0 {
			if _, err := c.Write(part.Bytes); err != nil {
				return err
			}
		}
		if part.End {
			return nil
		}
	}
}
