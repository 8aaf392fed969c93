package live

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/test/calltest"
)

// begin makes a run under way, of so many planned requests.
func begin(t *testing.T, planned int) (*rundir.Writer, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	w, err := rundir.Create(dir, result.Header{Schema: rundir.Schema, Model: "m", Requests: planned, Started: time.Now(), Simulated: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Abandon)
	return w, w.Unfinished()
}

// look reads a run again, whenever somebody did before.
func (w *Watch) look(t *testing.T, dir string) Now {
	t.Helper()
	w.of(dir).looked = time.Time{}
	n, err := w.Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// write appends lines to a file of a run, and what stands behind them.
func write(t *testing.T, dir, name string, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func lines(calls ...result.Call) string {
	var b []byte
	for i := range calls {
		b = append(calls[i].AppendJSON(b), '\n')
	}
	return string(b)
}

func TestLook(t *testing.T) {
	_, dir := begin(t, 10)
	w := NewWatch()
	n := w.look(t, dir)
	if n.Planned != 10 || n.Done != 0 || !math.IsNaN(n.TTFT50) || !math.IsNaN(n.Rate) || n.Ended || !math.IsNaN(n.Running) {
		t.Errorf("at its start: %+v", n)
	}
	calls := calltest.Steady(6, 100*time.Millisecond)
	calls[5] = calltest.Fail(calls[5], "refused")
	tokens := 0
	for _, c := range calls[:5] {
		k, _ := c.Output()
		tokens += k
	}
	text := lines(calls...)
	cut := len(text) - 30
	write(t, dir, rundir.CallsFile, text[:cut])
	if n = w.look(t, dir); n.Done != 5 || n.Failed != 0 || n.Tokens != tokens {
		t.Errorf("a line that is half written: %+v", n)
	}
	write(t, dir, rundir.CallsFile, text[cut:]+"no call\n\n")
	n = w.look(t, dir)
	if n.Done != 6 || n.Failed != 1 || len(n.Errors) != 1 || n.Errors[0] != (Count{"refused", 1}) || n.LastError != "it broke" || n.Behind != 0 {
		t.Errorf("%+v", n)
	}
	if n.TTFT50 < 40 || n.TTFT50 > 60 || n.TPOT99 < 9 || n.TPOT99 > 11 {
		t.Errorf("TTFT %v, TPOT %v", n.TTFT50, n.TPOT99)
	}
	calls[0].Index = 7
	write(t, dir, rundir.UncountedFile, lines(calls[0], calls[1]))
	if n = w.look(t, dir); n.Done != 7 {
		t.Errorf("a call that is in both files counts once: %d", n.Done)
	}
}

// TestOnce: what somebody read a moment ago is not read again, and each byte once.
func TestOnce(t *testing.T) {
	_, dir := begin(t, 10)
	w := NewWatch()
	w.look(t, dir)
	write(t, dir, rundir.CallsFile, lines(calltest.Steady(2, time.Second)...))
	if n, err := w.Look(dir); err != nil || n.Done != 0 {
		t.Errorf("%d calls at once, %v", n.Done, err)
	}
	for range 3 {
		if n := w.look(t, dir); n.Done != 2 {
			t.Errorf("%d calls", n.Done)
		}
	}
}

// TestBehind: a run that was long before somebody came is read in parts, which are said.
func TestBehind(t *testing.T) {
	_, dir := begin(t, 0)
	line := lines(calltest.Stream(0, 0, time.Millisecond))
	pad := strings.Repeat(" ", 4096)
	var b strings.Builder
	n := 0
	for b.Len() < mostRead+mostRead/2 {
		b.WriteString(pad + strings.Replace(line, `"index":0`, fmt.Sprintf(`"index":%d`, n), 1))
		n++
	}
	write(t, dir, rundir.CallsFile, b.String())
	w := NewWatch()
	first := w.look(t, dir)
	if first.Done == 0 || first.Done >= n || first.Behind < 0.3 || first.Behind > 0.4 {
		t.Errorf("first: %d of %d, behind %v", first.Done, n, first.Behind)
	}
	if all := w.look(t, dir); all.Done != n || all.Behind != 0 {
		t.Errorf("then: %d of %d, behind %v", all.Done, n, all.Behind)
	}
}

func TestEnds(t *testing.T) {
	writer, dir := begin(t, 10)
	w := NewWatch()
	if n := w.look(t, dir); n.Ended {
		t.Error("it has ended while somebody is at work on it")
	}
	writer.Abandon()
	if n := w.look(t, dir); !n.Ended {
		t.Error("it goes on after its process is gone")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	w.of(dir).looked = time.Time{}
	if _, err := w.Look(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a directory that is gone: %v", err)
	}
	for _, other := range []string{"", dir + "-never-seen"} {
		if _, err := w.Look(other); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of %q: %v", other, err)
		}
	}
}

// TestReadings: what replicas and devices say is one figure.
func TestReadings(t *testing.T) {
	writer, dir := begin(t, 10)
	keep := writer.KeepReadings()
	for i := range 2 {
		keep(gauge.Reading{At: time.Second, Source: gauge.SourceEngine, Index: i, Values: map[string]float64{running: 3, waiting: 1, cacheInUse: 0.25}})
		keep(gauge.Reading{At: 2 * time.Second, Source: gauge.SourceGPU, Index: i, Values: map[string]float64{gauge.GPUUtilization: float64(i)}})
	}
	write(t, dir, rundir.CallsFile, lines(calltest.Steady(40, 100*time.Millisecond)...))
	w := NewWatch()
	for { // readings are written by a goroutine of their own
		if n := w.look(t, dir); n.Running == 6 && n.Waiting == 2 {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("the readings never came")
		}
	}
	for _, p := range Plots() {
		f, ok, err := w.Figure(dir, p.Name)
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", p.Name, ok, err)
		}
		if _, err := f.JSON(); err != nil || !f.Simulated || len(f.Time.Series) == 0 || len(f.Time.Series[0].Seconds) == 0 {
			t.Errorf("%s: %v, %+v", p.Name, err, f.Time)
		}
	}
	if _, ok, err := w.Figure(dir, "nothing"); ok || err != nil {
		t.Errorf("a plot that there is not: %v, %v", ok, err)
	}
}

// TestBounded: whatever comes, what is kept of it has a bound, and counts stay exact.
func TestBounded(t *testing.T) {
	s := state{errors: map[string]int{}}
	const n = 50_000
	for i := range n {
		c := calltest.Stream(i, time.Duration(i)*time.Second, time.Millisecond, 2*time.Millisecond)
		if i%10 == 0 {
			c = calltest.Fail(c, result.Class(fmt.Sprint("class ", i)))
		}
		s.call(c.AppendJSON(nil))
		s.reading(fmt.Appendf(nil, `{"at_ns":%d,"source":"engine","values":{"running":1}}`, i))
	}
	done, failed := 0, 0
	for _, b := range s.bins {
		done, failed = done+b.done, failed+b.failed
		if len(b.ttft) > mostTTFT {
			t.Fatalf("%d values in a bin", len(b.ttft))
		}
	}
	if done != n || failed != n/10 || s.done != n || len(s.bins) > mostBins || len(s.errors) > mostClasses+1 || len(s.gauges) > mostGauges || len(s.gauges) < mostGauges/4 {
		t.Errorf("%d calls, %d failed, %d bins, %d classes, %d points", done, failed, len(s.bins), len(s.errors), len(s.gauges))
	}
}

// TestForgets: runs that nobody looks at are let go of.
func TestForgets(t *testing.T) {
	w := NewWatch()
	for i := range 3 * mostRuns {
		w.of(fmt.Sprint(i))
	}
	if len(w.runs) > mostRuns {
		t.Errorf("%d runs are kept", len(w.runs))
	}
}

// FuzzLines: no line of a file stops a watch.
func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"index":1,"due_ns":0,"ready_ns":0,"sent_ns":1,"end_ns":5,"chunk_ns":[3]}`))
	f.Add([]byte(`{"index":-1,"end_ns":9223372036854775807}`))
	f.Add([]byte(`{"at_ns":5,"source":"engine","values":{"running":1e308}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r := newRun("x")
		r.call(line)
		r.reading(line)
		r.sum(time.Now())
		if len(r.bins) > mostBins {
			t.Errorf("%d bins", len(r.bins))
		}
	})
}
