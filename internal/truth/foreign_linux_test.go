package truth_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond of the times in /proc/stat: USER_HZ, 100 on every system that Go
// runs on.
const ticksPerSecond = 100

// machine is what all processors have spent so far.
type machine struct{ busy, steal time.Duration }

// readMachine reads the first line of /proc/stat: user, nice, system, idle,
// iowait, irq, softirq, steal. Interrupts belong to no process.
func readMachine() (m machine) {
	b, err := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if err != nil || len(f) < 9 {
		return m
	}
	return machine{busy: ticks(f[1]) + ticks(f[2]) + ticks(f[3]), steal: ticks(f[8])}
}

// resident is the memory that a process has now, in bytes.
func resident(pid int) int64 {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// largest is what the largest process of a command that ended had resident.
func largest(s *os.ProcessState) int64 {
	u, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return u.Maxrss << 10
}

func ticks(s string) time.Duration {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second / ticksPerSecond
}
