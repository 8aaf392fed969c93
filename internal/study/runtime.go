package study

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/engine"
	"perflab/internal/redact"
)

// Attached reports whether the study measures what is up already: then nothing can be
// refused, configured or launched again.
func (f *File) Attached() bool {
	return f.Runtime.Kind == Existing && f.Runtime.Hooks.Start == ""
}

// StartsEngines reports whether real engines are started.
func (r Runtime) StartsEngines() bool {
	return r.Kind != Simulated && r.Kind != Predicted && r.Kind != Existing
}

// Container is where an engine runs, of runtime kind docker.
func (f *File) Container(engineName string) docker.Settings {
	var c docker.Settings
	if f.Runtime.Docker != nil {
		c = *f.Runtime.Docker
	}
	c.Image = cmp.Or(f.Engines[engineName].Image, c.Image)
	return c
}

// Visible is the environment variable by which the study's accelerators are dealt out,
// "" where there are none to deal.
func (s *Study) Visible() string { return s.Accelerator.Platform.Visible() }

// OnCPU reports whether the engines have no accelerator.
func (f *File) OnCPU() bool {
	gpu, err := arch.LookupAccelerator(f.Hardware.GPU)
	return err == nil && gpu.Platform == arch.CPU
}

// AllocatedGPUs is how many GPUs every trial has, 0 on CPUs.
func (f *File) AllocatedGPUs() int {
	if f.OnCPU() {
		return 0
	}
	return f.Hardware.GPUs
}

// TelemetryInterval is the one that a study asks for; 0: none.
func (c Client) TelemetryInterval() time.Duration {
	if c.TelemetryS == nil {
		return bench.DefaultTelemetry
	}
	return time.Duration(*c.TelemetryS * float64(time.Second))
}

// HasSecret reports whether the study file itself holds a secret.
func (f *File) HasSecret() bool {
	for _, use := range f.Engines {
		flags, env := redact.Argv(use.Flags), redact.Env(use.Env)
		file := deploy.RedactCommand(engine.Command{File: use.File}).File
		if !slices.Equal(flags, use.Flags) || !slices.Equal(env, use.Env) || !reflect.DeepEqual(file, use.File) {
			return true
		}
	}
	return false
}
