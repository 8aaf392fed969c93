package datafile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pq "github.com/parquet-go/parquet-go"
)

func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// read collects rows by number.
func read(path string, numbers ...int) (out []Row, err error) {
	for r, err := range Rows(path, numbers) {
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	return out, nil
}

func TestJSON(t *testing.T) {
	for name, text := range map[string]string{
		"lines":     "\xef\xbb\xbf{\"a\": \"x\"}\n\n  {\"a\": [1, {\"b\": null}]}\r\n{\"a\": true}",
		"an array":  " \n[{\"a\": \"x\"},\n {\"a\": [1, {\"b\": null}]}, {\"a\": true}]\n",
		"one line?": "{\"a\": \"x\"}\n{\"a\": [1, {\"b\": null}]}\n{\"a\": true}\n",
	} {
		path := file(t, "x.json", text)
		if n, err := Count(path); n != 3 || err != nil {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
		got, err := read(path, 0, 2)
		if d := cmp.Diff([]Row{{"a": "x"}, {"a": true}}, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
		if got, err = read(path, 1); err != nil || cmp.Diff([]Row{{"a": []any{1.0, map[string]any{"b": nil}}}}, got) != "" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if n, err := Count(file(t, "x.jsonl", " \n")); n != 0 || err != nil {
		t.Errorf("an empty file has %d rows, %v", n, err)
	}
}

// testdata/rows.parquet is by another writer: testdata/rows.py.
func TestParquet(t *testing.T) {
	path := "testdata/rows.parquet"
	if n, err := Count(path); n != 700 || err != nil {
		t.Fatalf("%d rows, %v", n, err)
	}
	numbers := []int{0, 1, 299, 300, 431, 699}
	got, err := read(path, numbers...)
	if err != nil || len(got) != len(numbers) {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	for k, i := range numbers {
		none := any("x")
		if i%2 == 1 {
			none = nil
		}
		want := Row{
			"conversations": []any{
				map[string]any{"from": "human", "value": fmt.Sprintf("question %d é", i)},
				map[string]any{"from": "gpt", "value": strings.Repeat("answer ", i%3)},
			},
			"turns": []any{fmt.Sprintf("t%da", i), fmt.Sprintf("t%db", i)}, "problem": fmt.Sprintf("p%d", i), "share": float64(i) / 8, "n": int64(i), "none": none,
		}
		raw, ok := got[k].Text("raw")
		if delete(got[k], "raw"); !ok || raw != "bytes" {
			t.Errorf("row %d: bytes %q", i, raw)
		}
		if d := cmp.Diff(want, got[k]); d != "" {
			t.Errorf("row %d (-want +got):\n%s", i, d)
		}
	}
	if p, ok := got[1].Text("problem"); p != "p1" || !ok {
		t.Errorf("text %q", p)
	}
	if _, ok := got[1].Text("n"); ok {
		t.Error("a number is text")
	}
}

func TestFaults(t *testing.T) {
	whole, err := os.ReadFile("testdata/rows.parquet")
	if err != nil {
		t.Fatal(err)
	}
	cut := string(whole[:len(whole)/2])
	for _, tt := range []struct{ text, want string }{
		{"a,b\n1,2\n", "it is neither Parquet nor JSON"},
		{"{\"a\": 1}\n{\"a\":", "line 2 is no JSON object: is the file complete?"},
		{"[{\"a\": 1}, {\"a\"", "row 2: "},
		{"[{\"a\": 1}", "the list has no end"},
		{"PAR1", "it has 4 bytes, which is too short for Parquet"},
		{"PAR1" + strings.Repeat("x", 20), "it is damaged: a footer of"},
		{cut, "it is damaged: a footer of"},
	} {
		if _, err := Count(file(t, "data", tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.20q: %v, want %s", tt.text, err, tt.want)
		}
	}
	for _, tt := range []struct{ path, want string }{
		{file(t, "x", "{\"a\": 1}\n[2]\n"), "row 2 is no JSON object"},
		{file(t, "x", "{\"a\": 1}\n"), "there is no row 2: it has 1"},
		{"nowhere.json", "no such file"},
	} {
		if _, err := read(tt.path, 0, 1); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	if _, err := read("testdata/rows.parquet", 700); err == nil || !strings.Contains(err.Error(), "there is no row 701: it has 700") {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	tree := func(names ...string) string {
		dir := t.TempDir()
		for _, name := range names {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	gsm8k := tree("README.md", "main/train-00000-of-00001.parquet", "main/test-00000-of-00001.parquet", "socratic/test-00000-of-00001.parquet", ".cache/main/test-00000-of-00009.parquet")
	math := tree("data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet", "data/test-00000-of-00001.parquet", "data/extra.json")
	for _, tt := range []struct {
		dir, subset, split, want, fault string
	}{
		{gsm8k, "main", "test", "main/test-00000-of-00001.parquet", ""},
		{gsm8k, "socratic", "test", "socratic/test-00000-of-00001.parquet", ""},
		{gsm8k, "", "test", "", "has several subsets: choose one of main, socratic"},
		{gsm8k, "minor", "test", "", "has no subset minor: it has main, socratic"},
		{gsm8k, "main", "validation", "", "has no split validation: it has test, train"},
		{math, "", "train", "data/train-00000-of-00002.parquet data/train-00001-of-00002.parquet", ""},
		{math, "default", "test", "data/test-00000-of-00001.parquet", ""},
		{math, "en", "test", "", "has no subset en"},
		{tree("openai_humaneval/test-00000-of-00001.parquet"), "", "test", "openai_humaneval/test-00000-of-00001.parquet", ""},
		{tree("question.jsonl", "dataset_info.json", "notes.txt"), "", "train", "question.jsonl", ""},
		{tree("question.jsonl"), "", "test", "", "has no split test: it has train"},
		{tree("train.jsonl", "eval.jsonl", "other.jsonl"), "", "test", "eval.jsonl", ""},
		{tree("x/valid/1.json", "x/valid/2.json", "x/train/1.json"), "", "validation", "x/valid/1.json x/valid/2.json", ""},
		{tree("data/train_sft-00000-of-00001.parquet"), "", "train_sft", "data/train_sft-00000-of-00001.parquet", ""},
		{tree("notes.txt", "a.csv"), "", "train", "", "has no file that is read (.parquet, .jsonl, .json)"},
		{"nowhere", "", "train", "", "look for data files: "},
	} {
		got, err := Find(tt.dir, tt.subset, tt.split)
		for i, f := range got {
			rel, _ := filepath.Rel(tt.dir, f)
			got[i] = filepath.ToSlash(rel)
		}
		switch {
		case tt.fault != "":
			if err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%s %s: %v, want %s", tt.subset, tt.split, err, tt.fault)
			}
		case err != nil || strings.Join(got, " ") != tt.want:
			t.Errorf("%s %s: %v, %v", tt.subset, tt.split, got, err)
		}
	}
	_, err := Find(gsm8k, "", "test")
	if c, ok := errors.AsType[*ChoiceError](err); !ok || c.What != "subset" {
		t.Errorf("%v", err)
	}
}

// FuzzRows: any bytes are an error, or as many rows as are counted.
func FuzzRows(f *testing.F) {
	var small bytes.Buffer
	type row struct {
		Question string   `parquet:"question"`
		Turns    []string `parquet:"turns,list"`
	}
	if err := pq.Write(&small, []row{{"why?", []string{"a", "b"}}, {Question: "how?"}}); err != nil {
		f.Fatal(err)
	}
	f.Add(small.Bytes())
	f.Add([]byte("{\"a\": 1}\n{\"a\": {\"b\": []}}\n"))
	f.Add([]byte(`[{"a": 1}, {"a": null}]`))
	path := filepath.Join(f.TempDir(), "data")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := Count(path)
		if err != nil || n > 1000 {
			return
		}
		numbers := make([]int, n)
		for i := range numbers {
			numbers[i] = i
		}
		got, err := read(path, numbers...)
		if err == nil && len(got) != n {
			t.Fatalf("%d rows of %d", len(got), n)
		}
		if err != nil && json.Valid(data) && len(data) > 0 && data[0] == '{' {
			t.Fatalf("one object: %v", err)
		}
	})
}
