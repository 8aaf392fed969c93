package interop

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/block"
	"perflab/internal/interop/callcsv"
	"perflab/internal/result"
)

func csvOf(t testing.TB, h result.Header, calls []result.Call) string {
	t.Helper()
	var b bytes.Buffer
	if err := callcsv.Write(&b, h, slices.Values(calls)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCSVRoundTrip(t *testing.T) {
	h, calls := madeRun()
	f := Read("calls.csv", []byte(csvOf(t, h, calls)))
	if len(f.Faults) > 0 || len(f.Runs) != 1 {
		t.Fatalf("%d runs, faults %v", len(f.Runs), f.Faults)
	}
	r := f.Runs[0]
	for i := range calls {
		want := calls[i]
		want.Text = strings.ReplaceAll(want.Text, "\r\n", "\n") // as package csv has it
		if d := cmp.Diff(want, r.Calls[i]); d != "" {
			t.Errorf("call %d: -written +read\n%s", i, d)
		}
	}
	own, err := result.Summarize(h, &result.Client{}, result.Options{}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Summary()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(own.Figures, s.Figures); d != "" {
		t.Errorf("figures: -ours +read\n%s", d)
	}
	if !s.Simulated || r.Header.Model != h.Model || !r.Header.Started.Equal(h.Started) || r.Header.Imported.Client != clientPerflab {
		t.Errorf("header %+v", r.Header)
	}
}

// A fact that a call gets later must get a column.
func TestCSVHasAll(t *testing.T) {
	var full result.Call
	v := reflect.ValueOf(&full).Elem()
	fill(v)
	full.Usage = &result.Usage{Prompt: 1, Completion: 2, Cached: 3, Reasoning: 4}
	full.Chunks, full.Empty = []result.Chunk{{At: 5, Tokens: 2, Read: 1}}, []result.Stamp{{At: 4, Read: 1}}
	full.Late = []result.LateRead{{Read: 1, By: 3}}
	f := Read("c.csv", []byte(csvOf(t, result.Header{}, []result.Call{full})))
	if len(f.Faults) > 0 {
		t.Fatal(f.Faults)
	}
	if d := cmp.Diff(full, f.Runs[0].Calls[0]); d != "" {
		t.Errorf("-written +read\n%s", d)
	}
}

// fill sets every plain field to something.
func fill(v reflect.Value) {
	for i := range v.NumField() {
		switch x := v.Field(i); x.Kind() {
		case reflect.Int, reflect.Int64:
			x.SetInt(int64(i + 1))
		case reflect.String:
			x.SetString("x, \"y\"")
		case reflect.Bool:
			x.SetBool(true)
		case reflect.Struct:
			fill(x)
		}
	}
}

func TestCSVFaults(t *testing.T) {
	h, calls := madeRun()
	calls[3].Error, calls[6].Text = "", "" // no line ends
	good := csvOf(t, h, calls)
	lines := strings.SplitAfter(good, "\n")
	edit := func(n int, from, to string) string {
		bad := slices.Clone(lines)
		bad[n] = strings.Replace(bad[n], from, to, 1)
		return strings.Join(bad, "")
	}
	for _, test := range []struct {
		name, data, want string
		line, calls      int
	}{
		{"good", good, "", 0, 14},
		{"missing column", edit(0, "sent_ns", "sent"), "no column sent_ns", 1, 0},
		{"another column", edit(0, "finish", "later"), "", 0, 14},
		{"a number", edit(2, "1,0,", "1,x,"), `target is "x"`, 3, 13},
		{"a needed one", edit(2, "1,0,", ",0,"), "index is empty", 3, 13},
		{"fields", edit(4, "\n", ",1\n"), "fields and the head", 5, 13},
		{"a quote", edit(4, ",stop,", `,st"op,`), "row cannot be read", 5, 13},
		{"a list", edit(2, "1 2 1 2 1", "1 2"), "chunk_tokens has 2 numbers for 5", 3, 13},
		{"no rows", lines[0], "no call", 1, 0},
	} {
		f := Read("c.csv", []byte(test.data))
		got := 0
		if len(f.Runs) > 0 {
			got = len(f.Runs[0].Calls)
		}
		switch {
		case got != test.calls:
			t.Errorf("%s: %d calls, want %d; faults %v", test.name, got, test.calls, f.Faults)
		case test.want == "" && len(f.Faults) > 0, test.want != "" && (len(f.Faults) != 1 || f.Faults[0].Line != test.line || !strings.Contains(f.Faults[0].Text, test.want)):
			t.Errorf("%s: faults %v, want %q in line %d", test.name, f.Faults, test.want, test.line)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	h, calls := madeRun()
	f.Add([]byte(csvOf(f, h, calls[:2])))
	f.Add([]byte("index,target,session," + "\n1,2,3\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := Read("f.csv", data)
		for _, r := range file.Runs {
			if _, err := r.Summary(); err != nil {
				t.Error(err)
			}
			again := Read("g.csv", []byte(csvOf(t, r.Header, r.Calls)))
			if len(again.Runs) != 1 || len(again.Runs[0].Calls) != len(r.Calls) {
				t.Errorf("%d calls are not read again: %v", len(r.Calls), again.Faults)
			}
		}
	})
}

// Lines of a block that say what a figure can be are taken for no figure, and a section that says
// of how many tokens its gaps are is the section still.
func TestOpenFiguresInBlock(t *testing.T) {
	s := result.Summary{
		Figures: map[string]float64{"completed": 3, "mean_itl_ms": 160, "p99_itl_ms": 182.5, "mean_itl_token_ms": 20, "tokens_per_chunk": 8, "tokens_per_read": 8},
		Bounds:  map[string][2]float64{"p99_itl_ms": {142.25, 190}},
	}
	block := block.Text(s, block.Style{})
	f := Read("bench.txt", []byte(block))
	if len(f.Faults) > 0 || len(f.Runs) != 1 {
		t.Fatalf("%d runs, faults %v of\n%s", len(f.Runs), f.Faults, block)
	}
	got := map[string]float64{}
	for _, x := range f.Runs[0].Figures {
		got[x.Name] = x.Value
	}
	want := map[string]float64{"completed": 3, "mean_itl_ms": 160, "p99_itl_ms": 182.5, "mean_itl_token_ms": 20}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-printed +read\n%s\n%s", d, block)
	}
}
