package measure

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/profile"
	"perflab/internal/profile/mlperf"
)

// NamedProfile joins --profile and the name behind it into one word: the flag may stand alone, as that of vllm bench serve
// does, and a word behind such a flag is not taken for its value.
func NamedProfile(args []string) []string {
	i := slices.Index(args, "--profile")
	if len(args) == 0 || args[0] != "bench" || i < 0 || i+1 == len(args) || strings.HasPrefix(args[i+1], "-") {
		return args
	}
	return slices.Concat(args[:i], []string{"--profile=" + args[i+1]}, args[i+2:])
}

// profileFlags choose the rules of a benchmark, or the server's profiler.
type profileFlags struct {
	spec       *bench.Spec
	cMax, cMin int
}

func (f *profileFlags) add(fs *pflag.FlagSet, s *bench.Spec) {
	f.spec = s
	fs.Var(f, "profile", "with a name, the rules of a benchmark: "+strings.Join(profile.Names(), ", ")+" (docs/profiles.md); without one, have the server's profiler run during the load (vLLM with --profiler-config, SGLang)")
	fs.Lookup("profile").NoOptDefVal = "true"
	fs.IntVar(&f.cMax, "c-max", 0, "with --profile mlperf-endpoints: highest concurrency that the server is said to support, above 32; seven points are proposed up to it (--sweep concurrency=... names one's own)")
	fs.IntVar(&f.cMin, "c-min", mlperf.DefaultCMin, "with --c-max: lowest concurrency of the proposed points, from 1 to 32")
}

// Set is the flag's value.
func (f *profileFlags) Set(text string) error {
	if on, err := strconv.ParseBool(text); err == nil {
		f.spec.Profile = on
		return nil
	}
	f.spec.Rules = text
	return profile.Known(text)
}

// String is the value; "" for none.
func (f *profileFlags) String() string {
	switch {
	case f.spec == nil:
	case f.spec.Rules != "":
		return f.spec.Rules
	case f.spec.Profile:
		return "true"
	}
	return ""
}

// Type is how help texts name a value.
func (f *profileFlags) Type() string { return "name" }

// fill gives spec and series what the rules want.
func (f *profileFlags) fill(fs *pflag.FlagSet, series *seriesFlags) error {
	s := f.spec
	if !profile.IsMLPerf(s.Rules) && (fs.Changed("c-max") || fs.Changed("c-min")) {
		return errors.New("--c-max and --c-min need --profile mlperf-endpoints, whose curve they bound")
	}
	if s.Rules == "" {
		return nil
	}
	unfit := []string{"request-rate", "arrival", "steps", "ramp-up-strategy", "find-max", "repeat", "fleet"}
	if s.Rules == profile.AgentX {
		unfit = append(unfit, "sweep")
	}
	for _, name := range unfit {
		if fs.Changed(name) {
			return fmt.Errorf("--%s does not apply with --profile %s, whose rules say how the load is sent", name, s.Rules)
		}
	}
	*s = s.FillRules(func(key string) bool { return fs.Changed(strings.ReplaceAll(key, "_", "-")) })
	switch {
	case s.Rules == profile.AgentX && !fs.Changed("max-concurrency"):
		return errors.New("--profile agentx needs --max-concurrency: how many sessions are under way at once")
	case s.Rules == profile.AgentX:
		return nil
	}
	return f.propose(fs, series)
}

// propose has a curve measured at the concurrencies that the flags bound, where they name none.
func (f *profileFlags) propose(fs *pflag.FlagSet, series *seriesFlags) error {
	switch {
	case fs.Changed("sweep") && fs.Changed("c-min"):
		return errors.New("--c-min does not apply with --sweep, whose lowest concurrency it is")
	case fs.Changed("sweep") && !strings.HasPrefix(series.sweep, bench.AxisConcurrency+"="):
		return fmt.Errorf("--sweep %s does not apply with --profile %s: write --sweep concurrency= and the points", series.sweep, f.spec.Rules)
	case fs.Changed("sweep"):
		return nil
	case f.cMax == 0:
		return fmt.Errorf("--profile %s needs --c-max, the highest concurrency that the server is said to support, or --sweep concurrency=... with the points", f.spec.Rules)
	}
	list, err := mlperf.Propose(f.cMax, f.cMin)
	if err != nil {
		return fmt.Errorf("--c-max: %w", err)
	}
	series.sweep = bench.AxisConcurrency + "=" + strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ",")
	return nil
}

// announce says what the rules make of a series, and how many requests a pass over its dataset has.
func (f *profileFlags) announce(env console.Env, sweep bench.Sweep, timed bool) error {
	if !profile.IsMLPerf(f.spec.Rules) {
		return nil
	}
	w := &f.spec.Workload
	var err error
	if w.Pass, err = bench.PassOf(*w); err != nil {
		return err
	}
	var list []int
	for _, v := range sweep.Values {
		list = append(list, int(v))
	}
	if f.cMax == 0 {
		f.cMax = slices.Max(list)
	}
	each := time.Duration(0)
	if timed {
		each, _ = w.Duration.Duration() // Validate has seen the error
	}
	fmt.Fprintf(env.Stderr, "%s; a pass has %d requests\n", mlperf.RulesOf(f.spec.Rules).Announce(list, each), w.Pass)
	return nil
}
