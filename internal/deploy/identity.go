package deploy

import "fmt"

// identity is a process told apart from later ones of the same id, and from those of
// other machines.
type identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`          // clock ticks after boot; 0 where the system does not tell
	Boot  string `json:"boot,omitempty"` // of its machine, different each time and everywhere
}

// runningProcess is a process that was found.
type runningProcess struct {
	identity
	name   string
	parent int // its process id
	group  int
	ended  bool // and not reaped
}

func describe(r runningProcess) string { return fmt.Sprintf("process %d (%s)", r.PID, r.name) }
