package measure

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/interop/vllmbench"
	"perflab/internal/workload"
)

// FromVLLM is the process's command line with that of vllm bench serve in bench's flags.
func FromVLLM(env console.Env) ([]string, error) {
	if len(env.Args) == 0 || env.Args[0] != "bench" {
		return env.Args, nil
	}
	line, err := vllmbench.Translate(env.Args[1:], vllmOwn(NewBench(env).Flags()))
	if err != nil {
		return nil, console.Usage(fmt.Errorf("%w (see perflab bench --help)", err))
	}
	for _, note := range line.Notes {
		fmt.Fprintf(env.Stderr, "perflab: %s\n", note)
	}
	return append([]string{"bench"}, line.Args...), nil
}

// vllmOwn is what bench takes itself.
func vllmOwn(fs *pflag.FlagSet) vllmbench.Own {
	return vllmbench.Own{
		Flag: func(name string) (known, takesValue bool) {
			f := fs.Lookup(name)
			return f != nil, f != nil && f.NoOptDefVal == ""
		},
		Tokenizer: bench.HasTokenizer, Datasets: workload.Datasets(), Stamp: time.Now().Format("20060102-150405"),
	}
}
