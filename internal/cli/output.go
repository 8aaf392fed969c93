package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/interop"
	"perflab/internal/seriesdoc"
	"perflab/internal/workload"
)

// addFileFlags are the files that bench and report write of a run.
func addFileFlags(fs *pflag.FlagSet, html, parquet *string) {
	fs.StringVar(html, "html", "", "write the report as one self-contained HTML file")
	fs.StringVar(parquet, "parquet", "", "write the calls of the run as a Parquet file, one row a call")
}

// showFaults prints what could not be read.
func showFaults(env console.Env, files []interop.File) {
	for _, f := range files {
		for _, fault := range f.Faults {
			fmt.Fprintln(env.Stderr, fault)
		}
	}
}

// workloadLine says what a run sent, so that two can be told apart or alike.
func workloadLine(out *bench.Outcome, w workload.Spec) string {
	return fmt.Sprintf("workload %s, %s requests, %s prompt tokens %s, seed %d%s, cache %s",
		out.Header.Fingerprint, console.Grouped(out.Totals.Requests), console.Grouped(out.Totals.Input), out.CountedBy(), w.Seed, seriesdoc.NonceText(w.Nonce), out.Header.Cache)
}
