package read

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/cli/library"
	"perflab/internal/interop"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/source"
)

type importFlags struct {
	push   library.Push
	made   []string // directories
	out    string
	format string
}

// NewImport is perflab import: results of other clients as run directories.
func NewImport(env console.Env) *cobra.Command {
	f := &importFlags{}
	c := &cobra.Command{
		Use:   "import FILE...",
		Short: "Read other clients' result files and published reports as runs",
		Long: `Read the results of vllm bench serve, SGLang, guidellm, GPUStack's
benchmark-runner, AIPerf and inference-perf (their JSON, or the blocks that they
print, in a text or a Markdown document), and perflab's own CSV and Parquet
exports. A directory stands for its files, and - for standard input.

Each run becomes a run directory for report, compare, export and audit, with the
figures of the file, the definition of every figure that is not perflab's, and
what the text says around them: section, commands, engine, hardware. The verdict
is what audit finds on the run's own figures. perflab did not measure them, and
says so wherever they are shown.

What cannot be read is printed as file:line. import.json beside the runs has the
file, of each run its directory, line, client, model, case, number of calls,
verdict and number of findings, and the faults. Secrets in commands, titles and
labels are replaced. No directory is overwritten; those of an import appear when
all of it is written, so that one that was interrupted can be made again.

Exit status: 0 done, 1 a file that was named cannot be opened or no run was read.`,
		Example: `  perflab import report.md
  pbpaste | perflab import -
  perflab import results/*.json --out perflab-out/imported/results
  perflab import report.md --format json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.WantArgs(1, "a file of results or a document")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return f.push.After(c.Context(), env, func() error { return runImport(env, f, args) }, func() []string { return f.made })
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.out, "out", "", "directory for the runs; of several files, one below it for each (default perflab-out/imported/<file>)")
	fs.StringVar(&f.format, "format", "text", "what to print: text, or json as in import.json")
	f.push.Add(fs)
	return c
}

func runImport(env console.Env, f *importFlags, paths []string) error {
	if f.format != "text" && f.format != "json" {
		return console.Usage(fmt.Errorf("--format %q is not known: text or json", f.format))
	}
	files := source.Files(paths, env.Stdin, false)
	for i := range files {
		if x := &files[i]; len(x.Runs) == 0 && len(x.Faults) == 0 {
			*x = source.Faulty(x.Name, "no result was found: no block that a client prints")
		}
	}
	imports, err := source.Imports(files, f.out)
	if err != nil {
		return err
	}
	showFaults(env, files)
	runs := 0
	for i := range imports {
		if runs += len(imports[i].Runs); len(imports[i].Runs) == 0 {
			imports[i].Dir = ""
		}
	}
	if err := rundir.WriteImports(imports); err != nil {
		return err
	}
	for _, x := range imports {
		if x.Dir != "" {
			f.made = append(f.made, x.Dir)
		}
	}
	if f.format == "json" {
		err = importsJSON(env.Stdout, imports)
	} else {
		err = importsText(env.Stdout, imports)
	}
	switch {
	case err != nil:
		return err
	case runs == 0:
		return errors.New("no run could be read")
	}
	return checkOpened(paths)
}

// checkOpened is an error where a file that was named cannot be opened: what the
// others hold was imported, and a script is to know that this is not all.
func checkOpened(paths []string) error {
	for _, path := range paths {
		if path == "-" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s could not be imported: %s", path, source.Reason(err))
		}
	}
	return nil
}

// importsJSON prints what import.json has, one object a file.
func importsJSON(w io.Writer, imports []rundir.Import) error {
	out := make([]struct {
		Dir string `json:"dir,omitempty"`
		rundir.Import
	}, len(imports))
	for i := range imports {
		imports[i].Fill()
		out[i].Dir, out[i].Import = imports[i].Dir, imports[i]
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(out); err != nil {
		return fmt.Errorf("print the import: %w", err)
	}
	return nil
}

// importsText prints one table a file. The figures are those that clients
// define alike.
func importsText(w io.Writer, imports []rundir.Import) error {
	var b strings.Builder
	for _, m := range imports {
		if len(m.Runs) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s: %s in %s\n", m.File, console.Plural(len(m.Runs), "run"), m.Dir)
		tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "  run\tclient\tmodel\trequests\treq/s\ttotal tok/s\tcalls\tverdict")
		for _, r := range m.Runs {
			calls := "figures only"
			if r.Calls > 0 {
				calls = fmt.Sprint(r.Calls)
			}
			verdict := string(r.Verdict)
			if r.Summary.Simulated || r.Header.Simulated {
				verdict += ", SIMULATED"
			}
			fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Dir, r.Client, cmp.Or(r.Model, "not recorded"),
				figureText(r.Summary, "completed"), figureText(r.Summary, "request_throughput"), figureText(r.Summary, "total_token_throughput"), calls, verdict)
		}
		tw.Flush() // into a Builder, which never fails
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print the import: %w", err)
	}
	return nil
}

// figureText prints a figure as the block does, and "n/a" where there is none.
func figureText(s result.Summary, name string) string {
	v, ok := s.Figures[name]
	m, err := result.Lookup(name)
	if !ok || err != nil {
		return "n/a"
	}
	return fmt.Sprintf("%.*f", m.Decimals, v)
}

// showFaults prints what could not be read.
func showFaults(env console.Env, files []interop.File) {
	for _, f := range files {
		for _, fault := range f.Faults {
			fmt.Fprintln(env.Stderr, fault)
		}
	}
}
