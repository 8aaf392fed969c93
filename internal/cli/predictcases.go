package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/forecast"
	"perflab/internal/study"
	"perflab/internal/workload"
)

// deployments are all commands with all values of the grid on all
// accelerators.
func (f *predictFlags) deployments(args []string) ([]forecast.Deployment, error) {
	lines, err := f.lines(args)
	if err != nil {
		return nil, err
	}
	h := forecast.Hardware{GPUs: f.gpus, Model: func(name string) (arch.Model, error) { return lookupModel(name, f.modelConfig) }}
	for _, name := range f.gpu {
		g, err := arch.LookupAccelerator(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		h.Accelerators = append(h.Accelerators, g)
	}
	grid, err := parseGrid(f.grid)
	if err != nil {
		return nil, err
	}
	var commands []forecast.Command
	for _, words := range lines {
		c := forecast.Command{Line: strings.Join(words, " ")}
		if c.Command, c.Refused = f.parse(words); c.Refused != nil && !forecast.IsRefusal(c.Refused) {
			return nil, c.Refused
		}
		commands = append(commands, c)
	}
	return forecast.Deployments(commands, grid, h)
}

// parse reads a command and the configuration file that it names.
func (f *predictFlags) parse(words []string) (engine.Command, error) {
	cmd, err := engine.Parse(words)
	if err != nil {
		return engine.Command{}, err
	}
	cmd.Version = f.version
	if cmd, err = study.ReadCommandFile(cmd); err != nil {
		return engine.Command{}, err
	}
	return cmd, nil
}

// lines are the words of each command.
func (f *predictFlags) lines(args []string) ([][]string, error) {
	var out [][]string
	if len(args) > 0 {
		out = append(out, args)
	}
	texts := slices.Clone(f.commands)
	if f.commandsFile != "" {
		data, err := os.ReadFile(f.commandsFile)
		if err != nil {
			return nil, fmt.Errorf("read --commands: %w", err)
		}
		text := strings.ReplaceAll(string(data), "\\\n", " ")
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				texts = append(texts, line)
			}
		}
	}
	for _, text := range texts {
		words, err := engine.Split(text)
		if err != nil {
			return nil, fmt.Errorf("command %.60q: %w", text, err)
		}
		out = append(out, words)
	}
	if len(out) == 0 {
		return nil, errors.New("perflab predict needs a serving command after --, such as: vllm serve Qwen/Qwen3-32B, or --command, or --commands FILE (see perflab predict --help)")
	}
	return out, nil
}

// mostCombinations is how many configurations a grid may make of a command.
const mostCombinations = 1000

// parseGrid reads NAME=VALUE,VALUE of each parameter.
func parseGrid(texts []string) ([]forecast.Axis, error) {
	var grid []forecast.Axis
	all := 1
	for _, text := range texts {
		name, values, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--grid %q: write it as tp=1,2,4", text)
		}
		if err := engine.KnownParam(name); err != nil {
			return nil, fmt.Errorf("--grid: %w", err)
		}
		if slices.ContainsFunc(grid, func(a forecast.Axis) bool { return a.Param == name }) {
			return nil, fmt.Errorf("--grid has %s twice: join its values by commas", name)
		}
		axis := forecast.Axis{Param: name}
		for v := range strings.SplitSeq(values, ",") {
			axis.Values = append(axis.Values, strings.TrimSpace(v))
		}
		if all *= len(axis.Values); all > mostCombinations {
			return nil, fmt.Errorf("--grid makes %d configurations of each command: %d are the limit", all, mostCombinations)
		}
		grid = append(grid, axis)
	}
	return grid, nil
}

// loads are those of every rate and concurrency.
func (f *predictFlags) loads(fs *pflag.FlagSet) ([]forecast.Load, error) {
	rates, err := loadList("--request-rate", bench.AxisRate, f.rates)
	if err != nil {
		return nil, err
	}
	limits, err := loadList("--max-concurrency", bench.AxisConcurrency, f.concurrency)
	if err != nil {
		return nil, err
	}
	var out []forecast.Load
	for _, rate := range rates {
		for _, limit := range limits {
			spec := f.spec
			if spec.MaxConcurrency, err = strconv.Atoi(limit); err != nil || spec.MaxConcurrency < 0 {
				return nil, fmt.Errorf("--max-concurrency has %q: write whole numbers", limit)
			}
			if err := fillWorkload(fs, &spec, rate); err != nil {
				return nil, err
			}
			l, err := openLoad(spec)
			if err != nil {
				return nil, err
			}
			out = append(out, l)
		}
	}
	return out, nil
}

// loadList reads one load or several: 1,2,inf or a range as of --sweep.
func loadList(flag, axis, text string) ([]string, error) {
	if !strings.Contains(text, "..") {
		return strings.Split(strings.ReplaceAll(text, " ", ""), ","), nil
	}
	s, err := bench.ParseSweep(axis + "=" + text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	var out []string
	for _, v := range s.Values {
		out = append(out, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return out, nil
}

// openLoad reads a workload for prediction.
func openLoad(spec workload.Spec) (forecast.Load, error) {
	w, tokenizer, err := bench.OpenPredicted(spec)
	if err != nil {
		return forecast.Load{}, err
	}
	return forecast.NewLoad(w, tokenizer)
}
