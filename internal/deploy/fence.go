package deploy

import "strings"

// Fence is how what an engine starts on this machine is kept within reach, wherever it
// goes. On other systems than Linux there is none: what leaves the engine's process group is lost.
type Fence string

const (
	// AnyFence is a guard between perflab and the engine, to which the kernel gives every
	// descendant whose parent ends (a subreaper), and a cgroup around the engine where one
	// can be made.
	AnyFence Fence = ""
	// Subreaper is the guard alone.
	Subreaper Fence = "subreaper"
	// NoFence is the engine's process group and the marker in the environment. Programs
	// that do not call GuardMain have no other.
	NoFence Fence = "none"
)

// scope is what belongs to a process that was started: whatever is in one of these.
type scope struct {
	marker string   // KEY=value in the environment, "": none
	groups []int    // of processes
	guard  identity // whose descendants it is, without itself; zero: none
	cgroup string   // directory, "": none
}

// guardName is the first word of a guard's command line.
const guardName = "perflab-guard"

// cgroupName is the name of the cgroup of what has a marker.
func cgroupName(marker string) string {
	_, value, _ := strings.Cut(marker, "=")
	return "perflab-" + strings.ReplaceAll(value, "/", "-")
}
