package lab

import (
	"context"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/telemetry"
)

// DefaultTelemetry is how often the engines' metrics are read. MinTelemetry is the
// least: a page costs an engine's front end some milliseconds.
const (
	DefaultTelemetry = time.Second
	MinTelemetry     = 100 * time.Millisecond
)

// sources are what is read during a run: every target's metrics, and what the
// caller added.
func (b Bench) sources(clients []*openai.Client) []telemetry.Source {
	var out []telemetry.Source
	if b.Spec.Telemetry > 0 {
		for i, c := range clients {
			out = append(out, telemetry.Engine(i, b.Spec.Telemetry, func(ctx context.Context) (string, error) { return c.Metrics(ctx) }))
		}
	}
	return append(out, b.Sources...)
}

// telemetry is the interval that a study asks for; 0: none.
func (c Client) telemetry() time.Duration {
	if c.TelemetryS == nil {
		return DefaultTelemetry
	}
	return time.Duration(*c.TelemetryS * float64(time.Second))
}

// sources are what a study reads beside the engines' metrics: the machines that the
// deployment runs commands on, else this one where the engines are on it.
func (l *study) sources(d deploy.Deployment, every time.Duration) []telemetry.Source {
	local := slices.ContainsFunc(d.Targets(), OnThisMachine)
	switch c, ok := d.(deploy.Commander); {
	case every == 0:
		return nil
	case l.Runtime.Kind == Simulated:
		return []telemetry.Source{telemetry.Host(every)}
	case ok:
		return nodeSources(c, every, local)
	case local:
		return telemetry.Local(every, nil)
	}
	return nil
}

// nodeSources are the machines of a deployment, a CPU on this one read directly.
func nodeSources(c deploy.Commander, every time.Duration, local bool) []telemetry.Source {
	var out []telemetry.Source
	for _, node := range c.Nodes() {
		run := func(ctx context.Context, argv []string, stdout io.Writer) error {
			return c.Command(ctx, node, argv, stdout)
		}
		if node == "" && local {
			out = append(out, telemetry.Host(every), telemetry.GPU("", min(every, telemetry.GPUInterval), nil, run))
			continue
		}
		out = append(out, telemetry.On(node, every, nil, run)...)
	}
	return out
}

// believable leaves out what readings of this machine's GPUs would say of a
// simulated engine.
func believable(readings []result.Reading, simulated bool) []result.Reading {
	return slices.DeleteFunc(readings, func(r result.Reading) bool { return simulated && r.Source == result.SourceGPU })
}

// OnThisMachine reports whether a base URL is of a server on this machine, as far
// as its address tells: a tunnel looks like one.
func OnThisMachine(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}
