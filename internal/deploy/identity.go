package deploy

import (
	"fmt"

	"perflab/internal/proc"
)

// identity is how a record knows a process.
type identity = proc.ID

// identify returns the identity of a process that runs. Where the system does not tell when a process
// started there is none, for a later one of the same id would have it too.
func identify(pid int) (identity, bool) {
	p, ok := proc.Read(pid)
	return p.ID, ok && !p.Ended
}

func describe(p proc.Process) string { return fmt.Sprintf("process %d (%s)", p.PID, p.Name) }
