package tune

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets memory grow: the tests play thousands of races, and a quarter of their time went into collecting.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
