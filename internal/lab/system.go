package lab

import (
	"fmt"
	"runtime"
	"slices"

	"perflab/internal/study"
)

// startable says why a system cannot start what a runtime starts; nil where it can. On Windows there
// is nothing by which engines would end with perflab, and its ssh cannot share a connection.
func startable(system, kind string) error {
	if system == "windows" && slices.Contains([]string{study.Process, study.SSH, study.Simulated}, kind) {
		return fmt.Errorf("runtime %s starts no engines from Windows: use runtime docker, existing or predicted, or run perflab tune on Linux or macOS", kind)
	}
	return nil
}

// startableHere is startable of this system.
func startableHere(s *study.Study) error { return startable(runtime.GOOS, s.Runtime.Kind) }
