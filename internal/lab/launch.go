package lab

import (
	"context"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
	"perflab/internal/gauge"
	"perflab/internal/study"
	"perflab/internal/telemetry"
)

// launch is a configuration's deployment at certain places, from before it is
// started until it is stopped.
type launch struct {
	*study.Study
	config  study.Configuration
	runtime deploy.Runtime
	lookout deploy.Commander // where the devices are seen; nil: nothing sees them
	spec    deploy.Spec
	places  [][]cluster.Node // of its replicas
}

// devices are the accelerators that the deployment was dealt on a machine, none where it
// has no part; nil: all.
func (l *launch) devices(node string) []string {
	out := []string{}
	for _, rep := range l.spec.Replicas {
		members := []deploy.Member{rep.Member}
		for _, p := range rep.Peers {
			members = append(members, p.Member)
		}
		for _, m := range members {
			switch {
			case m.Node != node:
			case m.Devices == nil:
				return nil
			default:
				out = append(out, m.Devices...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sources are what a study reads beside the engines' metrics: the machines that its
// runtime runs commands on, else this one where the engines are on it.
func (l *launch) sources(d deploy.Deployment, every time.Duration) []telemetry.Source {
	local := slices.ContainsFunc(d.Targets(), bench.OnThisMachine)
	if every == 0 {
		return nil
	}
	if l.Runtime.Service != "" { // whose machines are others, also where it is reached at an address of this one
		return nil
	}
	switch l.Runtime.Kind {
	case study.Simulated:
		return []telemetry.Source{telemetry.Host(every)}
	case study.SSH, study.Fleet:
		if l.lookout != nil {
			return l.nodeSources(l.lookout, every)
		}
		return nil
	case study.Docker:
		return l.containerSources(d, every, local)
	case study.Kubernetes: // whose nodes are others, also where pods answer at an address of this machine
		return l.containerSources(d, every, false)
	}
	switch {
	case !local:
		return nil
	case l.Visible() == "": // GPUs of this machine have no part in it
		return []telemetry.Source{telemetry.Host(every)}
	}
	return telemetry.Local(every, l.devices(""))
}

// meters are the engines whose metrics are read, where a router stands before them.
func meters(d deploy.Deployment) []bench.Meter {
	var out []bench.Meter
	n := map[string]int{}
	for _, e := range d.Engines() {
		source := gauge.SourceEngine
		if strings.HasPrefix(e.Name, engine.PrefillPool) {
			source = gauge.SourcePrefill
		}
		out = append(out, bench.Meter{Source: source, Index: n[source], URL: e.URL})
		n[source]++
	}
	return out
}

// nodeSources are the machines of a runtime that have a part in the deployment.
func (l *launch) nodeSources(c deploy.Commander, every time.Duration) []telemetry.Source {
	var out []telemetry.Source
	for _, node := range c.Nodes() {
		devices := l.devices(node)
		if devices != nil && len(devices) == 0 {
			continue
		}
		run := func(ctx context.Context, argv []string, stdout io.Writer) error {
			return c.Command(ctx, node, argv, stdout)
		}
		if l.Visible() == "" {
			out = append(out, telemetry.RemoteHost(node, every, run))
			continue
		}
		out = append(out, telemetry.On(node, every, devices, run)...)
	}
	return out
}

// containerSources are read on this machine where it is the containers' own and has
// nvidia-smi, else inside the container: there only the GPUs of one replica are seen, so that
// of several none are read.
func (l *launch) containerSources(d deploy.Deployment, every time.Duration, local bool) []telemetry.Source {
	gpus := l.Visible() != ""
	if local && !gpus {
		return []telemetry.Source{telemetry.Host(every)}
	}
	if _, err := exec.LookPath("nvidia-smi"); local && err == nil {
		return telemetry.Local(every, l.devices(""))
	}
	c, ok := d.(deploy.Commander)
	if !ok {
		return nil
	}
	run := func(ctx context.Context, argv []string, stdout io.Writer) error {
		return c.Command(ctx, "", argv, stdout)
	}
	if len(l.spec.Replicas) > 1 || !gpus {
		return []telemetry.Source{telemetry.RemoteHost("", every, run)}
	}
	return telemetry.On("", every, nil, run)
}
