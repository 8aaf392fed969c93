package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// FuzzOpenSeries: whatever sweep.json or repeat.json hold, they open with figures that can be
// shown, or with an error.
func FuzzOpenSeries(f *testing.F) {
	f.Add(false, []byte(`{"schema":"perflab.series/1","kind":"sweep","points":[{"load":{"axis":"rate","value":4},"dir":"rate-4","seed":1,"summary":{"completed":3,"duration":1,"request_throughput":3,"verdict":{"status":"sound"}}}],"stop":{"code":"done","text":"x"},"percentiles":[99]}`))
	f.Add(true, []byte(`{"schema":"perflab.series/1","kind":"repeat","points":[{"load":{"axis":"run","value":1},"dir":"run-1","summary":{"completed":3}},{"load":{"axis":"run","value":2},"dir":"../run-2","summary":{"completed":4}}],"slos":[{}],"max_error_rate":-1}`))
	f.Add(false, []byte(`{"kind":"findmax","points":[{}],"max":{"load":{}}}`))
	f.Fuzz(func(t *testing.T, repeat bool, data []byte) {
		dir := filepath.Join(t.TempDir(), "series")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		name := map[bool]string{false: "sweep.json", true: "repeat.json"}[repeat]
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, _, err := OpenSeries(dir, 50)
		if err != nil {
			return
		}
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
		_, _, _ = s.File(), s.Concluded(), s.Edge()
	})
}
