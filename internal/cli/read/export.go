package read

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/interop"
	"perflab/internal/interop/callcsv"
	"perflab/internal/profile"
	"perflab/internal/profile/submission"
	"perflab/internal/report/parquet"
	"perflab/internal/result"
	"perflab/internal/rundir"
)

type exportFlags struct {
	to         string
	out        string
	submission string // what perflab cannot know of one
}

// exportFormat is a form in which a run can be written.
type exportFormat struct {
	name       string
	needsCalls bool // of the calls, so a run of figures alone has none, and there is no place for a verdict
	write      func(io.Writer, *rundir.Run, result.Summary) (note string, err error)
}

func exportFormats() []exportFormat {
	return []exportFormat{
		{"vllm", false, exportVLLM},
		{"guidellm", true, exportGuideLLM},
		{"csv", true, func(w io.Writer, r *rundir.Run, s result.Summary) (string, error) {
			return "", callcsv.Write(w, withDefinitions(r.Header, s), r.All())
		}},
		{"parquet", true, func(w io.Writer, r *rundir.Run, s result.Summary) (string, error) {
			return "", parquet.Write(w, withDefinitions(r.Header, s), r.All())
		}},
		{"otlp", true, exportSpans},
	}
}

// withDefinitions puts the definitions of an imported run's figures in its header, for
// a file of the calls alone.
func withDefinitions(h result.Header, s result.Summary) result.Header {
	if h.Imported != nil {
		origin := *h.Imported
		origin.Definitions = s.Definitions
		h.Imported = &origin
	}
	return h
}

// exportNames are the values of --to.
func exportNames() string {
	var names []string
	for _, f := range exportFormats() {
		names = append(names, f.name)
	}
	return strings.Join(append(names, profile.MLPerf), ", ")
}

// NewExport is perflab export: a run in the form of another client.
func NewExport(env console.Env) *cobra.Command {
	f := &exportFlags{}
	c := &cobra.Command{
		Use:   "export RUN",
		Short: "Write a run as a file of another client, CSV, Parquet or spans",
		Long: `Write a run directory, measured or imported, in another form:

  vllm      the JSON of vllm bench serve --save-result --save-detailed
  guidellm  a report of guidellm's with its requests
  csv       the calls as a table, one row a call
  parquet   the calls with all their facts, as report --parquet
  otlp      the calls as spans of OpenTelemetry, in its JSON: a line for some calls

A curve of perflab bench --profile mlperf-endpoints becomes the files of a submission: --to
mlperf-endpoints --submission FILE --out DIR, where FILE says what perflab cannot know
(docs/profiles.md).

A run of figures alone, imported from a printed block, has no calls: of it there
is only vllm. Figures by definitions that are not vLLM's are null in a vllm file
and named on standard error. import reads every form but otlp back, with the
same figures.`,
		Example: `  perflab export perflab-out/quickstart --to vllm --out result.json
  perflab export perflab-out/imported/report/001-baseline --to vllm
  perflab export perflab-out/sweep-20261126 --to mlperf-endpoints --submission submission.yaml --out submission`,
		Args: console.WantArgs(1, "a run directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.to == profile.MLPerf {
				return exportSubmission(env, f, args[0])
			}
			return runExport(env, f, args[0])
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.to, "to", "", "form: "+exportNames())
	fs.StringVar(&f.out, "out", "", "file to write (default standard output), or the directory of a submission")
	fs.StringVar(&f.submission, "submission", "", "with --to mlperf-endpoints: file that describes system, model and submitter")
	return c
}

func runExport(env console.Env, f *exportFlags, dir string) error {
	i := slices.IndexFunc(exportFormats(), func(x exportFormat) bool { return x.name == f.to })
	switch {
	case f.submission != "":
		return console.Usage(fmt.Errorf("--submission needs --to %s", profile.MLPerf))
	case f.to == "":
		return console.Usage(fmt.Errorf("--to is missing: %s", exportNames()))
	case i < 0:
		return console.Usage(fmt.Errorf("--to %q is not known: %s", f.to, exportNames()))
	case f.to == "parquet" && f.out == "" && console.IsTerminal(env.Data()):
		return console.Usage(errors.New("a Parquet file is not for a terminal: give --out FILE"))
	case !rundir.IsRun(dir):
		return console.Usage(fmt.Errorf("%s is no run directory: it has no header.json", dir))
	}
	r, err := rundir.OpenRun(dir)
	if err != nil {
		return err
	}
	if r.Damage != "" {
		fmt.Fprintf(env.Stderr, "perflab: not everything could be read: %s\n", r.Damage)
	}
	form := exportFormats()[i]
	if form.needsCalls && len(r.Calls) == 0 {
		return console.Usage(fmt.Errorf("%s has figures alone and no calls, which --to %s is of: use --to vllm", dir, form.name))
	}
	s, err := r.Resummarise()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	note, err := form.write(&b, r, s)
	if err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintf(env.Stderr, "perflab: %s\n", note)
	}
	if s.Verdict.Status == result.Voided && form.needsCalls {
		fmt.Fprintf(env.Stderr, "perflab: the run is void, which --to %s has no place to say: %s\n", f.to, s.Verdict.Why())
	}
	write := func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err }
	switch {
	case f.out == "" && f.to == "parquet":
		return write(env.Data())
	case f.out == "":
		return write(env.Stdout)
	case f.to == "parquet":
		return console.WriteReport(f.out, write)
	}
	return env.WriteText(f.out, write)
}

// exportSubmission writes a curve as the files of a submission.
func exportSubmission(env console.Env, f *exportFlags, dir string) error {
	switch {
	case f.submission == "":
		return console.Usage(submission.ErrNoDescription)
	case f.out == "":
		return console.Usage(errors.New("--out is missing: the directory to write the submission into"))
	}
	d, err := submission.Read(f.submission)
	if err != nil {
		return console.Usage(fmt.Errorf("--submission: %w", err))
	}
	c, err := submission.Open(dir)
	if err != nil {
		return console.Usage(err)
	}
	at, notes, err := submission.Write(f.out, d, c)
	if err != nil {
		return err
	}
	for _, n := range notes {
		fmt.Fprintf(env.Stderr, "perflab: %s\n", n)
	}
	fmt.Fprintf(env.Stderr, "submission: %s, %d points\n", at, len(c.Runs))
	return nil
}

// exportVLLM writes vLLM's JSON. What an imported run has by another
// definition than vLLM's or ours stays out: the file says whose figures it
// holds, and those would be neither's.
func exportVLLM(w io.Writer, r *rundir.Run, s result.Summary) (note string, err error) {
	s.Figures, s.Definitions = maps.Clone(s.Figures), maps.Clone(s.Definitions)
	vllm := result.Summary{Definitions: result.DefinitionsOf(result.VLLM)}
	like := func(of string, d result.Definition) bool { // of an older vLLM too
		return d == result.Ours || d == vllm.Definition(of) || of == "max_concurrent_requests" && d == result.SecondBuckets
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.Figures)) {
		if d := s.Definition(name); !like(name, d) {
			of := name
			if m, err := result.Lookup(name); err == nil && m.Family != "" {
				of = m.Family
			}
			out = append(out, fmt.Sprintf("%s (%s)", of, d))
			delete(s.Figures, name)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	maps.DeleteFunc(s.Definitions, func(of string, d result.Definition) bool {
		return !like("mean_"+of+"_ms", d) && !like(of, d)
	})
	o := interop.VLLMOptions{Sections: s.Sections(), Percentiles: s.Percentiles(), Detailed: len(r.Calls) > 0}
	b, err := interop.VLLM(r.Header, s, slices.Collect(r.All()), o)
	if err != nil {
		return "", err
	}
	if len(out) > 0 {
		note = "left out, because vLLM defines them otherwise: " + strings.Join(out, ", ")
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return "", fmt.Errorf("write the result: %w", err)
	}
	return note, nil
}

// exportGuideLLM writes a report of guidellm's, whose figures follow from the
// calls by guidellm's definitions.
func exportGuideLLM(w io.Writer, r *rundir.Run, s result.Summary) (note string, err error) {
	if d := s.Definition("mean_ttft_ms"); r.Header.Imported != nil && d != result.Ours && d != result.FirstText && d != result.FirstIteration {
		note = fmt.Sprintf("the calls are as %s saw them: the TTFT is %s", r.Header.Imported.Client, d)
	}
	b, err := interop.GuideLLM(r.Header, slices.Collect(r.All()))
	if err != nil {
		return "", err
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return "", fmt.Errorf("write the report: %w", err)
	}
	return note, nil
}
