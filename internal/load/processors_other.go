//go:build !linux

package load

import "runtime"

func processors() int { return runtime.NumCPU() }
