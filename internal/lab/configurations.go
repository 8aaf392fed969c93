package lab

import (
	"errors"
	"fmt"

	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/tune"
)

// Configuration is one that a study tries, made concrete without starting anything.
type Configuration struct {
	Stage    string // "" of the baseline and of a survey
	Label    string
	Command  engine.Command
	Config   engine.Config
	Replicas int               // that fill the hardware
	Bench    string            // the perflab bench command of the primary workload
	Refused  *engine.Rejection // why the engine would not start; Config and Replicas are then empty
}

// Configurations are the baseline of a study and each candidate on top of it, or the
// candidates of a survey. What a search carries forward is known only when it runs.
func (s *Study) Configurations() ([]Configuration, error) {
	l := &study{Study: s}
	if s.Strategy == Survey {
		var out []Configuration
		for _, k := range s.Survey {
			c, err := l.configuration("", k.Label, s.whole(k))
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
		return out, nil
	}
	base := s.whole(*s.Baseline)
	first, err := l.configuration("", s.Baseline.Label, base)
	if err != nil {
		return nil, err
	}
	out := []Configuration{first}
	for _, stage := range s.Stages {
		for _, k := range stage.Try {
			c, err := l.configuration(stage.Name, k.Label, s.change(k).Apply(base))
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

func (l *study) configuration(stage, label string, values tune.Config) (Configuration, error) {
	c := Configuration{Stage: stage, Label: label}
	p, err := l.plan(values)
	c.Command, c.Config, c.Replicas = p.cmd, p.cfg, p.replicas
	if r, ok := errors.AsType[*engine.Rejection](err); ok {
		c.Refused = r
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("configuration %s: %w", label, err)
	}
	c.Bench = bench.Command(p.cfg.ServedName, l.Bench.Backend, l.Bench.Cache, l.workload(l.Workloads[0].Name, 0))
	return c, nil
}
