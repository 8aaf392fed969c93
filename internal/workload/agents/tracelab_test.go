package agents

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// at is a time of the recording, s seconds after midnight.
func at(s float64) string {
	return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second))).Format(time.RFC3339Nano)
}

// lab is a row of TraceLab: what it was made of was there at sent, its answer at end; calls are tools,
// and stand among the row's keys as they are.
func lab(session string, index int, sent, end float64, input, prefix, output int, calls ...string) string {
	return fmt.Sprintf(`{"provider":"claude","user":"u","project":"p","session_id":"claude:%s","round_index":%d,"model":"m","input_tokens_total":%d,`+
		`"prefix_tokens":%d,"newly_append_tokens":%d,"output_tokens":%d,"reasoning_output_tokens":null,"timing_events":[`+
		`{"event_type":"user_message","timestamp":%q},{"event_type":"usage_report","timestamp":%q},{"event_type":"text","timestamp":%q}],`+
		`"tools":[%s],"trace_key":"claude:%[1]s:%d"}`+"\n", session, index, input, prefix, input-prefix, output, at(sent), at(end+9), at(end), strings.Join(calls, ","), index)
}

// call is a tool of a row.
func call(name string, begin, end float64) string {
	return fmt.Sprintf(`{"tool_name":%q,"emitted_at":%q,"result_at":%q,"tool_wall_latency_ms":%g}`, name, at(begin), at(end), (end-begin)*1000)
}

func readAll(t testing.TB, files ...string) (out []Read, err error) {
	t.Helper()
	var r Reader
	keep := func(s Read) { out = append(out, s) }
	for _, f := range files {
		if err := r.Read(strings.NewReader(f), keep); err != nil {
			return out, err
		}
	}
	return out, r.Rest(keep)
}

// TestTraceLab: the times of a request are those of what it was made of and of its answer; a prompt
// begins as the one before it as far as the cache held it, in whole blocks; rows are sorted by time,
// whatever file they stand in, and what is no request of its own is left out.
func TestTraceLab(t *testing.T) {
	got, err := readAll(t,
		lab("a", 1, 5, 6, 400, 199, 20)+lab("b", 0, 0, 1, 64, 0, 1)+lab("a", 0, 1, 3, 200, 150, 10)+lab("a", 1, 5, 6, 400, 199, 20),
		lab("a", 2, 9, 10, 500, 400, 30)+lab("a", 3, 12, 12.5, 300, 130, 40)+lab("a", 4, 20, 21, 0, 0, 5)+lab("a", 5, 22, 23, 340, 300, 50)+
			`{"session_id":"claude:a","input_tokens_total":7,"output_tokens":7,"timing_events":[{"event_type":"text","timestamp":null}]}`)
	if err != nil || len(got) != 2 || got[0].ID != "claude:a" || got[1].ID != "claude:b" {
		t.Fatalf("%+v, %v", got, err)
	}
	a := got[0]
	same(t, a.Session, want{"", 200, nil, 0}, want{"", 400, []int{0}, 2 * time.Second}, want{"", 500, []int{1}, 3 * time.Second},
		want{"", 300, []int{2}, 2 * time.Second}, want{"", 340, []int{3}, 8500 * ms})
	if a.Empty != 1 || a.Undated != 1 || a.Repeated != 1 || a.Joined != 0 || a.Block != 64 || a.Global {
		t.Errorf("%+v", a)
	}
	for i, w := range []int{0, 3, 6, 2, 0} { // 199, 400 and 130 tokens; of the request that sent nothing none are held
		if i > 0 && sharedBlocks(a.Turns[i-1], a.Turns[i]) != w {
			t.Errorf("requests %d and %d share %d blocks, want %d: %v", i-1, i, sharedBlocks(a.Turns[i-1], a.Turns[i]), w, a.Turns)
		}
	}
	if n := len(a.Turns[2].Blocks); n != 6 { // whatever lies behind them is its own
		t.Errorf("request 2 has %d blocks", n)
	}
}

func sharedBlocks(a, b Turn) (n int) {
	for n < min(len(a.Blocks), len(b.Blocks)) && a.Blocks[n] == b.Blocks[n] {
		n++
	}
	return n
}

// TestTraceLabAgents: a session that ran within a call of the same user and project was started by it:
// within the shortest such call, and an agent's agent too.
func TestTraceLabAgents(t *testing.T) {
	rows := lab("main", 0, 0, 11, 100, 0, 10, call("Agent", 10, 40), call("Task", 10.5, 30), call("Agent", 10.7, 12)) +
		lab("main", 1, 40.5, 41, 200, 100, 10) +
		lab("one", 0, 10.6, 15, 50, 0, 5, call("Agent", 14, 25)) + lab("deep", 0, 14.25, 20, 30, 0, 3) + lab("one", 1, 26, 28, 60, 50, 5) +
		lab("two", 0, 12, 29.5, 70, 0, 7) + lab("late", 0, 29, 39, 80, 0, 8) + lab("over", 0, 39, 41, 90, 0, 9) + lab("short", 0, 10.8, 11.9, 90, 0, 9) +
		strings.ReplaceAll(lab("other", 0, 12, 14, 95, 0, 9), `"project":"p"`, `"project":"q"`)
	// The time by which rows say that usage was reported is 9 s after an answer: it counts for the length of a session.
	rows = strings.NewReplacer(`{"event_type":"usage_report","timestamp":`, `{"event_type":"usage_report","was":`).Replace(rows)
	got, err := readAll(t, rows)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range got {
		ids = append(ids, strings.TrimPrefix(r.ID, "claude:"))
	}
	if !slices.Equal(ids, []string{"main", "over", "other"}) || got[0].Joined != 5 {
		t.Errorf("%v, %d joined", ids, got[0].Joined)
	}
	same(t, got[0].Session,
		want{"", 100, nil, 0},
		want{"/claude:one", 50, []int{0}, 0}, // before the answer with the call had ended
		want{"/claude:short", 90, []int{0}, 0},
		want{"/claude:two", 70, []int{0}, time.Second},
		want{"/claude:one/claude:deep", 30, []int{1}, 0},
		want{"/claude:one", 60, []int{4}, 6 * time.Second},
		want{"/claude:late", 80, []int{0}, 18 * time.Second},
		want{"", 200, []int{2, 3, 5, 6}, 1500 * ms},
	)
}

// TestTraceLabCodex: Codex starts agents by one call and waits for them by another; an agent follows the
// last call that started one before it began.
func TestTraceLabCodex(t *testing.T) {
	rows := lab("main", 0, 0, 2, 100, 0, 10, call("spawn_agent", 1, 1.1)) + lab("main", 1, 3, 4, 150, 100, 10, call("spawn_agent", 3.5, 3.6)) +
		lab("main", 2, 5, 6, 200, 150, 10, call("wait_agent", 6, 9), call("Agent", 6, 90)) + lab("main", 3, 30, 31, 250, 200, 10, call("wait_agent", 31, 45)) +
		lab("one", 0, 1.5, 20, 50, 0, 5) + lab("two", 0, 4, 8, 60, 0, 5) + lab("main", 4, 46, 47, 300, 250, 10) + lab("not", 0, 50, 51, 60, 0, 5)
	rows = strings.NewReplacer(`"provider":"claude"`, `"provider":"codex"`, `{"event_type":"usage_report","timestamp":`, `{"event_type":"usage_report","was":`).Replace(rows)
	got, err := readAll(t, rows)
	if err != nil || len(got) != 2 || got[0].Joined != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	same(t, got[0].Session,
		want{"", 100, nil, 0},
		want{"/claude:one", 50, []int{0}, 0},
		want{"", 150, []int{0}, time.Second},
		want{"/claude:two", 60, []int{2}, 0},
		want{"", 200, []int{2}, time.Second},
		want{"", 250, []int{1, 3, 4}, 10 * time.Second}, // what has ended until then is waited for
		want{"", 300, []int{5}, 15 * time.Second},
	)
}

// TestBlocksOf: any two prompts begin alike for as many blocks as the least that the cache held on
// the way from the one to the other; ids of prompts that grow are one list.
func TestBlocksOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		list := make([]round, 1+rng.IntN(7))
		for i := range list {
			list[i] = round{input: rng.IntN(640), prefix: rng.IntN(800) - 80}
		}
		var next int64
		blocks := blocksOf(list, &next)
		seen := map[int64]int{} // where an id stands
		for i := range list {
			if len(blocks[i])*DefaultBlock > list[i].input {
				t.Fatalf("request %d of %v: %d blocks", i, list, len(blocks[i]))
			}
			least := list[i].input
			for j := i + 1; j < len(list); j++ {
				least = min(least, list[j-1].input, max(0, list[j].prefix), list[j].input)
				if got := sharedBlocks(Turn{Blocks: blocks[i]}, Turn{Blocks: blocks[j]}); got != least/DefaultBlock {
					t.Fatalf("requests %d and %d of %v share %d blocks, want %d: %v", i, j, list, got, least/DefaultBlock, blocks)
				}
			}
			for k, id := range blocks[i] {
				if at, ok := seen[id]; ok && at != k {
					t.Fatalf("id %d stands at %d and %d", id, at, k)
				}
				seen[id] = k
			}
		}
	}
	var next int64
	long := blocksOf([]round{{input: 640}, {input: 1280, prefix: 640}, {input: 1920, prefix: 1280}}, &next)
	if &long[0][0] != &long[2][0] || next != 20 {
		t.Errorf("a prompt that goes on has its blocks twice: %v", long)
	}
}

// TestReaderErrors: what is wrong is said with its place.
func TestReaderErrors(t *testing.T) {
	packed := zipped(t, lab("a", 0, 1, 3, 200, 150, 10))
	for text, message := range map[string]string{
		`{"turns":[]} {"requests":[]}`:        "session 2: block_size 0: a block has between 1 and 10000000 tokens",
		`{"turns":[]} {"tur`:                  "session 2: it ends inside the JSON object: is the file complete?",
		`{"session_id":"a"}`:                  "session 1: is no session of agents: it has neither turns (perflab's own form) nor requests (WEKA's), nor is it a request of one (session_id and input_tokens_total, TraceLab's)",
		lab("a", 0, 1, 3, 200, 150, 10) + `{`: "row 2: it ends inside the JSON object: is the file complete?",
		lab("a", 0, 1, 3, -200, 150, 10):      "session claude:a: request 1: -200 input and 10 output tokens: both must be at least 1",
		`{"session_id":"a","input_tokens_total":1,"timing_events":[{"timestamp":"noon"}]}`: `row 1: "noon" is no time: 2026-06-01T05:40:20.151Z would be one`,
		lab("a", 0, 1, 3, 1, 1, 1) + lab("a", 1, 4e8, 4e8, 1, 1, 1):                        "session claude:a: its times are 2026-06-01 and 2039-02-02, which is no session",
		packed[:len(packed)-4]:              "row 2: it ends inside the JSON object: is the file complete?",
		packed[:len(packed)-8] + "12345678": "row 2: what is compressed is damaged: is the file complete?",
		"\x1f\x8b12345678901234567890123":   "the file begins as gzip does, and cannot be decompressed: what is compressed is damaged: is the file complete?",
	} {
		if _, err := readAll(t, text); err == nil || err.Error() != message {
			t.Errorf("%q: %v, want %s", text, err, message)
		}
	}
	if got, err := readAll(t, packed); err != nil || len(got) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func zipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// FuzzReader: any bytes are an error, or sessions of which each turn comes to its time.
func FuzzReader(f *testing.F) {
	f.Add([]byte(lab("a", 0, 0, 11, 100, 0, 10, call("Agent", 10, 40)) + lab("b", 0, 12, 13, 70, 64, 3) + lab("a", 1, 41, 42, 200, 100, 9)))
	f.Add([]byte(strings.ReplaceAll(lab("a", 0, 0, 1, 100, 0, 10, call("spawn_agent", 1, 2), call("wait_agent", 3, 90))+lab("b", 0, 12, 13, 70, 64, 3), "claude", "codex")))
	f.Add([]byte(zipped(f, lab("a", 0, 1, 3, 200, 150, 10))))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := readAll(t, string(file))
		if err != nil {
			return
		}
		for _, s := range got {
			sent := 0
			w := s.Walk(0)
			if len(s.Turns) == 0 {
				continue
			}
			for due := w.Begin(0); len(due) > 0; due = due[1:] {
				sent++
				more, _ := w.Ended(due[0].Turn, due[0].Due, true)
				due = append(due, more...)
				if due[0].Due < 0 {
					t.Fatalf("turn %d is due at %v", due[0].Turn, due[0].Due)
				}
			}
			if sent != len(s.Turns) {
				t.Fatalf("%d of %d turns were due", sent, len(s.Turns))
			}
		}
	})
}
