//go:build !linux

package truth

import (
	"errors"
	"os/exec"
)

// CPUs are the processors that this process may use; nil: not known.
func CPUs() []int { return nil }

var errNoPin = errors.New("this system does not let a process choose its CPUs")

// StartOn starts cmd on these CPUs alone. No CPUs: on all.
func StartOn(cmd *exec.Cmd, cpus []int) error {
	if len(cpus) > 0 {
		return errNoPin
	}
	return cmd.Start()
}

// Pin keeps every thread of this process on these CPUs until undo is called.
func Pin([]int) (undo func(), err error) { return nil, errNoPin }
