package measure

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"perflab/internal/cli/console"
	"perflab/internal/interop/translate"
)

const fromLong = `--from 'guidellm benchmark ...' (also guidellm run, aiperf profile, genai-perf
profile, python -m sglang.bench_serving) prints the command of perflab bench that
sends the same load, says flag by flag what differs, and sends nothing. A flag
without which the load would be another one is refused. To run it:
perflab bench --from '...' | sh`

// translateCommand prints another client's command as one of ours.
func translateCommand(env console.Env, fs *pflag.FlagSet, from string) error {
	alone := true
	fs.Visit(func(g *pflag.Flag) { alone = alone && g.Name == "from" })
	if !alone {
		return console.Usage(errors.New("--from only prints a command: give it alone, and add the other flags to what it prints"))
	}
	t, err := translate.Read(from)
	if err != nil {
		return console.Usage(err)
	}
	if _, err := fmt.Fprintln(env.Stdout, t); err != nil {
		return fmt.Errorf("print the command: %w", err)
	}
	fmt.Fprintf(env.Stderr, "from %s; what differs:\n", t.Client)
	for _, n := range t.Notes {
		fmt.Fprintf(env.Stderr, "  %s: %s\n", n.Flag, n.Text)
	}
	if len(t.Notes) == 0 {
		fmt.Fprintln(env.Stderr, "  nothing that a flag says")
	}
	return nil
}
