//go:build !linux

package load

import (
	"runtime"

	"perflab/internal/result"
)

func processors() int { return runtime.NumCPU() }

func readTicks() machineTicks { return machineTicks{} }

func waits(int) result.Waits { return result.Waits{} }

func engineTimes([]string) processTimes { return processTimes{} }
