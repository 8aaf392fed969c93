package filter

import (
	"testing"
	"time"
)

// TestOutermost: which expressions leave out what lies in something else.
func TestOutermost(t *testing.T) {
	for text, want := range map[string]bool{"parent=none": true, "engine=vllm parent=none": true, "": false, "parent!=none": false, "parent=abcd": false, "engine=none": false} {
		f, err := Parse(text, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if f.Outermost() != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
