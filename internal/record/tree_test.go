package record_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/record"
	"perflab/internal/workload/agents"
	"perflab/internal/workload/blocktrace"
)

// line is a line of a session, from one instant to another.
func line(session string, from, to float64, input int) blocktrace.Row {
	r := blocktrace.Row{Timestamp: from, Input: input, Output: 5, Block: 16, Recorded: blocktrace.Recorded{Session: session, Duration: to - from}}
	for k := range blocktrace.Blocks(input, 16) {
		r.IDs = append(r.IDs, int64(k))
	}
	return r
}

// TestSessions: a request waits for what of its session had ended when it came, and for the time since then.
func TestSessions(t *testing.T) {
	got := record.Sessions([]blocktrace.Row{
		line("b", 500, 900, 10),
		line("a", 100, 200, 20), // 0
		line("a", 250, 400, 30), // 1 and
		line("a", 260, 300, 40), // 2 wait for 0
		line("a", 310, 390, 50), // 3 for 2
		line("a", 1000, 1100, 60),
		line("", 50, 60, 70),
	})
	ids := func(n int) []int64 { return line("", 0, 0, n).IDs }
	ms := time.Millisecond
	want := []agents.Session{
		{ID: "alone-1", Block: 16, Global: true, Turns: []agents.Turn{{Input: 70, Output: 5, Blocks: ids(70)}}},
		{ID: "a", Block: 16, Global: true, Turns: []agents.Turn{
			{Input: 20, Output: 5, Blocks: ids(20)},
			{Input: 30, Output: 5, Blocks: ids(30), After: []int{0}, Idle: 50 * ms},
			{Input: 40, Output: 5, Blocks: ids(40), After: []int{0}, Idle: 60 * ms},
			{Input: 50, Output: 5, Blocks: ids(50), After: []int{2}, Idle: 10 * ms},
			{Input: 60, Output: 5, Blocks: ids(60), After: []int{1, 3}, Idle: 600 * ms},
		}},
		{ID: "b", Block: 16, Global: true, Turns: []agents.Turn{{Input: 10, Output: 5, Blocks: ids(10)}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for _, s := range got {
		object, err := s.Native()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := agents.Parse(object); err != nil || again.Empty != 0 || !cmp.Equal(again.Session, s) {
			t.Errorf("%s read again: %v\n%s", object, err, cmp.Diff(s, again.Session))
		}
	}
}

// TestConvert: of a recording that was cut in the middle of its last line the whole ones become sessions, as many of which were
// under way at a time as the summary says.
func TestConvert(t *testing.T) {
	path := writeRows(t, []blocktrace.Row{line("a", 0, 100, 20), line("b", 50, 90, 20), line("a", 120, 130, 40), line("c", 130, 140, 20)})
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"timestamp":14`)
	f.Close()
	out := filepath.Join(t.TempDir(), "sessions.jsonl")
	c, err := record.Convert(path, out)
	if err != nil || c.Sessions != 3 || c.AtOnce != 2 || c.Requests != 4 {
		t.Errorf("%+v, %v", c, err)
	}
	if text, err := os.ReadFile(out); err != nil || strings.Count(string(text), "\n") != 3 {
		t.Errorf("%s, %v", text, err)
	}
	for _, bad := range []string{"", "{\n", `{"timestamp":0,"input_length":20,"output_length":1,"hash_ids":[1],"block_size":16}` + "\n"} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := record.Convert(path, out); err == nil {
			t.Errorf("%q becomes %+v", bad, c)
		}
	}
}
