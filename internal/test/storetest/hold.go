package storetest

import (
	"os"
	"testing"

	"perflab/internal/durable"
)

// hold marks a file as in use until the test ends.
func hold(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if held, err := durable.Hold(f); err != nil || !held {
		t.Fatalf("held %v, %v", held, err)
	}
}
