package jsonarray

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Any array of objects that encoding/json takes has as many spans, each of
// them the element's own text.
func FuzzArraySpans(f *testing.F) {
	f.Add([]byte(`[{"a": "}]\\\""}, {"b": [{}]}]`))
	f.Add([]byte(`[ ]`))
	f.Add([]byte(`[{"conversations" : [ {"from": "a,b]"} , [1, 2] ], "x": {"conversations": [1]}}, {"conversations": [ ]}, {"conversations": 7, "y": "conversations"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		spans, err := Spans(bytes.NewReader(data))
		var rows []json.RawMessage
		if json.Unmarshal(data, &rows) != nil || rows == nil {
			return
		}
		for _, r := range rows {
			if r[0] != '{' {
				return
			}
		}
		if err != nil || len(spans) != len(rows) {
			t.Fatalf("%d spans (%v), %d rows", len(spans), err, len(rows))
		}
		for i, s := range spans {
			var row map[string]json.RawMessage
			var turns []json.RawMessage
			if json.Unmarshal(rows[i], &row) == nil && !bytes.Contains(rows[i], []byte(`\`)) {
				want := 0
				if value, ok := row[turnsKey]; ok {
					want = 2
					if json.Unmarshal(value, &turns) == nil && turns != nil {
						want = len(turns)
					}
				}
				if s.Turns != want {
					t.Fatalf("row %d %q has %d turns, want %d", i, rows[i], s.Turns, want)
				}
			}
			if got := data[s.Offset : s.Offset+s.Length]; !bytes.Equal(got, rows[i]) {
				t.Fatalf("span %d is %q, want %q", i, got, rows[i])
			}
		}
	})
}
