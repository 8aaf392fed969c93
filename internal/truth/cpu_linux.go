package truth

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// CPUs are the processors that this process may use.
func CPUs() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	return list(set)
}

func list(set unix.CPUSet) []int {
	var out []int
	for cpu := 0; len(out) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			out = append(out, cpu)
		}
	}
	return out
}

func setOf(cpus []int) *unix.CPUSet {
	set := new(unix.CPUSet)
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return set
}

// StartOn starts cmd on these CPUs alone: a child takes over the set of the
// thread that forks it. No CPUs: on all.
func StartOn(cmd *exec.Cmd, cpus []int) error {
	if len(cpus) == 0 {
		return cmd.Start()
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, with its set, ends with the goroutine
		if err := unix.SchedSetaffinity(0, setOf(cpus)); err != nil {
			started <- fmt.Errorf("choose CPUs %v: %w", cpus, err)
			return
		}
		started <- cmd.Start()
	}()
	return <-started
}

// Pin keeps every thread of this process on these CPUs until undo is called.
func Pin(cpus []int) (undo func(), err error) {
	before := CPUs()
	if err := pin(cpus); err != nil {
		return nil, err
	}
	return func() { _ = pin(before) }, nil // was possible before
}

// pin sets every thread; a second look catches those that a thread not set yet
// has started.
func pin(cpus []int) error {
	set := setOf(cpus)
	for range 2 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("list this process's threads: %w", err)
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			if err := unix.SchedSetaffinity(id, set); err != nil && err != unix.ESRCH {
				return fmt.Errorf("choose CPUs %v: %w", cpus, err)
			}
		}
	}
	return nil
}
