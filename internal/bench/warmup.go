package bench

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// warmUp sends requests whose prompts are never in the measured set, so that
// the first measured ones meet neither cold kernels nor cold connections, and
// throws the answers away. All of them failing is the user's first sign of a
// wrong endpoint, so it ends the run.
func (b Runner) warmUp(ctx context.Context, clients []*openai.Client, measured *workload.Workload) error {
	if b.Spec.Warmups == 0 {
		return nil
	}
	b.phase(PhaseWarmUp)
	w, err := workload.Open(workload.Spec{
		NumPrompts: b.Spec.Warmups * len(clients), Seed: b.Spec.Workload.Seed ^ warmupSeed,
		RandomInputLen: 64, RandomOutputLen: 8, MaxConcurrency: b.Spec.Warmups,
		LoraModules: b.Spec.Workload.LoraModules, LoraAssignment: warmupAssignment(b.Spec.Workload),
	}.Defaults())
	if err != nil {
		return err
	}
	var failed []result.Call
	n := 0
	_, err = load.Run(ctx, withMeasuredAttributes(w.All(), measured), Senders(clients), load.Options{MaxConcurrency: w.Spec().MaxConcurrency}, func(c result.Call) {
		n++
		if c.Class != result.OK {
			failed = append(failed, c)
		}
	})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if n > 0 && len(failed) == n {
		return &WarmupError{N: n, First: failed[0]}
	}
	return nil
}

// warmupSeed keeps the warm-up's prompts apart from those of any usual seed.
const warmupSeed = 0x77_61_72_6d_75_70

// WarmupError says that no warm-up request was answered: nothing is measured.
type WarmupError struct {
	N     int
	First result.Call
}

func (e *WarmupError) Error() string {
	return fmt.Sprintf("all %d warm-up requests failed (%s): %s", e.N, e.First.Class, e.First.Error)
}

// warmupAssignment lets a warm-up reach every adapter.
func warmupAssignment(s workload.Spec) string {
	if len(s.LoraModules) == 0 {
		return ""
	}
	return "round-robin"
}

// withMeasuredAttributes gives warm-up prompts what the measured requests carry beside their
// text and a server cannot answer without or warms up by: documents, a LoRA
// adapter's name, tools. Images are left out: those of the set would be found
// in the server's cache afterwards.
func withMeasuredAttributes(warm iter.Seq[workload.Request], measured *workload.Workload) iter.Seq[workload.Request] {
	return func(yield func(workload.Request) bool) {
		next, stop := iter.Pull(measured.All())
		defer stop()
		var m workload.Request
		for r := range warm {
			if like, ok := next(); ok {
				m = like
			}
			r.Model, r.Fields = cmp.Or(r.Model, m.Model), m.Fields
			for i := range m.Documents {
				r.Documents = append(r.Documents, fmt.Sprintf("%s %d", r.Prompt, i))
			}
			if !yield(r) {
				return
			}
		}
	}
}
