//go:build linux || darwin

package load

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// processCPU is the user and system time that this process has used.
func processCPU() time.Duration {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// peakMemory is the most memory that this process has had, in bytes.
func peakMemory() int64 {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return r.Maxrss // bytes there
	}
	return r.Maxrss << 10
}

// LiftFileLimit raises the soft limit on open files to the hard one and tells
// what it is now.
func LiftFileLimit() (uint64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("read the limit on open files: %w", err)
	}
	if l.Cur >= l.Max {
		return l.Cur, nil
	}
	up := l
	up.Cur = l.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &up); err != nil {
		return l.Cur, fmt.Errorf("raise the limit on open files from %d to %d: %w", l.Cur, l.Max, err)
	}
	return up.Cur, nil
}
