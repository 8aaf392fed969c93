package selfcheck

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzReadRecords: whatever the file of self checks holds, it is read or refused.
func FuzzReadRecords(f *testing.F) {
	f.Add([]byte(`{"host v1":{"version":"v1"}}`))
	f.Add([]byte(`{"a":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "selfcheck.json")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = readRecords(path)
	})
}
