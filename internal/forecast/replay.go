package forecast

import (
	"cmp"
	"context"
	"iter"
	"time"

	"perflab/internal/calib"
	"perflab/internal/engine"
	"perflab/internal/outline"
	"perflab/internal/result"
	"perflab/internal/sim"
	"perflab/internal/workload"
)

// Run is one run to make in virtual time.
type Run struct {
	Config   engine.Config
	Replicas int
	Workload *workload.Workload
	Seed     uint64

	Tokenizer workload.Tokenizer // by which the workload's lengths are measured; nil: package token's approximation

	// Engine is told at the end what the engine's own metrics would show of the
	// run, under the names of a summary's figures; nil: nobody asks.
	Engine func(figures map[string]float64)
}

// Calls replays the run and gives the calls that a client would have seen at a site, in the
// order in which they end; nil stands for no site that is known.
func (r Run) Calls(ctx context.Context, at *Site) iter.Seq2[result.Call, error] {
	return func(yield func(result.Call, error) bool) {
		var end time.Duration
		pass := outline.New(r.Workload, r.Tokenizer)
		o := pass.Options(sim.ReplayOptions{Seed: r.Seed, Constants: at.values()}, r.Replicas)
		if r.Engine != nil {
			all := make([]sim.Stats, 0, r.Replicas)
			o.Stats = func(_ int, s sim.Stats) {
				if all = append(all, s); len(all) == r.Replicas {
					r.Engine(engineFigures(all, end))
				}
			}
		}
		calls, err := calib.Calls(r.Config, r.Replicas, pass.Jobs(), o)
		if err != nil {
			yield(result.Call{}, err)
			return
		}
		for c := range calls {
			end = max(end, c.End)
			if err := cmp.Or(pass.Err(), context.Cause(ctx)); err != nil {
				yield(result.Call{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
		if err := pass.Err(); err != nil {
			yield(result.Call{}, err)
		}
	}
}

// engineFigures are what the engines' own metrics would have shown of a replay
// that took so long, under the names of the figures that telemetry has.
func engineFigures(replicas []sim.Stats, took time.Duration) map[string]float64 {
	f := map[string]float64{}
	if took <= 0 {
		return f
	}
	for _, s := range replicas {
		engines := 1
		if p := s.Pools; p != nil { // figures are those of decode engines, peaks of the fullest
			f["mean_prefill_running_requests"] += p.Prefill.RunningTime.Seconds() / took.Seconds()
			f["mean_prefill_waiting_requests"] += p.Prefill.WaitingTime.Seconds() / took.Seconds()
			f["max_prefill_kv_usage"] = max(f["max_prefill_kv_usage"], p.Prefill.PeakKV)
			s, engines = p.Decode, p.Decodes
		}
		f["mean_running_requests"] += s.RunningTime.Seconds() / took.Seconds()
		f["mean_waiting_requests"] += s.WaitingTime.Seconds() / took.Seconds()
		f["max_running_requests"] += float64(s.PeakRunning * engines)
		f["max_waiting_requests"] += float64(s.PeakWaiting * engines)
		f["mean_kv_usage"] += s.KVTime.Seconds() / took.Seconds() / float64(len(replicas)*engines)
		f["max_kv_usage"] = max(f["max_kv_usage"], s.PeakKV)
		f["preemptions"] += float64(s.Preemptions)
	}
	return f
}
