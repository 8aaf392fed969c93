package sim

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestLateServerEndsByItsCause: also a server that is behind its schedule
// returns why it was stopped.
func TestLateServerEndsByItsCause(t *testing.T) {
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, at := range []time.Duration{-time.Hour, time.Hour} {
		s := &Server{epoch: time.Now()}
		if _, err := s.waitUntil(ctx, at, nil); !errors.Is(err, why) {
			t.Errorf("waiting until %v ends with %v, want %v", at, err, why)
		}
	}
}

// TestRealTimeServerAgreesWithReplay: however late a loaded machine lets the
// server be, what it streams has the virtual times that the replay gives to the
// same arrivals, and nothing leaves early. How late it was is what it says
// itself: a bound on that would test the machine.
func TestRealTimeServerAgreesWithReplay(t *testing.T) {
	all := engines()
	for name, cfg := range engines() {
		if name == "vllm" || name == "sglang" {
			all[name+" 1:1"] = apart(cfg, 1, 1)
		}
	}
	for name, cfg := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it is waiting for the most part
			core, err := New(cfg, Options{KVTokens: 4000})
			if err != nil {
				t.Fatal(err)
			}
			s := NewServer(core, ServerOptions{})
			ctx, stop := context.WithCancel(t.Context())
			var running, asking sync.WaitGroup
			running.Go(func() { s.Run(ctx) })
			for _, ready := s.now(); !ready; _, ready = s.now() {
				time.Sleep(time.Millisecond)
			}
			var mu sync.Mutex
			var jobs []Job // in the order of submission
			got := map[int][]Emit{}
			for i := range 16 {
				asking.Go(func() {
					time.Sleep(time.Duration(i/4) * 10 * time.Millisecond) // four at a time
					j := Job{Index: i, Prompt: prompt(i, 50+40*i), Output: 3 + i}
					mu.Lock()
					at, _ := s.now()
					st, done, err := s.submit(at, j.Prompt, j.Output)
					if err != nil {
						t.Error(err)
						mu.Unlock()
						return
					}
					defer done()
					j.Arrive = st.arrive
					jobs = append(jobs, j)
					mu.Unlock()
					tokens := receive(t, s, st)
					mu.Lock()
					defer mu.Unlock()
					got[i] = tokens
				})
			}
			asking.Wait()
			stop()
			running.Wait()
			t.Logf("at most %v late", s.meters.worst)

			out, err := Replay(cfg, 1, slices.Values(jobs), ReplayOptions{KVTokens: 4000})
			if err != nil {
				t.Fatal(err)
			}
			want := map[int][]Emit{}
			for o := range out {
				want[o.Index] = o.Tokens
			}
			if d := differ(want, got); d != "" {
				t.Errorf("replay (-) and server (+) differ:\n%s", d)
			}
		})
	}
}

// receive reads a stream to its end.
func receive(t *testing.T, s *Server, st *stream) (tokens []Emit) {
	var buf []Progress
	for {
		var err error
		if buf, err = s.take(t.Context(), st, buf); err != nil {
			t.Error(err)
			return tokens
		}
		for _, p := range buf {
			if now, _ := s.now(); now < p.At {
				t.Errorf("tokens of %v leave at %v", p.At, now)
			}
			if tokens = append(tokens, Emit{p.At, p.N}); p.Done {
				return tokens
			}
		}
	}
}
