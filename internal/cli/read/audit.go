package read

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/arch"
	"perflab/internal/audit"
	"perflab/internal/audit/document"
	"perflab/internal/cli/console"
	"perflab/internal/cli/flagset"
	"perflab/internal/report"
	"perflab/internal/report/audited"
	"perflab/internal/report/doc"
	"perflab/internal/source"
)

type auditFlags struct {
	format      string
	out         string
	html        string
	gpu         string
	gpus        int
	modelConfig string
	severity    string
	list        bool
}

// NewAudit is perflab audit: what cannot be true in results.
func NewAudit(env console.Env) *cobra.Command {
	f := &auditFlags{}
	c := &cobra.Command{
		Use:   "audit FILE...",
		Short: "Find what cannot be true in published results and in run directories",
		Long: `Check figures against each other, against what the hardware can do, and a
document's tables, headings, commands and sentences against its own blocks.
Takes what import takes, - for standard input, and run, series and study
directories. Of a directory it reads all that is below it but hidden files and
pictures. Give it all documents of a study at once: a block that was copied from
another document shows only then.

A printed figure stands for every value that rounds to it, and a finding is made
only when no definition that a known client uses fits. An error is a
contradiction, a warning makes a conclusion doubtful, a note is worth knowing;
--list explains every type. What could not be read is a finding too.

Model and hardware are recognised from the text; say what it does not with
--gpu, --gpus and --model-config.

Exit status: 0 no error found, 3 an error was found, 1 nothing could be read.`,
		Example: `  perflab audit report.md
  perflab audit docs/results --severity warning
  perflab audit report.md --format md --out findings.md
  perflab audit results.json --gpu h100-sxm --gpus 8
  perflab audit perflab-out/quickstart
  perflab audit --list`,
		Args: func(c *cobra.Command, args []string) error {
			if f.list && len(args) > 0 {
				return console.Usage(errors.New("--list takes no file"))
			}
			if !f.list && len(args) == 0 {
				return console.WantArgs(1, "a file of results or a document")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return runAudit(env, f, c.Flags(), args) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.format, "format", "text", "what to print: text, json, or md for a pull request")
	fs.StringVar(&f.out, "out", "", "file to print it to (default standard output)")
	fs.StringVar(&f.html, "html", "", "write the findings as one self-contained HTML file")
	fs.StringVar(&f.severity, "severity", "note", "least that is shown: error, warning or note")
	fs.StringVar(&f.gpu, "gpu", "", "the accelerator, where the text does not say it")
	fs.IntVar(&f.gpus, "gpus", 0, "how many of them, where the text does not say it")
	fs.StringVar(&f.modelConfig, "model-config", "", "the model's config.json, where its name is not known")
	fs.BoolVar(&f.list, "list", false, "print every type of finding and what it means")
	return c
}

// options are what the flags say of model and hardware.
func (f *auditFlags) options() (audit.Options, error) {
	o := audit.Options{GPUs: f.gpus}
	if f.gpus < 0 {
		return o, console.Usage(fmt.Errorf("--gpus is %d: it cannot be negative", f.gpus))
	}
	if f.gpu != "" {
		a, err := arch.LookupAccelerator(f.gpu)
		if err != nil {
			return o, console.Usage(fmt.Errorf("--gpu: %w", err))
		}
		o.Accelerator = &a
	}
	if f.modelConfig != "" {
		m, err := flagset.LookupModel("", f.modelConfig)
		if err != nil {
			return o, console.Usage(err)
		}
		o.Model = &m
	}
	return o, nil
}

// writer is the form that was asked for.
func (f *auditFlags) writer() (func(io.Writer, audited.Audit) error, error) {
	switch f.format {
	case "text":
		return func(w io.Writer, a audited.Audit) error { return doc.Text(w, a.Document()) }, nil
	case "json":
		return audited.JSON, nil
	case "md":
		return func(w io.Writer, a audited.Audit) error { return doc.Markdown(w, a.Document()) }, nil
	}
	return nil, console.Usage(fmt.Errorf("--format %q is not known: text, json or md", f.format))
}

func runAudit(env console.Env, f *auditFlags, fs *pflag.FlagSet, paths []string) error {
	write, err := f.writer()
	if err != nil {
		return err
	}
	least := audit.Severity(f.severity)
	if least != audit.Error && least != audit.Warning && least != audit.Note {
		return console.Usage(fmt.Errorf("--severity %q is not known: error, warning or note", f.severity))
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	if f.list {
		return f.print(env, func(w io.Writer) error { return doc.Text(w, audited.Checks(document.Checks())) })
	}
	files := source.Files(paths, env.Stdin, true)
	a := audited.Audit{Findings: document.Audit(files, o), Least: least}
	for _, file := range files {
		a.Files = append(a.Files, file.Name)
	}
	if f.html == "" || f.out != "" || fs.Changed("format") {
		if err := f.print(env, func(w io.Writer) error { return write(w, a) }); err != nil {
			return err
		}
	}
	d := a.Document()
	report.AddRepeat(&d, env.Invocation(), report.Fact{Label: "Audited by", Value: "perflab " + env.Version})
	if err := console.WriteFiles(env, f.html, func(w io.Writer) error { return doc.HTML(w, d) }, "", nil); err != nil {
		return err
	}
	switch {
	case !source.AnyRead(files):
		return errors.New("nothing could be read")
	case a.Count(audit.Error) > 0:
		return console.ExitError{Code: console.ExitMissed}
	}
	return nil
}

// print writes to --out, else to standard output.
func (f *auditFlags) print(env console.Env, write func(io.Writer) error) error {
	if f.out == "" {
		return write(env.Stdout)
	}
	return env.WriteText(f.out, write)
}
