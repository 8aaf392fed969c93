package lab

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"perflab/internal/arch"
	"perflab/internal/deploy"
)

// attached reports whether the study measures what is up already: then nothing can be
// refused, configured or launched again.
func (s *Study) attached() bool {
	return s.Runtime.Kind == Existing && s.Runtime.Hooks.Start == ""
}

// copies is how many replicas of a plan serve.
func (l *study) copies(pl plan) int {
	if l.Runtime.Kind == Existing {
		return len(l.Runtime.URLs)
	}
	return pl.replicas
}

// runtime is how the study starts an engine.
func (l *study) runtime(engine string) (deploy.Runtime, error) {
	r := l.Runtime
	switch r.Kind {
	case Existing:
		return deploy.Existing{URLs: r.URLs, Hooks: deploy.Hooks(r.Hooks)}, nil
	case Process, Simulated, Predicted:
		return deploy.Process{Dir: r.Dir, Limits: r.Limits}, nil
	}
	return nil, fmt.Errorf("runtime kind %q is not known", r.Kind)
}

// deployment says what to start for a plan.
func (l *study) deployment(pl plan, dir string) (deploy.Spec, error) {
	spec := deploy.Spec{
		Name: pl.cmd.Engine, Dir: filepath.Join(dir, "logs"), Health: pl.engine.Health,
		Diagnose: pl.engine.Diagnose, Timeout: time.Duration(l.Runtime.ReadyS * float64(time.Second)), Visible: l.visible(),
	}
	argv := pl.cmd.ArgvPort("{host}", "{port}")
	if l.Runtime.Kind == Simulated {
		if l.Self == "" {
			return spec, errors.New("start a simulated engine: the path of this program is unknown")
		}
		argv = append(l.simulator(pl), argv...)
	}
	for i := range l.copies(pl) {
		m := deploy.Member{Argv: argv, Env: slices.Clone(pl.cmd.Env)}
		for _, file := range pl.cmd.Files() {
			m.Files = append(m.Files, deploy.File(file))
		}
		if spec.Visible != "" {
			m.Devices = devices(i*pl.cfg.GPUs, pl.cfg.GPUs)
		}
		spec.Replicas = append(spec.Replicas, deploy.Replica{Member: m})
	}
	return spec, nil
}

// visible is the environment variable by which the study's accelerators are dealt out,
// "" where there are none to deal.
func (l *study) visible() string {
	gpu, err := arch.LookupAccelerator(l.Hardware.GPU)
	if err != nil {
		return "" // checked when the study was parsed
	}
	return visibleEnv[gpu.Platform]
}

var visibleEnv = map[arch.Platform]string{arch.CUDA: "CUDA_VISIBLE_DEVICES", arch.ROCm: "HIP_VISIBLE_DEVICES", arch.NPU: "ASCEND_RT_VISIBLE_DEVICES"}

// simulator is the command that stands in for the hardware of one replica.
func (l *study) simulator(pl plan) []string {
	argv := []string{l.Self, "sim", "--gpu", l.Hardware.GPU, "--gpus", strconv.Itoa(pl.cfg.GPUs)}
	if l.Runtime.StartupS > 0 {
		argv = append(argv, "--startup", time.Duration(l.Runtime.StartupS*float64(time.Second)).String())
	}
	if path, ok := l.ModelConfig[pl.cmd.Model]; ok {
		argv = append(argv, "--model-config", path)
	}
	return append(argv, "--")
}

func devices(first, n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = first + i
	}
	return ids
}
