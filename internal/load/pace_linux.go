package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// kernelSleep blocks the thread for d. The wake-up is an absolute instant, so
// that signals, which Go sends itself for preemption, do not stretch it.
func kernelSleep(d time.Duration) {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return // the caller spins instead
	}
	until := unix.NsecToTimespec(now.Nano() + int64(d))
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil) == unix.EINTR {
	}
}
