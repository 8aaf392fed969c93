package truth_test

import (
	"os"
	"strconv"
	"strings"
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

func ticks(s string) time.Duration {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second / ticksPerSecond
}
