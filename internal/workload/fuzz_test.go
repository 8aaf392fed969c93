package workload

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"perflab/internal/token"
)

// fuzzDataset opens any bytes as a dataset: an error, or a workload that keeps
// the package's invariants.
func fuzzDataset(f *testing.F, dataset string) {
	path := filepath.Join(f.TempDir(), "data")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := Open(Spec{Dataset: dataset, Path: path, NoOversample: dataset == "sharegpt" || dataset == "jsonl"})
		if err != nil {
			return
		}
		drops, read := w.Dropped()
		for _, d := range drops {
			read -= d.Rows
		}
		if read != w.Len() {
			t.Fatalf("%d rows are neither sent nor accounted for", read-w.Len())
		}
		if w.Totals().Input > 100_000 {
			return
		}
		last := w.request(0).Due
		for r := range w.All() {
			if r.Due < last || r.Input < 1 || r.Output < 0 || token.Count(r.Prompt) != r.Input {
				t.Fatalf("request %+v", r)
			}
			last = r.Due
		}
	})
}

func FuzzShareGPT(f *testing.F) {
	f.Add([]byte(shareGPT([2]int{4, 4}, [2]int{2000, 1})))
	f.Add([]byte(`[{"conversations":[{"value":"\u0041 \\\" b c d"},{"value":"e f g h"}]}]`))
	f.Add([]byte(`[[{}]`))
	fuzzDataset(f, "sharegpt")
}

func FuzzAzure(f *testing.F) {
	f.Add([]byte(azureText))
	f.Add([]byte("\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\n\"2024-05-10 00:00:02.5+00:00\",9,1\n"))
	fuzzDataset(f, "azure")
}

func FuzzMooncake(f *testing.F) {
	f.Add([]byte(mooncakeText))
	f.Add([]byte(`{"timestamp": -2.5, "input_length": 1, "output_length": 1, "hash_ids": [-9]}`))
	fuzzDataset(f, "mooncake")
}

func FuzzJSONL(f *testing.F) {
	f.Add([]byte(`{"prompt": "a b", "output_tokens": 3}` + "\n\n" + `{"messages": [{"role": "user", "content": "c"}]}`))
	f.Add([]byte(`{"prompt": ""}`))
	fuzzDataset(f, "jsonl")
}

// Any array of objects that encoding/json takes has as many spans, each of
// them the element's own text.
func FuzzArraySpans(f *testing.F) {
	f.Add([]byte(`[{"a": "}]\\\""}, {"b": [{}]}]`))
	f.Add([]byte(`[ ]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		spans, err := arraySpans(bytes.NewReader(data))
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
			if got := data[s.offset : s.offset+s.length]; !bytes.Equal(got, rows[i]) {
				t.Fatalf("span %d is %q, want %q", i, got, rows[i])
			}
		}
	})
}

func FuzzRate(f *testing.F) {
	for _, s := range []string{"8", `"inf"`, `"0.5"`, "-1", `"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r, back Rate
		if json.Unmarshal(data, &r) != nil || string(bytes.TrimSpace(data)) == "null" {
			return
		}
		b, err := json.Marshal(r)
		if err != nil || !(r > 0) {
			t.Fatalf("%s: %v, %v", data, float64(r), err)
		}
		if err := json.Unmarshal(b, &back); err != nil || back != r {
			t.Fatalf("%s becomes %s becomes %v (%v)", data, b, back, err)
		}
	})
}
