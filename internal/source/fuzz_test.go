package source

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"perflab/internal/interop"
)

// FuzzReadData: whatever bytes a file holds, import ends: with runs that JSON can
// hold, or with faults.
func FuzzReadData(f *testing.F) {
	for _, pattern := range []string{"../interop/testdata/*.*", "../interop/testdata/*/*.*", "../report/parquet/testdata/*.parquet"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			if data, err := os.ReadFile(path); err == nil && len(data) < 1<<17 {
				f.Add(data)
			}
		}
	}
	f.Add([]byte("PAR1\x00\x00\x00\x00PAR1"))
	f.Add([]byte("\xff\xfe{\x00}\x00"))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<18 {
			return
		}
		file := readData("a", data)
		if len(file.Runs) == 0 && len(file.Faults) == 0 && file.Doc == nil {
			t.Error("neither a run nor a fault nor a document")
		}
		imports, err := Imports([]interop.File{file}, filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(imports); err != nil {
			t.Fatal(err)
		}
	})
}
