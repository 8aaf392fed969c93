package study

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"perflab/internal/workload"
)

// Paths in a study file are from the working directory, as those of a command line are: models go to
// engines, which run there, and the copy that a study keeps of its file names the same files.

// whereLooked ends the error of a path that a study file names: where there is nothing at a relative
// path it says where that was looked for, as the file may lie elsewhere.
func whereLooked(path string) string {
	if _, err := os.Stat(path); path == "" || path == workload.ServerTokenizer || filepath.IsAbs(path) || !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (looked for at %s: paths in a study file are from the working directory)", whole)
}
