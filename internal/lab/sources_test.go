package lab

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/price"
	"perflab/internal/study"
	"perflab/internal/telemetry"
)

func TestStudyTelemetry(t *testing.T) {
	text := strings.NewReplacer("gpus: 2}", "gpus: 2, price_per_hour: 98.32 USD}", "runtime:", "bench: {telemetry_interval_s: 0.5}\nruntime:").Replace(good)
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := (price.Hourly{PerHour: 98.32, Currency: "USD"}); s.Hardware.Price != want || s.Bench.TelemetryInterval() != 500*time.Millisecond {
		t.Errorf("price %v, interval %v", s.Hardware.Price, s.Bench.TelemetryInterval())
	}
	s, err = study.Parse("t.yaml", []byte(strings.Replace(good, "gpus: 2}", "gpus: 2, price_per_hour: 7}", 1)))
	if err != nil || s.Hardware.Price.PerHour != 7 || s.Bench.TelemetryInterval() != bench.DefaultTelemetry {
		t.Errorf("%v, price %v, interval %v", err, s.Hardware.Price, s.Bench.TelemetryInterval())
	}
}

// twoNodes is a runtime of two machines, and its deployment.
type twoNodes struct {
	deploy.Runtime
	deploy.Deployment
	asked chan string
}

func (twoNodes) Targets() []string { return []string{"http://127.0.0.1:1"} }
func (twoNodes) Nodes() []string   { return []string{"a", "b", "idle"} }

func (n twoNodes) Command(_ context.Context, node string, argv []string, stdout io.Writer) error {
	n.asked <- node + " " + argv[0]
	return errors.New("not here")
}

var _ deploy.Commander = twoNodes{}

// TestSourcesOfADeployment: machines that have a part in it are asked by the runtime's own commands.
func TestSourcesOfADeployment(t *testing.T) {
	d := twoNodes{asked: make(chan string, 8)} // more than are asked for
	gpu, err := arch.LookupAccelerator("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	l := &launch{Study: &study.Study{File: &study.File{Runtime: study.Runtime{Kind: study.SSH}}, Accelerator: gpu}}
	l.runtime, l.lookout, l.spec = d, d, deploy.Spec{Replicas: []deploy.Replica{{
		Member: deploy.Member{Node: "a", Devices: []string{"0", "1"}},
		Peers:  []deploy.Peer{{Member: deploy.Member{Node: "b", Devices: []string{"3"}}}},
	}}}
	rec := telemetry.Start(t.Context(), l.sources(d, time.Second)...)
	rec.Stop()
	close(d.asked)
	var asked []string
	for a := range d.asked {
		asked = append(asked, a)
	}
	slices.Sort(asked)
	if want := []string{"a nvidia-smi", "a sh", "b nvidia-smi", "b sh"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if got := l.sources(d, 0); got != nil {
		t.Errorf("%d sources of a study without telemetry", len(got))
	}
	l.Runtime.Kind = study.Simulated
	if got := l.sources(d, time.Second); len(got) != 1 {
		t.Errorf("%d sources of a simulated study, want this host", len(got))
	}
}
