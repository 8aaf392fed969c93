package mlperf

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Announce says what a curve of these concurrencies takes, before it is measured; each is the time of each point, 0: as
// long as the rules want.
func (r Rules) Announce(concurrencies []int, each time.Duration) string {
	var least time.Duration
	for _, c := range concurrencies {
		least += cmp.Or(each, r.Load(c))
	}
	text := fmt.Sprintf("%s: %d points at concurrency %s, each for whole passes over the data set, %v at least in all", r.Name, len(concurrencies),
		strings.ReplaceAll(strings.Trim(fmt.Sprint(concurrencies), "[]"), " ", ", "), least.Round(time.Second))
	if r.Short {
		text += "; the short form is no submission"
	}
	return text
}
