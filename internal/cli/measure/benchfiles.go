package measure

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"perflab/internal/bench"
	"perflab/internal/block"
	"perflab/internal/cli/console"
	"perflab/internal/report"
	"perflab/internal/report/doc"
	"perflab/internal/report/parquet"
	"perflab/internal/result"
)

// placeFiles makes the directories of --html, --parquet and --save-result
// before the run, so that a name that cannot be is noticed while nothing is
// lost.
func (f *benchFlags) placeFiles() error {
	if f.resultDir != "" {
		if err := os.MkdirAll(f.resultDir, 0o755); err != nil {
			return fmt.Errorf("create --result-dir: %w", err)
		}
	}
	result := ""
	if f.resultFile != "" {
		result = filepath.Join(f.resultDir, f.resultFile)
	}
	for _, x := range []struct{ flag, path string }{{"--html", f.html}, {"--parquet", f.parquet}, {"--result-filename", result}} {
		if x.path == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(x.path), 0o755); err != nil {
			return fmt.Errorf("create the directory of %s: %w", x.flag, err)
		}
		if info, err := os.Stat(x.path); err == nil && info.IsDir() {
			return console.Usage(fmt.Errorf("%s %s is a directory: give the name of a file", x.flag, x.path))
		}
	}
	return nil
}

// writeFiles writes --html and --parquet of a finished run.
func (f *benchFlags) writeFiles(env console.Env, out *bench.Outcome, style block.Style) error {
	return console.WriteFiles(env,
		f.html, func(w io.Writer) error {
			d, err := report.Run(out.Header, out.Summary, style, out.Calls, out.Readings)
			if err != nil {
				return err
			}
			return doc.HTML(w, d)
		},
		f.parquet, func(w io.Writer) error {
			var missing error
			err := parquet.Write(w, out.Header, withoutError(out.All(), &missing))
			return cmp.Or(err, missing)
		})
}

// withoutError yields the calls until there is an error, which it keeps.
func withoutError(calls iter.Seq2[result.Call, error], kept *error) iter.Seq[result.Call] {
	return func(yield func(result.Call) bool) {
		for c, err := range calls {
			if err != nil {
				*kept = err
				return
			}
			if !yield(c) {
				return
			}
		}
	}
}

// allCalls reads every call of a run, of which not all are in memory.
func allCalls(out *bench.Outcome) ([]result.Call, error) {
	var err error
	calls := slices.Collect(withoutError(out.All(), &err))
	return calls, err
}
