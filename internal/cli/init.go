package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"perflab/docs"
	"perflab/internal/cli/console"
	"perflab/internal/draft"
)

type initFlags struct {
	draft.Answers
	out        string
	yes, force bool
}

func newInit(env console.Env) *cobra.Command {
	f := &initFlags{}
	c := &cobra.Command{
		Use:   "init",
		Short: "Write a study file for this machine, to begin with",
		Long: `Look at this machine (as perflab doctor does), ask a few questions on a terminal, and
write a study file with comments that perflab tune takes. An empty answer is the usual
one, which stands in brackets; what a flag says is not asked. Without a terminal, and
with --yes, everything that no flag says is the usual.

Engines start as processes where one is installed, in containers where Docker gives
them GPUs, and a server that answers is measured as it runs. On a machine with nothing
of that the study is of the simulated runtime, and says so (SIMULATED).

The schema that editors complete the file by is written beside it, and named in its
first line. No file is overwritten without --force.`,
		Example: `  perflab init
  perflab init --yes
  perflab init --engine vllm --model Qwen/Qwen3-32B --gpu h100-sxm --gpus 4 --runtime process --yes
  perflab init --objective ttft --slo 'mean_tpot_ms <= 30' --workload chat,8000/200 --out chat.yaml`,
		Args: console.WantArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), env) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.Engine, "engine", "", "engine to tune (perflab engines lists them)")
	fs.StringVar(&f.Model, "model", "", "model: a repository id, or a GGUF file for llama.cpp")
	fs.StringVar(&f.GPU, "gpu", "", "accelerator, by a name of perflab sim --list, or cpu")
	fs.IntVar(&f.GPUs, "gpus", 0, "how many of them the study may use (default: those that are here)")
	fs.StringVar(&f.Runtime, "runtime", "", "how engines start: process, docker, existing, simulated or predicted (default: by what is here)")
	fs.StringVar(&f.Objective, "objective", "", "what to improve: "+draft.ObjectiveNames()+", or a metric of docs/metrics.md")
	fs.StringArrayVar(&f.SLOs, "slo", nil, "what must hold besides, such as 'p99_ttft_ms <= 500' (repeatable)")
	fs.StringVar(&f.Workload, "workload", "", "load: "+draft.WorkloadNames()+", or tokens IN/OUT; several by commas")
	fs.StringVar(&f.Price, "price-per-hour", "", "what all of the hardware costs an hour, such as '32 USD'")
	fs.StringVar(&f.out, "out", "study.yaml", "file to write; the study is called after it")
	fs.BoolVar(&f.yes, "yes", false, "ask nothing")
	fs.BoolVar(&f.force, "force", false, "overwrite the file")
	return c
}

func (f *initFlags) run(ctx context.Context, env console.Env) error {
	if err := f.Check(); err != nil && !(env.Asks && f.Price == "") { // a price can be asked for
		return console.Usage(err)
	}
	if _, err := os.Lstat(f.out); err == nil && !f.force {
		return console.Usage(fmt.Errorf("%s exists: --force overwrites it, --out FILE writes another", f.out))
	}
	f.Name = strings.TrimSuffix(filepath.Base(f.out), filepath.Ext(f.out))
	found, err := examine(ctx, env)
	if err != nil {
		return err
	}
	if env.Asks && !f.yes {
		err = console.Within(ctx, func() error { return f.Ask(env.Stdin, env.Stderr, found) })
		if err != nil {
			return err
		}
	}
	file, err := draft.Make(f.Answers, found)
	if err != nil {
		return console.Usage(err)
	}
	return f.write(env, file)
}

// write writes the file, and the schema where there is none.
func (f *initFlags) write(env console.Env, file draft.File) error {
	schema := filepath.Join(filepath.Dir(f.out), draft.SchemaFile)
	files := map[string][]byte{f.out: file.Text}
	if there, err := os.ReadFile(schema); errors.Is(err, os.ErrNotExist) {
		files[schema] = docs.StudySchema
	} else if !bytes.Equal(there, docs.StudySchema) {
		file.Notes = append(file.Notes, "warning: "+schema+" is another version's, and was left as it is: perflab tune --schema prints this one's")
	}
	for path, text := range files {
		if err := env.WriteText(path, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return err
		}
	}
	fmt.Fprintln(env.Stdout, f.out)
	for _, n := range append(file.Notes, fmt.Sprintf("Next: perflab tune %[1]s --check, then perflab tune %[1]s; perflab serve shows it in a browser as it goes", f.out)) {
		fmt.Fprintln(env.Stderr, n)
	}
	return nil
}
