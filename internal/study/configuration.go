package study

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/tune"
)

// Configuration is a configuration made concrete: the command, what it resolves
// to, and how many replicas of it fill the hardware.
type Configuration struct {
	Command  engine.Command
	Config   engine.Config
	Engine   *engine.Engine
	Replicas int
}

// Installed is what an engine says of itself where it would run; the zero value
// is one that was not asked.
type Installed struct {
	Version string      // "" where it does not tell
	Help    engine.Help // without an engine where its flags are not known
}

// Configure builds the command of a configuration and checks it against the
// engine's rules. An *engine.Rejection is a finding, not a failure.
func (s *Study) Configure(c tune.Config, in Installed) (Configuration, error) {
	var k Configuration
	use := s.Engines[c["engine"]]
	params := maps.Clone(c)
	delete(params, "engine")
	delete(params, "model")
	var err error
	if k.Engine, err = engine.ByName(c["engine"]); err != nil {
		return k, err
	}
	if k.Command, err = use.command(c["engine"], c["model"], params); err != nil {
		return k, err
	}
	k.Command.Version = cmp.Or(in.Version, use.Version)
	if in.Help.Engine != "" {
		k.Command.Help = &in.Help
	}
	var model arch.Model
	if !k.Engine.MeasuredOnly {
		if model, err = s.model(c["model"]); err != nil {
			return k, err
		}
	}
	resolve := k.Command.Outline
	if s.Runtime.Modelled() {
		resolve = k.Command.Resolve
	}
	k.Config, err = resolve(model, s.Accelerator, s.Hardware.GPUs)
	if err != nil {
		return k, err
	}
	k.Replicas = k.Config.Replicas(s.Hardware.GPUs)
	return k, nil
}

// command is the command of a configuration: its parameters over those of the study,
// those over what the study puts into the engine's configuration file.
func (use EngineUse) command(name, model string, params map[string]string) (engine.Command, error) {
	base, err := engine.Command{Engine: name, Model: model}.WithFile(use.File)
	if err != nil {
		return engine.Command{}, err
	}
	all := maps.Clone(base.Params)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, use.Set)
	maps.Copy(all, params)
	cmd, err := engine.NewOpen(name, model, all, use.Flags)
	if err != nil {
		return engine.Command{}, err
	}
	if base.File != nil && cmd.FilePath != "" {
		return engine.Command{}, fmt.Errorf("the flags name a configuration file, %s, beside the content of file: keep one of them", cmd.FilePath)
	}
	cmd.File, cmd.Env, cmd.Version = base.File, use.Env, use.Version
	if cmd.Pools().Split() {
		cmd.Prefill = engine.PoolUse{Params: use.Prefill.Set, Extra: use.Prefill.Flags}
		cmd.Decode = engine.PoolUse{Params: use.Decode.Set, Extra: use.Decode.Flags}
		cmd.Router = use.Router
	}
	return cmd, nil
}

// Listed is a configuration that a study names.
type Listed struct {
	Configuration        // of one that is refused as far as it goes
	Stage         string // "" of the baseline and of a survey
	Label         string
	Bench         string            // the perflab bench command of the primary workload
	Refused       *engine.Rejection // why the engine would not start
}

// Configurations are the baseline of a study and each candidate on top of it, or the
// candidates of a survey. What a search carries forward is known only when it runs.
func (s *Study) Configurations() (out []Listed, err error) {
	add := func(stage, label string, c tune.Config) {
		if err == nil {
			var l Listed
			l, err = s.list(stage, label, c)
			out = append(out, l)
		}
	}
	for _, k := range s.Survey {
		add("", k.Label, s.fullConfig(k))
	}
	if s.Strategy != Survey {
		base := s.fullConfig(*s.Baseline)
		add("", s.Baseline.Label, base)
		for _, stage := range s.Stages {
			for _, k := range stage.Try {
				add(stage.Name, k.Label, s.change(k).Apply(base))
			}
		}
	}
	return out, err
}

func (s *Study) list(stage, label string, c tune.Config) (Listed, error) {
	l := Listed{Stage: stage, Label: label}
	k, err := s.Configure(c, Installed{})
	l.Configuration = k
	if r, ok := errors.AsType[*engine.Rejection](err); ok {
		l.Refused = r
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("configuration %s: %w", label, err)
	}
	l.Bench = bench.Command(k.Config.ServedName, s.Bench.Backend, s.Bench.Cache, s.WorkloadSpec(s.Workloads[0].Name, 0))
	return l, nil
}
