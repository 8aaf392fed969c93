package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"perflab/internal/arch"
	"perflab/internal/calib"
	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/lab"
	"perflab/internal/workload"
)

// configuration is a serving command on a kind of machine, or why the engine
// would not start.
type configuration struct {
	cmd      engine.Command
	line     string // as given, where it could not be parsed
	gpu      arch.Accelerator
	cfg      engine.Config
	replicas int
	refused  error
	grid     map[string]string // its values
	notes    []string
}

// configurations are all commands with all values of the grid on all
// accelerators.
func (f *predictFlags) configurations(args []string) ([]configuration, error) {
	lines, err := f.lines(args)
	if err != nil {
		return nil, usageError{err}
	}
	var gpus []arch.Accelerator
	for _, name := range f.gpu {
		g, err := arch.LookupAccelerator(strings.TrimSpace(name))
		if err != nil {
			return nil, usageError{err}
		}
		gpus = append(gpus, g)
	}
	combos, err := gridCombos(f.grid)
	if err != nil {
		return nil, usageError{err}
	}
	var out []configuration
	for _, g := range gpus {
		for _, words := range lines {
			for _, values := range combos {
				c, err := f.configuration(words, values, g)
				if err != nil {
					return nil, err
				}
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// lines are the commands, taken apart.
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

// gridCombos are all combinations of a grid's values; of none the empty one.
func gridCombos(grid []string) ([]map[string]string, error) {
	out := []map[string]string{{}}
	seen := map[string]bool{}
	for _, text := range grid {
		name, values, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--grid %q: write it as tp=1,2,4", text)
		}
		if err := engine.KnownParam(name); err != nil {
			return nil, fmt.Errorf("--grid: %w", err)
		}
		if seen[name] {
			return nil, fmt.Errorf("--grid has %s twice: join its values by commas", name)
		}
		seen[name] = true
		var next []map[string]string
		for _, combo := range out {
			for v := range strings.SplitSeq(values, ",") {
				c := maps.Clone(combo)
				c[name] = strings.TrimSpace(v)
				next = append(next, c)
			}
		}
		if out = next; len(out) > 1000 {
			return nil, fmt.Errorf("--grid makes %d configurations of each command: 1000 are the limit", len(out))
		}
	}
	return out, nil
}

// configuration resolves a command with values of the grid. What the engine
// would refuse is no error.
func (f *predictFlags) configuration(words []string, values map[string]string, gpu arch.Accelerator) (configuration, error) {
	c := configuration{gpu: gpu, line: strings.Join(words, " "), grid: values}
	cmd, err := engine.Parse(words)
	if err != nil {
		c.refused = err
		return c, notRefused(err)
	}
	cmd.Version = f.version
	if cmd, err = lab.ReadCommandFile(cmd); err != nil {
		c.refused = err
		return c, notRefused(err)
	}
	if err := cmd.Modelled(); err != nil {
		return c, usageError{err}
	}
	c.cmd = cmd
	if len(values) > 0 {
		params := maps.Clone(cmd.Params)
		if params == nil {
			params = map[string]string{}
		}
		maps.Copy(params, values)
		if c.cmd, err = engine.New(cmd.Engine, cmd.Model, params, cmd.Extra); err != nil {
			c.cmd = engine.Command{Engine: cmd.Engine, Model: cmd.Model, Params: params, Extra: cmd.Extra, File: cmd.File}
			c.refused = err
			return c, notRefused(err)
		}
		c.cmd.Env, c.cmd.Host, c.cmd.Port, c.cmd.File, c.cmd.Version = cmd.Env, cmd.Host, cmd.Port, cmd.File, cmd.Version
	}
	model, err := lookupModel(c.cmd.Model, f.modelConfig)
	if err != nil {
		return c, usageError{err}
	}
	if c.cfg, err = c.cmd.Resolve(model, gpu, f.gpus); err != nil {
		c.refused = err
		return c, notRefused(err)
	}
	c.replicas = c.cfg.Replicas(f.gpus)
	if flags := c.cmd.Unmodelled(); len(flags) > 0 {
		c.notes = append(c.notes, "Not simulated, figures are as without: "+strings.Join(flags, " "))
	}
	for _, remark := range c.cfg.Remarks() {
		c.notes = append(c.notes, "Note: "+remark)
	}
	return c, nil
}

// notRefused is an error that is no refusal of the engine's own.
func notRefused(err error) error {
	if _, ok := errors.AsType[*engine.Rejection](err); ok {
		return nil
	}
	if e, ok := errors.AsType[*engine.UsageError](err); ok && e.Exit != 0 {
		return nil
	}
	return usageError{err}
}

// why is a refusal in one sentence.
func (c *configuration) why() string {
	if c.refused == nil {
		return ""
	}
	text, _, _ := strings.Cut(strings.TrimSpace(c.refused.Error()), "\n")
	return text
}

// shown is the command to copy, without secrets.
func (c *configuration) shown() string {
	if c.cmd.Engine == "" {
		return deploy.RedactText(c.line)
	}
	if text := deploy.RedactCommand(c.cmd).String(); text != "" {
		return text
	}
	return deploy.RedactText(c.line)
}

// facets are what configurations may differ in, in the order of labels.
func (c *configuration) facets() (names []string, values map[string]string) {
	values = map[string]string{"gpu": c.gpu.Name, "engine": c.cmd.Engine, "model": path.Base(c.cmd.Model)}
	names = []string{"gpu", "engine", "model"}
	if e, err := engine.ByName(c.cmd.Engine); err == nil {
		values["engine"] = e.Title
		for i := range e.Params {
			names = append(names, e.Params[i].Name)
			values[e.Params[i].Name] = c.cmd.Params[e.Params[i].Name]
		}
	}
	for name, v := range c.grid {
		values[name] = cmp.Or(v, "default")
	}
	bare := deploy.RedactCommand(engine.Command{Engine: c.cmd.Engine, Extra: c.cmd.Extra, File: c.cmd.File})
	words := bare.Extra
	for _, f := range bare.Files() {
		words = append(words, strings.Fields(f.Text)...)
	}
	values["flags"] = strings.Join(words, " ")
	return append(names, "flags"), values
}

// labels name each configuration by what it does not share with all others.
func labels(configs []configuration) []string {
	differ := map[string]bool{}
	_, first := configs[0].facets()
	for i := range configs {
		_, v := configs[i].facets()
		for name := range v {
			differ[name] = differ[name] || v[name] != first[name]
		}
		for name := range first {
			differ[name] = differ[name] || v[name] != first[name]
		}
	}
	out := make([]string, len(configs))
	for i := range configs {
		names, v := configs[i].facets()
		var parts []string
		for _, name := range names {
			switch {
			case !differ[name] || v[name] == "":
			case name == "gpu" || name == "engine" || name == "model" || name == "flags":
				parts = append(parts, v[name])
			default:
				parts = append(parts, name+"="+v[name])
			}
		}
		if out[i] = strings.Join(parts, " "); out[i] == "" {
			out[i] = map[bool]string{true: cmp.Or(v["model"], configs[i].line), false: "as given"}[len(configs) == 1]
		}
	}
	return out
}

// predictLoad is one load of the axis.
type predictLoad struct {
	name  string
	spec  workload.Spec
	line  string // the workload in a few words
	calib calib.Load
}

// loads are those of every rate and concurrency.
func (f *predictFlags) loads(fs *pflag.FlagSet) ([]predictLoad, error) {
	rates, err := loadList("--request-rate", lab.AxisRate, f.rates)
	if err != nil {
		return nil, err
	}
	limits, err := loadList("--max-concurrency", lab.AxisConcurrency, f.concurrency)
	if err != nil {
		return nil, err
	}
	var out []predictLoad
	for _, rate := range rates {
		for _, limit := range limits {
			l := predictLoad{spec: f.spec}
			if l.spec.MaxConcurrency, err = strconv.Atoi(limit); err != nil || l.spec.MaxConcurrency < 0 {
				return nil, fmt.Errorf("--max-concurrency has %q: write whole numbers", limit)
			}
			if err := fillWorkload(fs, &l.spec, rate); err != nil {
				return nil, err
			}
			if err := l.open(); err != nil {
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
	s, err := lab.ParseSweep(axis + "=" + text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	var out []string
	for _, v := range s.Values {
		out = append(out, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return out, nil
}

// mostTokens is how many output tokens a load may have in all: the figures need
// the instant of each, some 100 bytes.
const mostTokens = 20_000_000

// open reads the workload into what package calib replays. Made-up prompts that
// share nothing are lengths alone.
func (l *predictLoad) open() error {
	w, tok, err := lab.OpenPredicted(l.spec)
	if err != nil {
		return err
	}
	s, t := w.Spec(), w.Totals()
	if t.Output > mostTokens {
		return fmt.Errorf("%d requests have %d output tokens, and a prediction keeps the instant of each: %d are the limit, give fewer by --num-prompts (a steady load keeps its figures)", t.Requests, t.Output, mostTokens)
	}
	alike := s.SharesPrefixes() || !slices.Contains([]string{"random", "azure", "burstgpt"}, s.Dataset)
	c := calib.Load{Requests: w.Len(), Rate: w.Offered(), Arrival: s.Arrival, Concurrency: s.MaxConcurrency}
	c.Shuffle = s.Arrival != "trace" && !s.DisableShuffle
	for r := range w.All() {
		tokens, err := promptTokens(r, tok)
		if err != nil {
			return err
		}
		x := calib.Request{Due: r.Due, Input: len(tokens), Output: r.Output}
		if alike {
			x.Prompt = tokens
		}
		c.Exact = append(c.Exact, x)
	}
	l.calib, l.spec = c, s
	n := max(1, t.Requests)
	l.line = fmt.Sprintf("%s, %d requests, %d tokens in and %d out on average", s.Dataset, t.Requests, t.Input/n, t.Output/n)
	l.name = "burst"
	if c.Rate > 0 {
		l.name = fmt.Sprintf("%.4g/s", c.Rate)
	}
	if s.MaxConcurrency > 0 {
		l.name = strings.TrimPrefix(l.name+", "+fmt.Sprintf("%d at once", s.MaxConcurrency), "burst, ")
	}
	return nil
}
