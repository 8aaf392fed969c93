package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"perflab/internal/bench"
	"perflab/internal/durable"
	"perflab/internal/interop"
	"perflab/internal/workload"
)

// addFileFlags are the files that bench and report write of a run.
func addFileFlags(fs *pflag.FlagSet, html, parquet *string) {
	fs.StringVar(html, "html", "", "write the report as one self-contained HTML file")
	fs.StringVar(parquet, "parquet", "", "write the calls of the run as a Parquet file, one row a call")
}

// writeFiles writes the files that were asked for and names them.
func writeFiles(env Env, html string, page func(io.Writer) error, parquet string, rows func(io.Writer) error) error {
	for _, x := range []struct {
		path, what string
		write      func(io.Writer) error
		file       func(string, func(io.Writer) error) error
	}{{html, "report", page, env.writeText}, {parquet, "calls", rows, writeReport}} {
		if x.path == "" {
			continue
		}
		if err := x.file(x.path, x.write); err != nil {
			return err
		}
		fmt.Fprintf(env.Stderr, "%s: %s\n", x.what, x.path)
	}
	return nil
}

// writeText is writeReport for text: no secret that came in by environment or
// flags is in it.
func (e Env) writeText(path string, write func(io.Writer) error) error {
	return writeReport(path, func(w io.Writer) error {
		var b strings.Builder
		if err := write(&b); err != nil {
			return err
		}
		_, err := io.WriteString(w, e.secrets.Mask(b.String()))
		return err
	})
}

// writeReport writes a file as a whole: one that cannot be finished is not
// left behind under its name.
func writeReport(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := durable.Replace(path, write); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// showFaults prints what could not be read.
func showFaults(env Env, files []interop.File) {
	for _, f := range files {
		for _, fault := range f.Faults {
			fmt.Fprintln(env.Stderr, fault)
		}
	}
}

// plural writes "1 run", "2 runs".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// digits writes requests per second.
func digits(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// workloadLine says what a run sent, so that two can be told apart or alike.
func workloadLine(out *bench.Outcome, w workload.Spec) string {
	return fmt.Sprintf("workload %s, %s requests, %s prompt tokens, seed %d%s, cache %s",
		out.Header.Fingerprint, grouped(out.Totals.Requests), grouped(out.Totals.Input), w.Seed, nonceText(w.Nonce), out.Header.Cache)
}

func nonceText(nonce string) string {
	if nonce == "" {
		return ""
	}
	return ", nonce " + nonce
}

// grouped writes thousands apart: 1,024,000.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
