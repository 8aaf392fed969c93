package load

import (
	"runtime"

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
