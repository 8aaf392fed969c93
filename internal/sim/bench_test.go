package sim

import (
	"fmt"
	"math"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"perflab/internal/engine"
	"perflab/internal/stat"
)

func benchmarkReplay(b *testing.B, cfg engine.Config, jobs []Job, o ReplayOptions) {
	b.ReportAllocs()
	for b.Loop() {
		out, err := Replay(cfg, 1, slices.Values(jobs), o)
		if err != nil {
			b.Fatal(err)
		}
		for range out {
		}
	}
}

// lengthsOnly are jobs without the tokens of their prompts.
func lengthsOnly(jobs []Job) []Job {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		jobs[i].Prompt, jobs[i].PromptLen = nil, len(jobs[i].Prompt)
	}
	return jobs
}

// BenchmarkReplayShareGPT is the replay of 1,000 requests at once with the
// lengths of ShareGPT; it must take less than 150 ms of one core.
func BenchmarkReplayShareGPT(b *testing.B) {
	jobs := chat(1000)
	for _, name := range []string{"vllm", "sglang", "trtllm", "spec"} {
		cfg := engines()[name]
		b.Run(name+"/tokens", func(b *testing.B) { benchmarkReplay(b, cfg, jobs, ReplayOptions{KVTokens: 40_000}) })
		b.Run(name+"/lengths", func(b *testing.B) { benchmarkReplay(b, cfg, lengthsOnly(jobs), ReplayOptions{KVTokens: 40_000}) })
	}
}

// BenchmarkReplayLong is a hundred prompts that fill the cache a few at a time.
func BenchmarkReplayLong(b *testing.B) {
	benchmarkReplay(b, testConfig(), burst(100, 32000, 100), ReplayOptions{KVTokens: 300_000})
}

// BenchmarkReplayMillion replays open loops of more and more requests on four
// replicas, at a rate that they keep up with. The live heap must not grow with
// the trace.
func BenchmarkReplayMillion(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				live := uint64(0)
				out, err := Replay(testConfig(), 4, openLoop(n, 90), ReplayOptions{})
				if err != nil {
					b.Fatal(err)
				}
				sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
				for o := range out {
					if o.Index%1000 == 0 {
						metrics.Read(sample)
						live = max(live, sample[0].Value.Uint64())
					}
				}
				b.ReportMetric(float64(live)/(1<<20), "MiB-live")
			}
		})
	}
}

// openLoop draws n requests as they are asked for: log-normal lengths with the
// means of ShareGPT, Poisson arrivals at a rate per second.
func openLoop(n int, rate float64) func(yield func(Job) bool) {
	return func(yield func(Job) bool) {
		r, at := stat.Stream(1, "open loop"), 0.0
		length := func(mean, sigma float64, limit int) int {
			return min(limit, max(4, int(mean*math.Exp(sigma*r.NormFloat64()-sigma*sigma/2))))
		}
		for i := range n {
			at += r.ExpFloat64() / rate
			j := Job{Index: i, Arrive: time.Duration(at * 1e9), PromptLen: length(217, 1.2, 2048), Output: length(201, 0.9, 1000)}
			if !yield(j) {
				return
			}
		}
	}
}
