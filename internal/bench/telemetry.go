package bench

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

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
func (b Runner) sources(clients []*openai.Client) []telemetry.Source {
	var out []telemetry.Source
	if b.Spec.Telemetry > 0 {
		for i, c := range clients {
			out = append(out, telemetry.Engine(i, b.Spec.Telemetry, func(ctx context.Context) (string, error) { return c.Metrics(ctx) }))
		}
	}
	return append(out, b.Sources...)
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
