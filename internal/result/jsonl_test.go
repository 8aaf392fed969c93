package result

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCallJSONForm(t *testing.T) {
	c := stream(3, 100*msec, 50*msec, 60*msec, 60*msec)
	c.Sim, c.Want = true, 3
	const want = `{"index":3,"due_ns":100000000,"ready_ns":100000000,"sent_ns":100000000,"end_ns":161000000,` +
		`"chunk_ns":[150000000,10000000,0],"usage":{"prompt_tokens":10,"completion_tokens":3},"simulated":true,"want_input":10,"want_output":3}`
	if got := string(c.AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	c.Chunks[1].Tokens = 4
	if got := string(c.AppendJSON(nil)); !strings.Contains(got, `"chunk_tokens":[1,4,1]`) {
		t.Errorf("a chunk of 4 tokens is not written: %s", got)
	}
}

// Late reads are pairs, and a call of a file that knows none has none.
func TestLateReadsInJSON(t *testing.T) {
	c := stream(3, 100*msec, 50*msec, 60*msec, 60*msec)
	c.Reads, c.Late = 4, []LateRead{{Read: 1, By: 3 * msec}, {Read: 3, By: 250}}
	line := string(c.AppendJSON(nil))
	if !strings.Contains(line, `"late":[[1,3000000],[3,250]]`) {
		t.Errorf("late reads are not written as pairs: %s", line)
	}
	for _, late := range [][]LateRead{c.Late, nil} {
		c.Late = late
		var got Call
		if err := json.Unmarshal(c.AppendJSON(nil), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, got); diff != "" {
			t.Errorf("-written +read\n%s", diff)
		}
	}
}

func TestCallJSONRejects(t *testing.T) {
	for line, want := range map[string]string{
		`{"chunk_ns":[1,2],"chunk_tokens":[1]}`: "chunk_tokens has 1 entries for 2",
		`{"late":[[1,2],[3]]}`:                  "late has [3], which is no pair",
		`{"late":[[4294967296,2]]}`:             "late has [4294967296 2], which is no pair",
	} {
		var c Call
		if err := json.Unmarshal([]byte(line), &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", line, err, want)
		}
	}
}

// FuzzCallJSON: what is written is read back the same.
func FuzzCallJSON(f *testing.F) {
	f.Add(1, int64(5), int64(7), []byte{1, 2, 0, 3}, "text \"quoted\" \u2028", "http", 200, true)
	f.Add(-1, int64(-5), int64(1<<62), []byte{0}, "\x00<&>", "", 0, false)
	f.Fuzz(func(t *testing.T, index int, due, at int64, chunks []byte, text, class string, status int, usage bool) {
		text, class = strings.ToValidUTF8(text, "?"), strings.ToValidUTF8(class, "?")
		c := Call{
			Index: index, Due: time.Duration(due), Sent: time.Duration(at), End: time.Duration(due ^ at),
			Text: text, Error: text, Class: Class(class), Status: status, Sim: usage, Reads: 1,
		}
		for i, b := range chunks {
			c.Chunks = append(c.Chunks, Chunk{At: time.Duration(at + int64(i)*due), Tokens: int32(b), Read: int32(i)})
		}
		if usage {
			c.Usage = &Usage{Prompt: index, Cached: status}
		}
		var direct, marshalled Call
		if err := json.Unmarshal(c.AppendJSON(nil), &direct); err != nil {
			t.Fatalf("read back %s: %v", c.AppendJSON(nil), err)
		}
		if diff := cmp.Diff(c, direct); diff != "" {
			t.Fatalf("-written +read\n%s", diff)
		}
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &marshalled); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, marshalled); diff != "" {
			t.Fatalf("through json.Marshal: -written +read\n%s", diff)
		}
	})
}

// A run killed while it wrote leaves a prefix of its calls, whatever byte it
// was killed at.
func TestReadCallsCutAnywhere(t *testing.T) {
	var file []byte
	var ends []int // length of the file after each whole object
	for _, c := range steady(4, 10*msec) {
		file = c.AppendJSON(file)
		ends = append(ends, len(file))
		file = append(file, '\n')
	}
	for cut := range len(file) + 1 {
		want := 0
		for _, e := range ends {
			if e <= cut {
				want++
			}
		}
		got := 0
		for c, err := range ReadCalls(bytes.NewReader(file[:cut])) {
			if err != nil {
				t.Fatalf("cut at byte %d: %v", cut, err)
			}
			if c.Index != got {
				t.Fatalf("cut at byte %d: call %d is %d", cut, got, c.Index)
			}
			got++
		}
		if got != want {
			t.Fatalf("cut at byte %d: %d calls, want %d", cut, got, want)
		}
	}
}

func TestReadCallsNamesBadLine(t *testing.T) {
	seen := 0
	var last error
	for _, err := range ReadCalls(strings.NewReader("{\"index\":0}\n\n{\"index\":\n{\"index\":2}\n")) {
		seen++
		last = err
	}
	if seen != 2 || last == nil || !strings.HasPrefix(last.Error(), "line 3 is not a call: ") {
		t.Errorf("after %d items: %v; want one call, then an error of line 3", seen, last)
	}
}
