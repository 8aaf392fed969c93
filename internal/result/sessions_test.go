package result

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sessionCalls are those of four sessions: one of an agent and two that it started, which work at
// the same time; one that began in its middle; one of which a request failed; one that is under way.
func sessionCalls() []Call {
	const s = time.Second
	call := func(index, session, turn, turns int, sent, end time.Duration) Call {
		return Call{Index: index, Session: session, Turn: turn, Turns: turns, Due: sent, Ready: sent, Sent: sent, End: end, Want: 10, Usage: &Usage{Prompt: 5, Completion: 10},
			Chunks: []Chunk{{At: (sent + end) / 2, Tokens: 10}}}
	}
	calls := []Call{
		call(0, 1, 0, 4, 1*s, 3*s), call(1, 1, 1, 4, 5*s, 9*s), call(2, 1, 2, 4, 6*s, 12*s), call(3, 1, 3, 4, 20*s, 21*s),
		call(4, 2, 7, 2, 0, 4*s), call(5, 2, 8, 2, 6*s, 7*s),
		call(6, 3, 0, 2, 2*s, 4*s), call(7, 3, 1, 2, 5*s, 6*s),
		call(8, 4, 0, 2, 30*s, 36*s),
		call(9, 0, 0, 0, 3*s, 4*s),
	}
	for i, n := range []int{100, 90, 290, 400} {
		calls[i].Usage.Prompt = n
	}
	calls[7].Class, calls[7].Error = StreamError, "slow"
	return calls
}

// TestSessions: a session is done when all of its requests have succeeded; its time has what was idle
// in it, and its time without tools has not, however many of its agents were at work at once.
func TestSessions(t *testing.T) {
	want := map[string]float64{
		"sessions": 2, "sessions_per_hour": 200, "turns_per_hour": 800, // of 36 s
		"e2e_avg_interactivity": 80.0 / 26,
		"mean_session_s":        20, "median_session_s": 20, "p90_session_s": 20,
		"mean_session_serving_s": 10, "median_session_serving_s": 10, "p90_session_serving_s": 10,
		"mean_turn_s": 5, "mean_turn_serving_s": 2.5,
		"first_turn_input_tokens": 100, "median_turn_input_tokens": 195, "last_turn_input_tokens": 400, "input_growth_per_turn": 100,
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		calls := sessionCalls()
		rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		sum, err := Summarize(Header{}, nil, Options{}, slices.Values(calls))
		if err != nil {
			t.Fatal(err)
		}
		got := maps.Clone(sum.Figures)
		maps.DeleteFunc(got, func(name string, _ float64) bool {
			m, err := Lookup(name)
			return err != nil || m.Section != sectionSessions
		})
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	}
}

// TestSessionsAbsent: without sessions, or without what a session is of, there is no figure of them.
func TestSessionsAbsent(t *testing.T) {
	calls := sessionCalls()
	for i := range calls {
		calls[i].Turns = 0
	}
	sum, err := Summarize(Header{}, nil, Options{}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	for name := range sum.Figures {
		if strings.Contains(name, "session") || strings.Contains(name, "turn") {
			t.Errorf("%s is a figure", name)
		}
	}
}

// TestSessionsStored: what is known of sessions is stored with all else of a large run.
func TestSessionsStored(t *testing.T) {
	x, err := NewLimited(Header{}, Options{}, Limits{Bytes: 1, Some: 1, Rows: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range sessionCalls() {
		x.Add(&c)
	}
	var b bytes.Buffer
	if err := x.Save(&b, "these"); err != nil {
		t.Fatal(err)
	}
	y, err := Load(&b, Header{}, Options{}, "these")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(x.Sessions, y.Sessions); d != "" || x.Sessions.Ended != 2 || len(x.Sessions.UnderWay) != 2 {
		t.Errorf("%+v: %s", x.Sessions, d)
	}
}
