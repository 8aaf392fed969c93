//go:build !linux

package truth_test

import "time"

type machine struct{ busy, steal time.Duration }

func readMachine() machine { return machine{} }
