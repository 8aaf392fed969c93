package studies_test

import (
	"os"
	"testing"

	"perflab/internal/web/launch"
)

// TestMain makes the test binary a supervisor of launches, as main does.
func TestMain(m *testing.M) {
	launch.Main()
	os.Exit(m.Run())
}
