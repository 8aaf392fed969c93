package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"perflab/internal/audit"
	"perflab/internal/audit/document"
	"perflab/internal/interop"
	"perflab/internal/result"
	"perflab/internal/rundir"
)

type importFlags struct {
	out    string
	format string
}

func newImport(env Env) *cobra.Command {
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
labels are replaced. No directory is overwritten.

Exit status: 0 done, 1 a file that was named cannot be opened or no run was read.`,
		Example: `  perflab import report.md
  pbpaste | perflab import -
  perflab import results/*.json --out perflab-out/imported/results
  perflab import report.md --format json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wantArgs(1, "a file of results or a document")(c, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return runImport(env, f, args) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.out, "out", "", "directory for the runs; of several files, one below it for each (default perflab-out/imported/<file>)")
	fs.StringVar(&f.format, "format", "text", "what to print: text, or json as in import.json")
	return c
}

func runImport(env Env, f *importFlags, paths []string) error {
	if f.format != "text" && f.format != "json" {
		return usageError{fmt.Errorf("--format %q is not known: text or json", f.format)}
	}
	files := readResults(env, paths, false)
	for i := range files {
		if x := &files[i]; len(x.Runs) == 0 && len(x.Faults) == 0 {
			*x = faulty(x.Name, "no result was found: no block that a client prints")
		}
	}
	imports, err := imported(files, f.out)
	if err != nil {
		return err
	}
	showFaults(env, files)
	runs := 0
	for i := range imports {
		if runs += len(imports[i].Runs); len(imports[i].Runs) == 0 {
			imports[i].Dir = ""
			continue
		}
		if err := imports[i].Write(); err != nil {
			return err
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
	return opened(paths)
}

// opened is an error where a file that was named cannot be opened: what the
// others hold was imported, and a script is to know that this is not all.
func opened(paths []string) error {
	for _, path := range paths {
		if path == "-" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s could not be imported: %s", path, unwrapped(err))
		}
	}
	return nil
}

// imported turns files into what is to be written, and refuses directories
// that exist before anything is.
func imported(files []interop.File, out string) ([]rundir.Import, error) {
	findings := map[*interop.Run][]audit.Finding{}
	for _, f := range document.Audit(files, audit.Options{}) {
		for _, x := range append([]audit.Finding{f}, f.Also...) {
			if x.Run != nil {
				findings[x.Run] = append(findings[x.Run], x)
			}
		}
	}
	names := uniqueNames{}
	var all []rundir.Import
	for i := range files {
		f := &files[i]
		base := filepath.Base(f.Name)
		slug := names.name(cmp.Or(interop.Slug(strings.TrimSuffix(base, filepath.Ext(base))), "file"))
		m := rundir.Import{File: f.Name, Dir: filepath.Join("perflab-out", "imported", slug)}
		switch {
		case out != "" && len(files) == 1:
			m.Dir = out
		case out != "":
			m.Dir = filepath.Join(out, slug)
		}
		for _, fault := range f.Faults {
			m.Faults = append(m.Faults, rundir.ImportFault{File: fault.File, Line: fault.Line, Text: fault.Text})
		}
		dirs := uniqueNames{}
		for j := range f.Runs {
			r, err := importedRun(&f.Runs[j], findings[&f.Runs[j]])
			if err != nil {
				m.Faults = append(m.Faults, rundir.ImportFault{File: f.Name, Line: f.Runs[j].Place.Line, Text: err.Error()})
				continue
			}
			r.Dir = dirs.name(runName(j+1, &f.Runs[j]))
			m.Runs = append(m.Runs, r)
		}
		if err := m.CheckFree(); err != nil && len(m.Runs) > 0 {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// uniqueNames gives every name once.
type uniqueNames map[string]bool

func (u uniqueNames) name(want string) string {
	name := want
	for n := 2; u[name]; n++ {
		name = fmt.Sprintf("%s-%d", want, n)
	}
	u[name] = true
	return name
}

// runName names the directory of a run by its number in the file and what it
// is: the innermost heading and the case, else the model. Of what is long the
// end stays, where headings that are alike differ.
func runName(n int, r *interop.Run) string {
	const longest = 72
	words := []string{r.Header.Label(result.LabelCase), r.Header.Label(result.LabelRole)}
	if s := r.Header.Imported.Section; len(s) > 0 {
		words = append([]string{withoutNumber(s[len(s)-1])}, words...)
	}
	slug := cmp.Or(interop.Slug(words...), interop.Slug(r.Header.Model), "run")
	if len(slug) > longest {
		begin, end := slug[:longest/2], slug[len(slug)-longest/2:]
		if i := strings.LastIndexByte(begin, '-'); i > 0 {
			begin = begin[:i]
		}
		_, last, _ := strings.Cut(end, "-")
		slug = begin + "-" + cmp.Or(last, end)
	}
	return fmt.Sprintf("%03d-%s", n, slug)
}

// withoutNumber removes the number of a heading, as of "2. Quantization" and
// "3.1 Size 256", and no figure, as of "4 nodes".
func withoutNumber(title string) string {
	number, rest, ok := strings.Cut(title, " ")
	if ok && strings.Contains(number, ".") && strings.Trim(number, "0123456789.") == "" {
		return rest
	}
	return title
}

// importedRun is a run with its figures and the verdict on them.
func importedRun(r *interop.Run, findings []audit.Finding) (rundir.ImportedRun, error) {
	s, err := r.Summary()
	if err != nil {
		return rundir.ImportedRun{}, err
	}
	h := r.Header
	origin := *h.Imported
	origin.Rounding, origin.Lacks = r.Rounding(), r.Lacks
	for _, o := range r.Other {
		if origin.Other == nil {
			origin.Other = map[string]string{}
		}
		origin.Other[o.Label] = o.Text
	}
	h.Imported, h.Simulated = &origin, h.Simulated || r.Sim
	s.Verdict = importedVerdict(r, findings)
	return rundir.ImportedRun{
		Line: origin.Line, Client: strings.TrimSpace(origin.Client + " " + origin.Version), Model: h.Model, Case: h.Label(result.LabelCase),
		Calls: len(r.Calls), Verdict: s.Verdict.Status, Findings: len(findings), Header: h, Summary: s, Stored: r.Calls,
	}, nil
}

// importedVerdict says what is known of figures that perflab did not measure:
// that it did not, and what audit finds in them.
func importedVerdict(r *interop.Run, findings []audit.Finding) result.Verdict {
	var v result.Verdict
	if r.Sim || r.Header.Simulated {
		v.Add(result.Check{Name: "simulated", Status: result.Sound, Text: "SIMULATED: the file says that no hardware was measured"})
	}
	origin := r.Header.Imported
	text := fmt.Sprintf("figures of %s by %s", interop.Place{File: origin.File, Line: origin.Line}, cmp.Or(origin.Client, "an unknown client"))
	if !strings.HasPrefix(origin.Client, "perflab") { // else an export of ours that came back
		text += "; perflab did not measure them"
	}
	v.Add(result.Check{Name: "imported", Status: result.Sound, Text: text})
	for _, c := range r.Verdict.Checks {
		if c.Status != result.Sound {
			v.Add(c)
		}
	}
	statuses := map[audit.Severity]result.Status{audit.Error: result.Voided, audit.Warning: result.Noted, audit.Note: result.Remark}
	for _, f := range findings {
		v.Add(result.Check{Name: f.Type, Status: statuses[f.Severity], Text: f.Text})
	}
	return v
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
		fmt.Fprintf(&b, "%s: %s in %s\n", m.File, plural(len(m.Runs), "run"), m.Dir)
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

// plural writes "1 run", "2 runs".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
