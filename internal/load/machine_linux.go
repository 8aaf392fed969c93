package load

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// processors is how many this process may run on.
func processors() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return runtime.NumCPU()
	}
	return set.Count()
}

// readTicks reads the first line of /proc/stat: user, nice, system, idle,
// iowait, irq, softirq, steal, and guest times that user and nice hold already.
func readTicks() machineTicks {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return machineTicks{}
	}
	line, rest, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line)
	var t machineTicks
	for strings.HasPrefix(rest, "cpu") {
		t.cpus++
		_, rest, _ = strings.Cut(rest, "\n")
	}
	if len(fields) < 9 {
		return t
	}
	for i, f := range fields[1:9] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return machineTicks{}
		}
		t.all += n
		switch i {
		case 3, 4: // what waits for a disk needs no processor
			t.idle += n
		case 7:
			t.steal = n
		}
	}
	return t
}
