package measure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"perflab/internal/bench"
	"perflab/internal/gauge"
	"perflab/internal/hardware"
	"perflab/internal/telemetry"
)

// Values of --telemetry besides a list of sources.
const (
	telemetryAuto = "auto"
	telemetryOff  = "off"
)

func (f *benchFlags) addTelemetry(fs *pflag.FlagSet) {
	fs.StringVar(&f.telemetry, "telemetry", telemetryAuto, "what is read during the run: engine (the server's metrics), host (this machine's CPU and memory), gpu (by nvidia-smi on this machine), several by commas; auto: engine, and the others where the server is on this machine; off: nothing")
	fs.DurationVar(&f.interval, "telemetry-interval", bench.DefaultTelemetry, "time between readings")
	fs.StringSliceVar(&f.gpus, "telemetry-gpus", nil, "GPUs that serve, by their index or UUID, as nvidia-smi has them; without it all of the machine are read and count in energy")
	fs.StringVar(&f.price, "price-per-hour", "", "what the whole deployment costs an hour, such as '98.32 USD': gives the cost of a million tokens")
	fs.IntVar(&f.spec.GPUs, "gpus", 0, "GPUs that the whole deployment has: gives throughput per GPU")
}

func (f *benchFlags) completeTelemetry(fs *pflag.FlagSet) error {
	if err := f.spec.Price.UnmarshalText([]byte(f.price)); err != nil {
		return fmt.Errorf("--price-per-hour: %w", err)
	}
	if f.interval < bench.MinTelemetry {
		return fmt.Errorf("--telemetry-interval is %v: it must be at least %v, since each reading costs the server work; --telemetry off reads nothing", f.interval, bench.MinTelemetry)
	}
	if err := hardware.Devices(f.gpus).Validate(); err != nil {
		return fmt.Errorf("--telemetry-gpus: %w", err)
	}
	switch f.telemetry {
	case telemetryAuto:
		f.spec.Telemetry = f.interval
		return nil
	case telemetryOff:
		for _, name := range []string{"telemetry-interval", "telemetry-gpus"} {
			if fs.Changed(name) {
				return fmt.Errorf("--%s does not apply with --telemetry off", name)
			}
		}
		return nil
	}
	for name := range strings.SplitSeq(f.telemetry, ",") {
		if !gauge.IsSource(name) {
			return fmt.Errorf("--telemetry has %q: it is auto, off, or of engine, gpu and host what is to be read", name)
		}
		if name == gauge.SourceEngine {
			f.spec.Telemetry = f.interval
		}
	}
	return nil
}

// sources are what is read of this machine.
func (f *benchFlags) sources() []telemetry.Source {
	every := f.interval
	switch f.telemetry {
	case telemetryOff:
		return nil
	case telemetryAuto:
		if !f.kube.given() && slices.ContainsFunc(f.spec.Targets, bench.OnThisMachine) {
			return telemetry.Local(every, f.gpus)
		}
		return nil
	}
	var out []telemetry.Source
	for name := range strings.SplitSeq(f.telemetry, ",") {
		switch name {
		case gauge.SourceHost:
			out = append(out, telemetry.Host(every))
		case gauge.SourceGPU:
			out = append(out, telemetry.GPU("", min(every, telemetry.GPUInterval), f.gpus, telemetry.LocalCommand))
		}
	}
	return out
}
