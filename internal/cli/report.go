package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"perflab/internal/lab"
	"perflab/internal/report"
	"perflab/internal/result"
)

type reportFlags struct {
	format      string
	out         string
	block       string
	sections    string
	percentiles string
}

func newReport(env Env) *cobra.Command {
	f := &reportFlags{}
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Render a run or a study as text, Markdown or HTML",
		Long: `Render a run directory or a study directory again. The figures of a run are
computed from its calls; a partial run (DIR.tmp) is summarised as far as it got.`,
		Example: `  perflab report perflab-out/quickstart
  perflab report perflab-out/quickstart --format html --out report.html
  perflab report perflab-out/quickstart/trials/001/chat --format md`,
		Args: wantArgs(1, "a run or study directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			return runReport(env, f, args[0])
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.format, "format", "text", "text, md or html")
	fs.StringVar(&f.out, "out", "", "file to write (default standard output)")
	fs.StringVar(&f.block, "block", "", "layout of result blocks: vllm or gpustack (default the study's, or vllm)")
	fs.StringVar(&f.sections, "percentile-metrics", "ttft,tpot,itl,e2el", "sections of the block")
	fs.StringVar(&f.percentiles, "metric-percentiles", "99", "percentiles of the block")
	return c
}

func runReport(env Env, f *reportFlags, dir string) error {
	var text strings.Builder
	var err error
	switch {
	case lab.IsStudy(dir):
		err = f.study(&text, dir)
	case lab.IsRun(dir):
		err = f.run(&text, dir)
	default:
		return usageError{fmt.Errorf("%s holds neither a run (header.json) nor a study (study.json)", dir)}
	}
	if err != nil {
		return err
	}
	if f.out == "" {
		_, err = io.WriteString(env.Stdout, text.String())
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.out), 0o755); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := os.WriteFile(f.out, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

var errFormat = errors.New("--format is text, md or html")

func (f *reportFlags) study(w io.Writer, dir string) error {
	if f.block != "" && f.block != "vllm" && f.block != "gpustack" {
		return usageError{fmt.Errorf("--block %q is not known: vllm or gpustack", f.block)}
	}
	s, err := lab.OpenStudy(dir)
	if err != nil {
		return err
	}
	o := studyOptions(dir, s, f.block)
	switch f.format {
	case "text":
		return report.StudyText(w, s)
	case "md":
		return report.Markdown(w, s, o)
	case "html":
		return report.HTML(w, s, o)
	}
	return usageError{errFormat}
}

func (f *reportFlags) run(w io.Writer, dir string) error {
	r, err := lab.OpenRun(dir)
	if err != nil {
		return err
	}
	percentiles, err := parsePercentiles(f.percentiles)
	if err != nil {
		return usageError{err}
	}
	s, err := r.Resummarise(percentiles...)
	if err != nil {
		return err
	}
	style := result.Style{Layout: f.block, Sections: strings.Split(f.sections, ","), Percentiles: percentiles}
	switch f.format {
	case "text":
		err = report.RunText(w, r.Header, s, style)
	case "md":
		err = report.RunMarkdown(w, r.Header, s, style)
	case "html":
		err = report.RunHTML(w, r.Header, s, style, r.Calls)
	default:
		return usageError{errFormat}
	}
	if err == nil && r.Damage != "" {
		_, err = fmt.Fprintf(w, "\nNot everything could be read: %s\n", r.Damage)
	}
	return err
}
