package study

import "testing"

// TestWhereLooked: only of a relative path at which there is nothing it is said where it was looked for.
func TestWhereLooked(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, says := range map[string]bool{"nope": true, "../nope": true, "": false, ".": false, "/nope": false, "server": false} {
		if got := whereLooked(path); (got != "") != says {
			t.Errorf("of %q: %q", path, got)
		}
	}
}
