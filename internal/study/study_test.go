package study

import (
	"os"
	"testing"
)

// TestFingerprint: a study goes on under the hash that its journal was begun
// with. The one here is of the program as it was when studies were first divided
// from the laboratory: keys of the file's JSON and their order stay.
func TestFingerprint(t *testing.T) {
	data, err := os.ReadFile("testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse("everything.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := s.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	if want := "4de6f73d53ff00db91e017788951bd4d770073f066b6e7644035200db0fd5eb6"; hash != want {
		t.Errorf("the fingerprint is %s, want %s: studies that were begun cannot be resumed", hash, want)
	}
}
