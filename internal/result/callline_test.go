package result

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCallLine: what AppendJSON writes is read without package json, and as it reads it.
func TestCallLine(t *testing.T) {
	var d callDecoder
	for i, c := range randomCalls(3, 500) {
		if i%7 == 0 {
			c.Late = []LateRead{{Read: 1, By: time.Millisecond}, {Read: 3, By: 5}}
			c.Text, c.Finish, c.Model, c.Turn, c.Session, c.Sim = "plain text", "stop", "m", 1, 2, true
		}
		line := c.AppendJSON(nil)
		var got Call
		if !d.known(line, &got) {
			t.Fatalf("left to json: %s", line)
		}
		if diff := cmp.Diff(c, got); diff != "" {
			t.Fatalf("%s\n%s", line, diff)
		}
	}
}

// FuzzCallLine: a line that is read without package json is one that it reads to the
// same call.
func FuzzCallLine(f *testing.F) {
	for _, c := range randomCalls(5, 20) {
		f.Add(c.AppendJSON(nil))
	}
	for _, s := range []string{`{}`, `{"index":01}`, `{"index":1,}`, `{"chunk_ns":[1,2],"chunk_reads":[1]}`, `{"usage":{}}`, `{"end_ns":-0}`, `{"class":"x","class":"y"}`, `{"chunk_read":9999999999}`, `{"late":[[1,2]]}`, `{"speculation":{"accepted":1,"by_step":[]}}`, `{"speculation":{"steps":2,"drafted":6,"accepted":3,"by_step":[0,1,1]}}`, `{"conn_new":true}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var d callDecoder
		var got, want Call
		if !d.known(line, &got) {
			return
		}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatalf("read %q, which json does not: %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q\n%s", line, diff)
		}
	})
}

func BenchmarkReadCalls(b *testing.B) {
	var buf bytes.Buffer
	const n = 1000
	for i := range n {
		c := soakCall(i, 128)
		buf.Write(append(c.AppendJSON(nil), '\n'))
	}
	b.SetBytes(int64(buf.Len()))
	for b.Loop() {
		for _, err := range ReadCalls(bytes.NewReader(buf.Bytes())) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N*n), "ns/call")
}
