package bench

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"perflab/internal/field"
	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// home is the place among a share's senders of the target whose cache was filled for a session
// that begins in the middle; -1: any will do.
func (b Runner) home(w share, first workload.Request) int {
	if s := w.Spec(); s.StartRatio == "" || first.Session > s.MaxConcurrency {
		return -1
	}
	n := len(b.Spec.Targets)
	place := (homeTarget(first, n) - w.i) % n // see Shard.senders
	return (place + n) % n
}

// homeTarget is the target of a session that begins in the middle, of n.
func homeTarget(r workload.Request, n int) int { return (r.Session - 1) % n }

// fillSessions sends what sessions that begin in the middle would have sent before, for one token
// each, to the server that each will go on with, and throws the answers away.
func (b Runner) fillSessions(ctx context.Context, clients []*openai.Client, w *workload.Workload, m *cacheMonitor) (note string, err error) {
	if w.Spec().StartRatio == "" {
		return "", nil
	}
	b.phase(PhaseFilling)
	sessions := map[int]bool{}
	begun := func(i int) iter.Seq[workload.Request] { return at(w.Fills(), i, len(clients)) }
	sent, failed, err := fill(ctx, clients, load.Options{Next: w.NextFill}, begun, func(i int, c result.Call) {
		sessions[c.Session] = true
		m.filled(i, c)
	})
	if err != nil {
		return "", err
	}
	if sent > 0 && failed == sent {
		return "", field.Errorf("start_ratio", "all %d requests that should have filled the prefix cache for sessions in their middle failed", failed)
	}
	note = fmt.Sprintf("before the run %d requests filled the prefix cache for %d sessions that begin in the middle", sent, len(sessions))
	if failed > 0 {
		note += fmt.Sprintf("; %d of them failed, and what these sessions sent behind them is missing too", failed)
	}
	return note, nil
}

// at are those requests whose session begins at target i of n.
func at(requests iter.Seq[workload.Request], i, n int) iter.Seq[workload.Request] {
	return func(yield func(workload.Request) bool) {
		for r := range requests {
			if homeTarget(r, n) == i && !yield(r) {
				return
			}
		}
	}
}

// sessionRun is what the sessions of a run have in common in their header: another one where the
// prompts are others.
func sessionRun(s workload.Spec) string {
	return strings.TrimSuffix("perflab-"+strconv.FormatUint(s.Seed, 16)+"-"+s.Nonce, "-")
}

// joined are sentences of which some may be empty.
func joined(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "; ")
}
