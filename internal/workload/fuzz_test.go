package workload

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fuzzDataset opens any bytes as a dataset: an error, or a workload that keeps
// the package's invariants.
func fuzzDataset(f *testing.F, dataset string) {
	path := filepath.Join(f.TempDir(), "data")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := Open(Spec{Dataset: dataset, Path: path, NoOversample: takesNoOversample(dataset)})
		if err != nil {
			return
		}
		drops, read := w.Dropped()
		for _, d := range drops {
			read -= d.Rows
		}
		if rows := len(w.src.rows); read != rows {
			t.Fatalf("%d rows are neither sent nor accounted for", read-rows)
		}
		if w.Totals().Input > 100_000 {
			return
		}
		last := w.request(0).Due
		for r := range w.All() {
			if r.Due < last {
				t.Fatalf("request %+v", r)
			}
			last = r.Due
			for more := true; more; r, _, more = w.Next(r, "") {
				if r.Input < 1 && r.Images == nil || r.Output < 0 || r.tokens() != r.Input {
					t.Fatalf("request %+v", r)
				}
			}
		}
	})
}

// takesNoOversample reports whether the field applies to a dataset.
func takesNoOversample(dataset string) bool {
	_, ok := Spec{Dataset: dataset}.row().param("no_oversample")
	return ok
}

func FuzzShareGPT(f *testing.F) {
	f.Add([]byte(shareGPTFile([2]int{4, 4}, [2]int{2000, 1})))
	f.Add([]byte(`[{"conversations":[{"value":"\u0041 \\\" b c d"},{"value":"e f g h"}]}]`))
	f.Add([]byte(`[[{}]`))
	fuzzDataset(f, "sharegpt")
}

func FuzzAzure(f *testing.F) {
	f.Add([]byte(azureText))
	f.Add([]byte("\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\n\"2024-05-10 00:00:02.5+00:00\",9,1\n"))
	fuzzDataset(f, "azure")
}

func FuzzBurstGPT(f *testing.F) {
	f.Add([]byte(burstText))
	f.Add([]byte("Response tokens,Timestamp,Model,Request tokens,Session ID\n1,1e3,GPT-4,7,x\n2,-2.25,ChatGPT,1,\n"))
	fuzzDataset(f, "burstgpt")
}

func FuzzAgents(f *testing.F) {
	f.Add([]byte(`{"turns":[{"input_tokens":5,"output_tokens":1,"blocks":[7]},{"agent":"sub","input_tokens":6,"output_tokens":1,"after":[0],"idle_s":0.5}]}`))
	f.Add([]byte(`{"block_size":4,"requests":[{"t":1,"type":"n","in":10,"out":5,"hash_ids":[1],"api_time":2}]} {"turns":[]}`))
	fuzzDataset(f, "agents")
}

func FuzzMooncake(f *testing.F) {
	f.Add([]byte(mooncakeText))
	f.Add([]byte(`{"timestamp": -2.5, "input_length": 1, "output_length": 1, "hash_ids": [-9]}`))
	fuzzDataset(f, "mooncake")
}

func FuzzJSONL(f *testing.F) {
	f.Add([]byte(`{"prompt": "a b", "output_tokens": 3}` + "\n\n" + `{"messages": [{"role": "user", "content": "c"}]}`))
	f.Add([]byte(`{"prompt": ""}`))
	f.Add([]byte(`{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "t"}, {"type": "image_url", "image_url": {"url": "data:,"}}]}], "tools": [], "fields": {"a": 1}}`))
	fuzzDataset(f, "jsonl")
}

func FuzzConversations(f *testing.F) {
	f.Add([]byte(shareGPTFile([2]int{4, 4}, [2]int{20, 1})))
	f.Add([]byte(`{"messages": [{"role": "user", "content": "a b"}, {"role": "assistant", "content": "c"}, {"role": "user", "content": "d"}, {"role": "assistant", "content": "e"}]}`))
	f.Add([]byte(` [{"system": "x", "conversations": [{"from": "gpt", "value": "a"}, {"from": "human", "value": "b"}, {"from": "gpt", "value": "c"}]}]`))
	fuzzDataset(f, "conversations")
}

// FuzzSteps: any text is an error, or steps that hold as many evenly spaced
// requests as their rates say.
func FuzzSteps(f *testing.F) {
	for _, s := range []string{"2:30s,8:60s,2:30s", "0:1,5:0.5", "1e3:1ms", ":", "3:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		segments, err := parseSteps(text)
		if err != nil {
			return
		}
		want, span := 0.0, 0.0
		for _, g := range segments {
			want += g.From * g.Seconds
			span += g.Seconds
		}
		if want > 1e5 || span > 1e6 {
			return
		}
		due, err := dueInTime(Spec{Steps: text, Arrival: "constant"})
		if n := float64(len(due)); n < want-1e-6 || n > want+1 || (err != nil) != (want < 1e-9) {
			t.Fatalf("%d requests (%v), %g are due", len(due), err, want)
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

// FuzzVerses: the lines of any poem are words that end.
func FuzzVerses(f *testing.F) {
	f.Add(sonnets[:min(len(sonnets), 600)])
	f.Add("\r\n\xa0\n\x00 a\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := verses(strings.NewReader(text))
		if err == nil && len(lines) == 0 {
			t.Fatal("no line and no error")
		}
		for _, line := range lines {
			if strings.TrimSpace(line) == "" || !strings.HasSuffix(line, "\n") {
				t.Errorf("line %q", line)
			}
		}
	})
}
