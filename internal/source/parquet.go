package source

import (
	"bytes"
	"cmp"
	"path/filepath"

	"perflab/internal/interop"
	"perflab/internal/report/parquet"
	"perflab/internal/result"
)

// parquetMagic is how a Parquet file begins.
const parquetMagic = "PAR1"

// readParquet reads the calls of a run that perflab wrote as Parquet; ok is
// false for other files. interop cannot: the library is the renderer's alone.
func readParquet(path string, data []byte) (f interop.File, ok bool) {
	if !bytes.HasPrefix(data, []byte(parquetMagic)) {
		return f, false
	}
	h, calls, err := parquet.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Faulty(path, err.Error()), true
	}
	origin := h.Imported
	h.Imported = &result.Imported{Client: "perflab bench", Version: h.Version, Format: interop.FormatParquet, File: filepath.Base(path)}
	if origin != nil { // who measured it stays; the figures of its file are not here
		h.Imported.Client, h.Imported.Version, h.Imported.Labels, h.Imported.Section = cmp.Or(origin.Client, "an unknown client"), origin.Version, origin.Labels, origin.Section
		h.Imported.Lacks = origin.Lacks
	}
	run := interop.Run{Place: interop.Place{File: path}, Header: h, Calls: calls, Sim: h.Simulated || h.Predicted}
	run.Lacks = h.Imported.Lacks
	if origin != nil {
		run.Defs = origin.Definitions
	}
	redactRun(&run)
	return interop.File{Name: path, Runs: []interop.Run{run}}, true
}
