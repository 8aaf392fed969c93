package versus

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"perflab/internal/store/reduction"
)

// reducedRun is a run as plots draw it.
type reducedRun = reduction.Reduction

// mostCached bounds what is kept of comparisons: their text and their figures, no calls.
const mostCached = 64

// cache keeps the comparisons that were made last.
type cache struct {
	mu   sync.Mutex
	made map[string]made
	keys []string // the oldest first
}

// get returns what is kept under a key, or makes it. Two who ask at once may both make it.
func (c *cache) get(key string, make func() (made, error)) (made, error) {
	c.mu.Lock()
	m, ok := c.made[key]
	c.mu.Unlock()
	if ok {
		return m, nil
	}
	m, err := make()
	if err != nil {
		return m, err
	}
	c.put(key, m)
	return m, nil
}

func (c *cache) put(key string, m made) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[string]made{}
	}
	if _, ok := c.made[key]; !ok {
		c.keys = append(c.keys, key)
	}
	c.made[key] = m
	if len(c.keys) > mostCached {
		delete(c.made, c.keys[0])
		c.keys = slices.Delete(c.keys, 0, 1)
	}
}

// cacheKey names a comparison: what is asked, and how the files of its sides are.
func cacheKey(sides []side, c choice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %v %q\n", c.By, c.Metrics, c.All, c.SLOText)
	for _, s := range sides {
		fmt.Fprintf(&b, "%q\n", s.Name)
		for _, e := range s.Entries {
			fmt.Fprintf(&b, "%s %s", e.ID, e.Dir())
			for _, name := range []string{"header.json", "calls.jsonl", "summary.json", "repeat.json"} {
				if info, err := os.Stat(filepath.Join(e.Dir(), name)); err == nil { // else it is not there, which is part of the key
					fmt.Fprintf(&b, " %d-%d", info.Size(), info.ModTime().UnixNano())
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
