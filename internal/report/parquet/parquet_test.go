package parquet

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pq "github.com/parquet-go/parquet-go"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// full is a call with every fact that a call can have.
func full() result.Call {
	return result.Call{
		Index: 7, Target: 1, Agent: 2, Session: 3, Turn: 0, Turns: 5, Model: "lora-a",
		Due: 0, Ready: 10, Sent: 20, Wrote: 30, First: 90, Headers: 100, UsageAt: 400, Done: 410, End: 420,
		Conn:   result.Conn{New: true, DNS: 1, Dial: 8, TLS: 3, Replaced: 2},
		Chunks: []result.Chunk{{At: 200, Tokens: 1, Read: 0}, {At: 250, Tokens: 4, Read: 2}}, Empty: []result.Stamp{{At: 110, Read: 0}, {At: 390, Read: 3}},
		Late:  []result.LateRead{{Read: 2, By: 40}},
		Reads: 4, Coarse: 1, Answer: 250, Text: "a \"b\"", Finish: "stop", Usage: &result.Usage{Prompt: 11, Completion: 5, Cached: 4, Reasoning: 2},
		Status: 200, Sim: true, Field: "thoughts", WantIn: 10, Want: 5, Recount: 6, FirstText: 7, StreamText: 9, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7",
		Speculation: &result.Speculation{Steps: 4, Drafted: 12, Accepted: 5, ByStep: []int32{1, 2, 0, 1}},
	}
}

// A fact that a call gets later must get a column, or the round trip misses it.
func TestFullIsFull(t *testing.T) {
	v := reflect.ValueOf(full())
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; name {
		case "Turn", "Due", "Class", "Error": // the first of its kind; a success
		default:
			if v.Field(i).IsZero() {
				t.Errorf("no test writes %s", name)
			}
		}
	}
}

// made is n calls of some chunks each, as a run has them.
func made(n, chunks int) []result.Call {
	rng := stat.Stream(3, "parquet")
	calls := make([]result.Call, n)
	for i := range calls {
		sent := time.Duration(i) * 7 * time.Millisecond
		c := result.Call{Index: i, Due: sent, Ready: sent, Sent: sent + 40000, Wrote: sent + 50000, Headers: sent + 9e6, Status: 200, WantIn: 1024, Want: chunks, Finish: "length", Reads: chunks}
		at := c.Sent + 80*time.Millisecond
		for k := range chunks {
			c.Chunks = append(c.Chunks, result.Chunk{At: at, Tokens: 1, Read: int32(k)})
			at += 18*time.Millisecond + time.Duration(rng.Int64N(int64(2*time.Millisecond)))
		}
		c.End, c.Usage = at, &result.Usage{Prompt: 1024, Completion: chunks}
		calls[i] = c
	}
	return calls
}

func write(t testing.TB, h result.Header, calls []result.Call) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, h, slices.Values(calls)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// rows is the file as the library has it.
func rows(t testing.TB, file []byte) []row {
	t.Helper()
	list, err := pq.Read[row](bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Every fact comes back, over more rows than a batch and a row group hold.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	calls := append([]result.Call{full()}, made(group+batch+3, 3)...)
	for i := range calls[50:] {
		c := &calls[50+i]
		if c.Chunks = c.Chunks[:i%3]; i%3 == 0 {
			c.Chunks = nil
		}
	}
	calls[1].Usage = &result.Usage{} // a server that says zero
	calls[2].Usage = &result.Usage{Completion: 3}
	calls[3].Usage = nil
	calls[4].Speculation = &result.Speculation{} // not one step
	calls[5].Speculation = &result.Speculation{Drafted: 9, Accepted: 3}
	h := result.Header{Version: "1.2.3", Model: "m", Simulated: true, Spec: json.RawMessage("null")}
	file := write(t, h, calls)
	header, got, err := Read(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(h, header); d != "" {
		t.Errorf("header: -written +read\n%s", d)
	}
	if len(got) != len(calls) {
		t.Fatalf("%d calls of %d", len(got), len(calls))
	}
	for i := range got {
		if !reflect.DeepEqual(calls[i], got[i]) {
			t.Fatalf("call %d: -written +read\n%s", i, cmp.Diff(calls[i], got[i]))
		}
	}
}

// What a failed call lacks is null and not zero.
func TestMissingIsNull(t *testing.T) {
	refused := result.Call{Index: 1, Due: 5, Ready: 5, Sent: 5, End: 9, Class: result.Connect, Error: "refused"}
	file := write(t, result.Header{}, []result.Call{refused, full()})
	f, err := pq.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	required := []string{"index", "target", "due_ns", "ready_ns", "sent_ns", "end_ns", "simulated"}
	null := 0
	for _, column := range f.Schema().Columns() {
		leaf, _ := f.Schema().Lookup(column...)
		chunk := f.RowGroups()[0].ColumnChunks()[leaf.ColumnIndex]
		pages := chunk.Pages()
		page, err := pages.ReadPage()
		if err != nil {
			t.Fatalf("%s: %v", column[0], err)
		}
		values := make([]pq.Value, 1)
		if _, err := page.Values().ReadValues(values); err != nil && values[0].Kind() == 0 && !values[0].IsNull() {
			t.Fatalf("%s: %v", column[0], err)
		}
		wantNull := !slices.Contains(append(required, "class", "error"), column[0])
		if values[0].IsNull() != wantNull {
			t.Errorf("%s of a refused call is %v", column[0], values[0])
		}
		if wantNull {
			null++
		}
		if err := pages.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if null < 30 {
		t.Errorf("%d columns are null: have they gone?", null)
	}
}

// A fact that few calls have is there in those and null in the others, wherever
// in a batch they stand.
func TestSparseFacts(t *testing.T) {
	calls := make([]result.Call, 3*batch)
	for i := range calls {
		calls[i] = result.Call{Index: i, Sent: 5, End: 9}
		if i%131 == 0 || i%64 == i/64 { // alone at every place of a word of 64 bits
			calls[i].Class, calls[i].Error, calls[i].Wrote, calls[i].Reads = result.EarlyClose, "cut", 7, 1
		}
	}
	for i, r := range rows(t, write(t, result.Header{}, calls)) {
		failed := calls[i].Class != ""
		if got := []bool{r.Class != nil, r.Error != nil, r.Wrote != nil, r.Reads != nil, r.ConnNew != nil}; slices.Contains(got, !failed) {
			t.Errorf("call %d, failed %v: class, error, wrote_ns, reads, conn_new are there: %v", i, failed, got)
		}
	}
}

func TestMetadata(t *testing.T) {
	h := result.Header{Schema: "perflab.run/1", Version: "1.2.3", Model: "m", Cache: "unique", Spec: json.RawMessage(`{"model":"m"}`)}
	file := write(t, h, nil)
	f, err := pq.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := f.Lookup(keyHeader)
	var got result.Header
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(h, got); d != "" {
		t.Errorf("header: -want +got\n%s", d)
	}
	if schema, _ := f.Lookup(keySchema); schema != Schema {
		t.Errorf("schema %q", schema)
	}
	if version, _ := f.Lookup(keyVersion); version != "1.2.3" {
		t.Errorf("version %q", version)
	}
}

type fullDisk struct{ left int }

var errFull = errors.New("disk full")

func (w *fullDisk) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteError(t *testing.T) {
	t.Parallel()
	calls := made(group+1, 2)
	whole := len(write(t, result.Header{}, calls))
	for _, left := range []int{0, 100, whole / 2, whole - 1} {
		if err := Write(&fullDisk{left}, result.Header{}, slices.Values(calls)); !errors.Is(err, errFull) {
			t.Errorf("after %d bytes: %v", left, err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	calls := made(20000, 200)
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		size = len(write(b, result.Header{}, calls))
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(calls)), "µs/call")
	b.ReportMetric(float64(size)/float64(len(calls)), "B/call")
}
