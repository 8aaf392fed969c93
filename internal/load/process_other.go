//go:build !linux && !darwin

package load

import (
	"math"
	"time"
)

// processCPU is not known here.
func processCPU() time.Duration { return 0 }

// peakMemory is not known here.
func peakMemory() int64 { return 0 }

// LiftFileLimit has nothing to do: there is no limit on open files.
func LiftFileLimit() (uint64, error) { return math.MaxUint64, nil }
