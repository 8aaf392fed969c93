//go:build !linux

package load

import "time"

// kernelSleep leaves a margin for the coarse timer; the caller spins through it.
func kernelSleep(d time.Duration) {
	const margin = 2 * time.Millisecond
	if d > margin {
		time.Sleep(d - margin)
	}
}
