package gauge

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func TestReadingsRoundTrip(t *testing.T) {
	want := []Reading{
		{At: -5, Source: SourceEngine, Index: 1, Values: map[string]float64{"running": 2}},
		{At: 7, Source: SourceGPU, Node: "b", Error: "no nvidia-smi"},
	}
	var b strings.Builder
	if err := Write(&b, want); err != nil {
		t.Fatal(err)
	}
	read := func(text string) (out []Reading, err error) {
		for r, err := range Read(strings.NewReader(text)) {
			if err != nil {
				return out, err
			}
			out = append(out, r)
		}
		return out, nil
	}
	if got, err := read(b.String()); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v: -written +read\n%s", err, cmp.Diff(want, got))
	}
	if got, err := read(b.String() + `{"at_ns": 9, "sou`); err != nil || len(got) != 2 {
		t.Errorf("a line that was cut off: %d readings, %v", len(got), err)
	}
	if _, err := read("{}\nno reading\n"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a broken line: %v", err)
	}
}

// A mean takes readings that cover a span, a growth readings around all of it, and a sum of
// tracks all of them.
func TestFewReadingsGiveNoFigure(t *testing.T) {
	readings := func(from, to int) Tracks {
		var r Telemetry
		for at := from; at <= to; at++ {
			r.Readings = append(r.Readings, Reading{At: seconds(at), Source: SourceGPU, Values: map[string]float64{GPUPower: 100}})
		}
		return r.Tracks(SourceGPU, GPUPower)
	}
	span := Span{From: 0, To: seconds(10)}
	for _, tt := range []struct {
		from, to     int
		mean, growth bool
	}{{-1, 11, true, true}, {0, 10, true, true}, {1, 10, true, false}, {2, 10, false, false}, {-1, 6, false, false}} {
		all := readings(tt.from, tt.to)
		if w, n, ok := all.SumOfMeans(span); ok != tt.mean || n != 1 || ok && w != 100 {
			t.Errorf("readings from %d s to %d s: mean %v of %d, %v", tt.from, tt.to, w, n, ok)
		}
		if v, ok := all.SumOfGrowths(span); ok != tt.growth || v != 0 {
			t.Errorf("readings from %d s to %d s: growth %v, %v", tt.from, tt.to, v, ok)
		}
		both := append(all, Track{Index: 1})
		if _, _, ok := both.SumOfMeans(span); ok {
			t.Error("a track without readings has a mean")
		}
	}
	if _, _, ok := (Tracks{}).SumOfMeans(span); ok {
		t.Error("no track has a mean")
	}
	if _, _, ok := readings(-1, 11).SumOfMeans(Span{}); ok {
		t.Error("an empty span has a mean")
	}
}

// FuzzRead: readings are read up to the first fault, and what was read is written and read
// again the same.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"at_ns":1000,"source":"gpu","index":1,"node":"a","values":{"power_w":300.5}}` + "\n" + `{"at_ns":2000,"source":"engine","error":"refused"}` + "\n"))
	f.Add([]byte(`{"values":{"x":1e400}}` + "\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var all []Reading
		for r, err := range Read(bytes.NewReader(data)) {
			if err != nil {
				break
			}
			all = append(all, r)
		}
		var once, twice bytes.Buffer
		if err := Write(&once, all); err != nil {
			t.Fatal(err)
		}
		all = nil
		for r, err := range Read(bytes.NewReader(once.Bytes())) {
			if err != nil {
				t.Fatalf("%v in\n%s", err, once.Bytes())
			}
			all = append(all, r)
		}
		if err := Write(&twice, all); err != nil || !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Fatalf("%v; written as\n%s, then as\n%s", err, once.Bytes(), twice.Bytes())
		}
	})
}
