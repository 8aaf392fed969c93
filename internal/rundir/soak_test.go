package rundir

import (
	"os"
	"strconv"
	"testing"
	"time"

	"perflab/internal/result"
)

// TestSoakDirectory writes the directory of a long run of made-up calls to the path in
// PERFLAB_SOAK_DIR, of PERFLAB_SOAK calls of 128 tokens at 1,000 requests/s, for
// reports on it to be timed.
func TestSoakDirectory(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("PERFLAB_SOAK"))
	dir := os.Getenv("PERFLAB_SOAK_DIR")
	if err != nil || dir == "" {
		t.Skip("set PERFLAB_SOAK to a number of calls and PERFLAB_SOAK_DIR to a directory")
	}
	h := result.Header{Schema: Schema, Model: "m", Requests: n, Rate: 1000, Spec: []byte("{}"), Simulated: true}
	acc, err := result.NewAccumulator(h, result.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := Create(dir, h)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		due := time.Duration(i) * time.Millisecond
		c := result.Call{Index: i, Due: due, Ready: due, Sent: due, WantIn: 128, Want: 128, Status: 200, Finish: "length"}
		at := due + 20*time.Millisecond + time.Duration(uint32(i)*2654435761>>8)
		c.First, c.Headers = at, at
		for k := range 128 {
			c.Chunks = append(c.Chunks, result.Chunk{At: at, Tokens: 1, Read: int32(k + 1)})
			at += 8*time.Millisecond + time.Duration(uint32(i+k)*2654435761>>12)
		}
		c.Reads, c.End = 129, at
		c.Usage = &result.Usage{Prompt: 130, Completion: 128}
		acc.Add(&c)
		w.Add(&c)
	}
	a, err := acc.Analyze(&result.Client{Wall: time.Hour, Procs: 2}, result.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := a.Summary()
	w.Condensed(acc)
	if err := w.Finish(&result.Client{Wall: time.Hour, Procs: 2}, &s, nil); err != nil {
		t.Fatal(err)
	}
}
