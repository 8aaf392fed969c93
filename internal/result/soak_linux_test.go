package result

import (
	"bytes"
	"os"
	"testing"
)

// peakMemory is the line of /proc that says what memory the process had at most.
func peakMemory(t *testing.T) string {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(b, []byte("VmHWM:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return "VmHWM" + string(line)
}
