package cli

import (
	"bytes"

	"perflab/internal/interop"
)

// readParquet reads a Parquet file of perflab; ok is false for other files.
func readParquet(path string, data []byte) (f interop.File, ok bool) {
	if !bytes.HasPrefix(data, []byte("PAR1")) {
		return f, false
	}
	return faulty(path, "Parquet is not read"), true
}
