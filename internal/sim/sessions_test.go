package sim

import (
	"iter"
	"slices"
	"testing"
	"time"
)

// script is a Sessions whose sessions have so many jobs, each after the one before it and a pause.
type script struct {
	jobs  int
	pause time.Duration
	job   func(session, turn int) Job
}

func (s script) Begin(Job, time.Duration) []Job { return nil }
func (s script) Ended(session, turn int, at time.Duration, ok bool) []Job {
	if !ok || turn+1 >= s.jobs {
		return nil
	}
	j := s.job(session, turn+1)
	j.Arrive = at + s.pause
	return []Job{j}
}

// firsts are the first jobs of sessions, all at once; of a number below 0 without an end.
func (s script) firsts(n int) iter.Seq[Job] {
	return func(yield func(Job) bool) {
		for k := 1; n < 0 || k <= n; k++ {
			if !yield(s.job(k, 0)) {
				return
			}
		}
	}
}

func scripted(jobs int, pause time.Duration) script {
	return script{jobs, pause, func(session, turn int) Job {
		return Job{Index: 100*session + turn, PromptLen: 50, Output: 5, Session: session, Turn: turn, Turns: jobs}
	}}
}

func replayed(t *testing.T, replicas int, jobs iter.Seq[Job], o ReplayOptions) []Outcome {
	t.Helper()
	out, err := Replay(testConfig(), replicas, jobs, o)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(out)
}

// TestSessions: a session holds its place from its first job to the end of its last one, pauses included, at one replica.
func TestSessions(t *testing.T) {
	s := scripted(3, time.Second)
	out := replayed(t, 2, s.firsts(5), ReplayOptions{MaxConcurrency: 2, Sessions: s, Affinity: true, Closed: true})
	begin, end, at, n := map[int]time.Duration{}, map[int]time.Duration{}, map[int]int{}, map[int]int{}
	for _, o := range out {
		last := o.Tokens[len(o.Tokens)-1].At
		switch {
		case o.Turn == 0:
			begin[o.Session], at[o.Session] = o.Sent, o.Replica
			if o.Due != o.Sent {
				t.Errorf("session %d is due at %v and sent at %v", o.Session, o.Due, o.Sent)
			}
		case o.Sent != end[o.Session]+time.Second || o.Due != o.Sent || o.Replica != at[o.Session] || o.Turn != n[o.Session] || o.Turns != 3:
			t.Errorf("turn %d of session %d: %+v", o.Turn, o.Session, o)
		}
		end[o.Session] = last
		n[o.Session]++
	}
	if len(out) != 15 || at[1] == at[2] {
		t.Errorf("%d jobs; the first sessions are at %d and %d", len(out), at[1], at[2])
	}
	for k := 3; k <= 5; k++ {
		open := 0
		for j := 1; j < k; j++ {
			if end[j] > begin[k] {
				open++
			}
		}
		if open > 1 {
			t.Errorf("session %d begins beside %d others", k, open)
		}
	}
}

// TestSessionsUntil: nothing is sent from an instant on, and a session whose next job would be due then is over.
func TestSessionsUntil(t *testing.T) {
	s := scripted(4, 2*time.Second)
	out := replayed(t, 1, s.firsts(-1), ReplayOptions{MaxConcurrency: 1, Sessions: s, Closed: true, Until: 5 * time.Second})
	last := out[len(out)-1]
	for _, o := range out {
		if o.Sent >= 5*time.Second {
			t.Errorf("job %d is sent at %v", o.Index, o.Sent)
		}
	}
	if out[2].Index != 102 || out[3].Index != 200 || last.Sent < 4*time.Second {
		t.Errorf("jobs %d and %d, the last one at %v", out[2].Index, out[3].Index, last.Sent)
	}
}

// TestSessionsRefused: what an engine refuses ends its session and frees its place.
func TestSessionsRefused(t *testing.T) {
	s := scripted(3, time.Second)
	plain := s.job
	s.job = func(session, turn int) Job {
		j := plain(session, turn)
		if session == 1 && turn == 1 {
			j.PromptLen = 1 << 20
		}
		return j
	}
	out := replayed(t, 1, s.firsts(2), ReplayOptions{MaxConcurrency: 1, Sessions: s})
	if len(out) != 5 || out[1].Err == "" || out[2].Session != 2 || out[2].Sent != out[1].Sent {
		t.Errorf("%+v", out)
	}
}

// TestFill: what a replica is filled with is in its cache when the time begins, and counts nowhere.
func TestFill(t *testing.T) {
	piece := func(key uint64) []Piece { return []Piece{{key, 320}} }
	s := scripted(2, 0)
	s.job = func(session, turn int) Job {
		return Job{Index: 10*session + turn, PromptLen: 320, Pieces: piece(uint64(session + turn)), Output: 1, Session: session, Turn: turn}
	}
	ask := func(yield func(Job) bool) {
		for k := range 4 {
			if !yield(Job{Index: k, Arrive: time.Duration(k) * time.Second, PromptLen: 320, Pieces: piece(uint64(k + 1)), Output: 4}) {
				return
			}
		}
	}
	var stats []Stats
	out := replayed(t, 2, ask, ReplayOptions{
		Fill:  func(replica int) (iter.Seq[Job], Sessions) { return s.firsts(2 * (1 - replica)), s }, // 1, 2 and 3 in the first alone
		Stats: func(_ int, s Stats) { stats = append(stats, s) },
	})
	for k, o := range out {
		want := 0
		if k < 3 {
			want = 319 / 16 * 16
		}
		if o.Cached != want || o.Replica != 0 {
			t.Errorf("job %d finds %d tokens, want %d", k, o.Cached, want)
		}
	}
	if stats[0].Finished != 4 || stats[0].PromptTokens != 4*320 || stats[1].Finished != 0 {
		t.Errorf("counted %+v", stats[0])
	}
}

// TestPieces: prompts of pieces share what prompts of tokens share that are made of the same pieces, at every size of blocks.
func TestPieces(t *testing.T) {
	lists := [][]Piece{
		{{1, 40}, {2, 64}, {3, 30}}, {{1, 40}, {2, 64}, {4, 50}}, {{1, 40}, {2, 20}, {5, 90}},
		{{1, 33}}, {{1, 40}, {2, 64}, {3, 30}, {6, 64}}, {{7, 100}, {1, 40}}, {{7, 100}, {1, 12}, {8, 5}},
	}
	for name, cfg := range engines() {
		if !cfg.Prefix || cfg.SpecTokens > 0 {
			continue
		}
		for _, block := range []int{1, 16, 48} {
			var both [2][]Job
			for i, list := range lists {
				words := Job{Index: i, Arrive: time.Duration(i) * time.Second, Output: 6}
				for _, p := range list {
					for k := range p.Tokens {
						words.Prompt = append(words.Prompt, uint32(1000*p.Key)+uint32(k))
					}
				}
				pieces := words
				pieces.Prompt, pieces.PromptLen, pieces.Pieces = nil, len(words.Prompt), list
				both[0], both[1] = append(both[0], words), append(both[1], pieces)
			}
			cfg.Block = block
			a := finish(t, cfg, 2, both[0], ReplayOptions{KVTokens: 6000})
			b := finish(t, cfg, 2, both[1], ReplayOptions{KVTokens: 6000})
			if d := differ(a, b); d != "" {
				t.Errorf("%s, blocks of %d (-words +pieces):\n%s", name, block, d)
			}
			if n := a.outcomes[4].Cached; n == 0 {
				t.Errorf("%s, blocks of %d: nothing was found", name, block)
			}
		}
	}
}
