package deploy

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perflab/internal/engine/logs"
)

// queueing is this machine as one that lets a process begin after a wait.
type queueing struct {
	local
	wait   time.Duration
	waited *atomic.Int64
}

func (h queueing) Spawn(ctx context.Context, j Job) (Running, error) {
	began := time.Now()
	for time.Since(began) < h.wait {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
			h.waited.Store(int64(time.Since(began)))
		}
	}
	return h.local.Spawn(ctx, j)
}

func (h queueing) Waited() time.Duration { return time.Duration(h.waited.Load()) }

func shellSpec(t *testing.T, script string) Spec {
	t.Helper()
	return Spec{Name: "trial 3", Dir: t.TempDir(), Timeout: 200 * time.Millisecond, Replicas: []Replica{{Member: Member{Argv: []string{"/bin/sh", "-c", script, "{port}"}}}}}
}

// What a host waits for others is part of neither the start's time nor its silence.
func TestWaitedIsNoStart(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*Spec){
		"timeout": func(*Spec) {},
		"silence": func(s *Spec) { s.Timeout, s.Silence = time.Hour, 200*time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const wait = 600 * time.Millisecond
			h := queueing{wait: wait, waited: new(atomic.Int64)}
			s := shellSpec(t, "echo up; exec sleep 60")
			limit(&s)
			began := time.Now()
			_, err := Launcher{Host: h, Kind: "process", Bind: loopback, Grace: 100 * time.Millisecond}.Start(t.Context(), s)
			if late, ok := errors.AsType[*LateError](err); !ok || late.Limit != 200*time.Millisecond {
				t.Fatalf("start: %v, want a late one", err)
			}
			if took := time.Since(began); took < wait {
				t.Errorf("given up after %v, within the wait of %v", took, wait)
			}
		})
	}
}

// planned is this machine as a host that is told of all processes before the first.
type planned struct {
	local
	plans *[]Plan
	err   error
}

func (h planned) Plan(p Plan) error {
	*h.plans = append(*h.plans, p)
	return h.err
}

func TestPlan(t *testing.T) {
	t.Parallel()
	var plans []Plan
	h := planned{plans: &plans, err: errors.New("it cannot be")}
	s := shellSpec(t, "exec sleep 60")
	s.Replicas[0].Argv = append(s.Replicas[0].Argv, "{port:nccl}")
	s.Replicas = append(s.Replicas, s.Replicas[0])
	if _, err := (Launcher{Host: h, Kind: "process", Bind: loopback}).Start(t.Context(), s); !errors.Is(err, h.err) {
		t.Errorf("start: %v, want the plan's", err)
	}
	if len(plans) != 1 || plans[0].Op != "start trial 3" || !strings.HasPrefix(plans[0].Marker, markerKey+"=") || len(plans[0].Ports) != 2 {
		t.Fatalf("plans %+v", plans)
	}
	seen := map[int]bool{}
	for _, ports := range plans[0].Ports {
		for _, name := range []string{"", "nccl"} {
			if p := ports[name]; p == 0 || seen[p] {
				t.Errorf("port %q is %d of %v", name, p, plans[0].Ports)
			}
			seen[ports[name]] = true
		}
	}
}

// taken is this machine as one that takes processes away, or knows more of their end.
type taken struct {
	local
	end End
}

func (h taken) Spawn(ctx context.Context, j Job) (Running, error) {
	run, err := h.local.Spawn(ctx, j)
	return explained{run, h.end}, err
}

type explained struct {
	Running
	end End
}

func (e explained) Explain() End { return e.end }

// What ended a process from outside counts before what its log says of the consequences; what a host
// only advises does not.
func TestExplain(t *testing.T) {
	t.Parallel()
	const line = "ValueError: it was asked to end"
	s := shellSpec(t, "echo '"+line+"'; exit 1")
	s.Timeout = time.Minute
	s.Diagnose = func(log string) (logs.Failure, bool) {
		return logs.Failure{Class: "x", Line: line}, strings.Contains(log, line)
	}
	l := Launcher{Host: taken{end: End{Help: "use another node", Outside: true}}, Kind: "process", Bind: loopback}
	_, err := l.Start(t.Context(), s)
	if e, ok := errors.AsType[*InfraError](err); !ok || e.Hint() != "use another node" || !strings.Contains(e.Error(), "exit status 1") || len(e.Last) == 0 {
		t.Errorf("start: %T %v", err, err)
	}
	l.Host = taken{end: End{Help: "raise memory"}}
	if _, err := l.Start(t.Context(), s); !isRefused(err) {
		t.Errorf("start: %T %v, want the engine's reason", err, err)
	}
	s.Diagnose = nil
	_, err = l.Start(t.Context(), s)
	if e, ok := errors.AsType[*InfraError](err); !ok || e.Hint() != "raise memory" {
		t.Errorf("start: %v", err)
	}
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*RefusedError](err)
	return ok
}
