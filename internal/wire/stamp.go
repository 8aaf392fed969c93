package wire

import (
	"net"
	"sync"
	"time"
)

// stamped is a connection under net/http that remembers when its last read
// returned and when the kernel had received the newest byte of it.
type stamped struct {
	net.Conn
	recv func(p []byte) (n int, wall int64, err error) // nil: Conn.Read, and no kernel stamp
	done func()                                        // told once when it closes

	mu    sync.Mutex // net/http reads in a goroutine of its own until the head is there
	at    time.Time
	wall  int64
	n     int  // reads that brought something
	ended bool // the latest brought nothing
}

func (c *stamped) Read(p []byte) (n int, err error) {
	var wall int64
	if c.recv != nil {
		n, wall, err = c.recv(p)
	} else {
		n, err = c.Conn.Read(p)
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.wall = now, wall
	if n > 0 {
		c.n++
	} else {
		c.ended = true
	}
	return n, err
}

// last is the latest read: when it returned, when the kernel had it (0: not
// known), how many there were and whether the connection has ended.
func (c *stamped) last() (now time.Time, wall int64, reads int, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at, c.wall, c.n, c.ended
}

func (c *stamped) Close() error {
	c.mu.Lock()
	done := c.done
	c.done = nil
	c.mu.Unlock()
	if done != nil {
		done()
	}
	return c.Conn.Close()
}
