package callcsv

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"perflab/internal/result"
)

// FuzzRead: whatever a table holds, what is read of it can be written and reads the same.
func FuzzRead(f *testing.F) {
	at := time.Millisecond
	calls := []result.Call{
		{Index: 1, Due: at, Ready: at, Sent: at, Headers: 2 * at, End: 9 * at, Status: 200, Finish: "length", Chunks: []result.Chunk{{At: 3 * at, Tokens: 1}, {At: 8 * at, Tokens: 2}}, Usage: &result.Usage{Prompt: 5, Completion: 3}, Speculation: &result.Speculation{Steps: 1, Drafted: 3, Accepted: 1, ByStep: []int32{0, 1}}, Class: result.OK},
		{Index: 2, Due: at, Sent: at, End: at, Class: result.HTTPStatus, Status: 503, Error: "a, \"b\"\nc"},
	}
	var b bytes.Buffer
	if err := Write(&b, result.Header{Model: "m", Rate: 4}, slices.Values(calls)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(bytes.ReplaceAll(b.Bytes(), []byte(","), []byte(";")))
	f.Add(bytes.ReplaceAll(b.Bytes(), []byte("1000000"), []byte("-9223372036854775808")))
	f.Add([]byte(tableHead))
	f.Fuzz(func(t *testing.T, data []byte) {
		table := Read(data)
		if len(table.Faults) > mostFaults+2 {
			t.Errorf("%d faults", len(table.Faults))
		}
		if len(table.Calls) == 0 {
			return
		}
		var once, twice bytes.Buffer
		if err := Write(&once, table.Header, slices.Values(table.Calls)); err != nil {
			t.Fatal(err)
		}
		again := Read(once.Bytes())
		if err := Write(&twice, again.Header, slices.Values(again.Calls)); err != nil || !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Fatalf("%v; written as\n%s, then as\n%s", err, once.Bytes(), twice.Bytes())
		}
	})
}
