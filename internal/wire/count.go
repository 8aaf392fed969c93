package wire

import "sync"

// count is how many connections are open.
type count struct {
	mu                sync.Mutex
	now, most, opened int
}

func (c *count) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now++
	c.opened++
	c.most = max(c.most, c.now)
}

func (c *count) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now--
}

// take tells and starts anew.
func (c *count) take() (most, opened int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	most, opened = c.most, c.opened
	c.most, c.opened = c.now, 0
	return most, opened
}

func (c *count) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now == 0
}
