package study

import (
	"fmt"
	"slices"
)

// Startable says why a system (runtime.GOOS) cannot start what a kind of runtime starts; nil where it can. On Windows there
// is nothing by which engines would end with perflab, and its ssh cannot share a connection.
func Startable(system, kind string) error {
	if system == "windows" && slices.Contains([]string{Process, SSH, Simulated}, kind) {
		return fmt.Errorf("runtime %s starts no engines from Windows: use runtime docker, existing or predicted, or run perflab tune on Linux or macOS", kind)
	}
	return nil
}
