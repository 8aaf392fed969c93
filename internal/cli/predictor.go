package cli

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"perflab/internal/calib"
	"perflab/internal/lab"
	"perflab/internal/result"
	"perflab/internal/sim"
	"perflab/internal/token"
	"perflab/internal/workload"
)

// predictor gives lab the simulator's replay: requests in, calls out, in
// virtual time.
type predictor struct{}

var _ lab.Predictor = predictor{}

// Predict replays a workload on a configuration.
func (predictor) Predict(ctx context.Context, p lab.Prediction) iter.Seq2[result.Call, error] {
	return func(yield func(result.Call, error) bool) {
		var unread error
		var end time.Duration
		o := sim.ReplayOptions{MaxConcurrency: p.Workload.Spec().MaxConcurrency, Seed: p.Seed}
		if p.Engine != nil {
			all := make([]sim.Stats, 0, p.Replicas)
			o.Stats = func(_ int, s sim.Stats) {
				if all = append(all, s); len(all) == p.Replicas {
					p.Engine(occupancy(all, end))
				}
			}
		}
		calls, err := calib.Calls(p.Config, p.Replicas, jobs(p, &unread), o)
		if err != nil {
			yield(result.Call{}, err)
			return
		}
		for c := range calls {
			end = max(end, c.End)
			if err := cmp.Or(unread, context.Cause(ctx)); err != nil {
				yield(result.Call{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
		if unread != nil {
			yield(result.Call{}, unread)
		}
	}
}

// occupancy is what engines' own metrics would have told of a replay that took
// so long, under the names of the figures that telemetry has.
func occupancy(replicas []sim.Stats, took time.Duration) map[string]float64 {
	f := map[string]float64{}
	if took <= 0 {
		return f
	}
	for _, s := range replicas {
		f["mean_running_requests"] += s.RunningTime.Seconds() / took.Seconds()
		f["mean_waiting_requests"] += s.WaitingTime.Seconds() / took.Seconds()
		f["max_running_requests"] += float64(s.PeakRunning)
		f["max_waiting_requests"] += float64(s.PeakWaiting)
		f["mean_kv_usage"] += s.KVTime.Seconds() / took.Seconds() / float64(len(replicas))
		f["max_kv_usage"] = max(f["max_kv_usage"], s.PeakKV)
		f["preemptions"] += float64(s.Preemptions)
	}
	return f
}

// jobs turns requests into the simulator's jobs. It ends at the first prompt
// that cannot be read, and says why.
func jobs(p lab.Prediction, unread *error) iter.Seq[sim.Job] {
	return func(yield func(sim.Job) bool) {
		for r := range p.Workload.All() {
			j := sim.Job{Index: r.Index, Arrive: r.Due, Output: r.Output}
			if j.Prompt, *unread = promptTokens(r, p.Tokenizer); *unread != nil {
				return
			}
			if !yield(j) {
				return
			}
		}
	}
}

// promptTokens are the tokens of all that a request sends, by the workload's
// own tokenizer where it has one.
func promptTokens(r workload.Request, tok workload.Tokenizer) ([]uint32, error) {
	var out []uint32
	for _, id := range r.IDs {
		out = append(out, uint32(id))
	}
	if out != nil {
		return out, nil
	}
	texts := []string{r.System}
	for _, m := range r.History {
		texts = append(texts, m.Content)
	}
	for _, text := range append(texts, r.Prompt) {
		if tok == nil {
			out = token.Append(out, text)
			continue
		}
		ids, err := tok.Encode(text, false)
		if err != nil {
			return nil, fmt.Errorf("count the tokens of request %d: %w", r.Index, err)
		}
		for _, id := range ids {
			out = append(out, uint32(id))
		}
	}
	return out, nil
}
