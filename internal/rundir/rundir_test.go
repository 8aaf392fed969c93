package rundir

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/gauge"
	"perflab/internal/result"
)

func someCalls(n int) []result.Call {
	calls := make([]result.Call, n)
	for i := range calls {
		at := time.Duration(i) * time.Millisecond
		calls[i] = result.Call{
			Index: i, Due: at, Ready: at, Sent: at, Headers: at + 1000, End: at + 9000, Status: 200, Finish: "length",
			Chunks: []result.Chunk{{At: at + 2000, Tokens: 1}, {At: at + 8000, Tokens: 1}},
			Usage:  &result.Usage{Prompt: 5, Completion: 2},
		}
	}
	return calls
}

func startRun(t *testing.T, dir string, calls []result.Call) *Writer {
	t.Helper()
	w, err := Create(dir, result.Header{Schema: "perflab.run/1", Model: "m", Requests: len(calls), Spec: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		w.Add(&calls[i])
	}
	return w
}

// TestRunDirectory: what was written is read back, under the final name only
// when it is complete.
func TestRunDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	calls := someCalls(3)
	w := startRun(t, dir, calls)
	if IsRun(dir) != true || exists(dir) {
		t.Error("a run under way has its final name, or none at all")
	}
	if err := w.Finish(&result.Client{Wall: time.Second, Procs: 2}, &result.Summary{Figures: map[string]float64{"completed": 3}}, nil); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(calls, r.Calls); d != "" || r.Partial || r.Damage != "" || r.Client.Wall != time.Second || r.Header.Model != "m" {
		t.Errorf("read back %+v\n%s", r, d)
	}
	if _, err := Create(dir, result.Header{}); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a run was to be overwritten: %v", err)
	}
}

// TestPartialRunIsKept: the calls of a run that was killed are not lost to the
// next one of the same name, unless that one asks for its place.
func TestPartialRunIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w := startRun(t, dir, someCalls(3))
	w.Abandon()
	for _, name := range []string{dir, dir + "/"} {
		if _, err := Create(name, result.Header{}); err == nil || !strings.Contains(err.Error(), "run.tmp holds a run") {
			t.Errorf("%s: a partial run was to be overwritten: %v", name, err)
		}
	}
	if r, err := OpenRun(dir); err != nil || len(r.Calls) != 3 {
		t.Errorf("the partial run is gone: %v", err)
	}
	if err := ClearPartial(dir); err != nil {
		t.Fatal(err)
	}
	startRun(t, dir, nil).Abandon()
}

// TestPartialRun: a process that was killed leaves a header, whole calls and
// one that was cut; they can still be summarised.
func TestPartialRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w := startRun(t, dir, someCalls(3))
	if err := w.calls.buf.Flush(); err != nil {
		t.Fatal(err)
	}
	info, err := w.calls.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.calls.file.Truncate(info.Size() - 7); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Resummarise()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Calls) != 2 || !r.Partial || !s.Partial || s.Figures["completed"] != 2 {
		t.Errorf("%d calls, partial %v and %v, %v completed", len(r.Calls), r.Partial, s.Partial, s.Figures["completed"])
	}
}

// TestCallsAreSaved: a call is with the kernel within a second of its end, also
// where none follows it.
func TestCallsAreSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	synctest.Test(t, func(t *testing.T) {
		calls := someCalls(4)
		w := startRun(t, dir, calls[:3])
		stored := func() int {
			r, err := OpenRun(dir)
			if err != nil {
				t.Fatal(err)
			}
			return len(r.Calls)
		}
		time.Sleep(time.Second)
		if n := stored(); n != 3 {
			t.Errorf("%d calls are stored a second later, want 3", n)
		}
		w.Add(&calls[3])
		time.Sleep(time.Second)
		if n := stored(); n != 4 {
			t.Errorf("%d calls are stored a second after the last, want 4", n)
		}
		w.Add(&calls[0])
		w.Abandon() // with a call that waits
		if n := stored(); n != 5 {
			t.Errorf("%d calls are stored after the end, want 5", n)
		}
	})
}

// TestUncounted: calls that are counted at the end are on disk before, and once only
// whenever the run is cut off; a run that was finished has them in the one file.
func TestUncounted(t *testing.T) {
	calls := someCalls(4)
	for cut := range 5 { // so many calls were counted
		dir := filepath.Join(t.TempDir(), "run")
		w := startRun(t, dir, calls[:1])
		for i := range calls[1:] {
			w.AddUncounted(&calls[1+i])
		}
		for i := range calls[1:max(1, cut)] {
			c := calls[1+i]
			c.Recount = 2
			w.Add(&c)
		}
		if cut < 4 {
			w.Abandon()
		} else if err := w.Finish(&result.Client{}, &result.Summary{}, nil); err != nil {
			t.Fatal(err)
		}
		r, err := OpenRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		recounted := 0
		for _, c := range r.Calls {
			recounted += c.Recount / 2
		}
		if len(r.Calls) != 4 || r.Damage != "" || recounted != max(0, cut-1) || exists(filepath.Join(dir, UncountedFile)) {
			t.Errorf("cut off after %d: %d calls, %d counted, damage %q", cut, len(r.Calls), recounted, r.Damage)
		}
	}
}

// TestFullDisk: a disk without space is named once, and what was written stays
// in the unfinished directory.
// TestEndlessLine: a file without lines costs a sentence and not the memory.
func TestEndlessLine(t *testing.T) {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Skip(err)
	}
	zero.Close()
	dir := t.TempDir()
	if err := os.Symlink("/dev/zero", filepath.Join(dir, CallsFile)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err = range Calls(dir) {
		n++
	}
	want := CallsFile + ": line 1: the file has a line of more than 64 MiB, which is more than such a file can have: see whether it is the right one"
	if n != 1 || err == nil || err.Error() != want {
		t.Errorf("%d calls, %v", n, err)
	}
	r := &Run{}
	if err := r.readReadings("/dev/zero"); err == nil || !strings.Contains(err.Error(), "a line of more than 64 MiB") {
		t.Errorf("readings: %v", err)
	}
}

func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no device that is always full: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	w := startRun(t, dir, nil)
	w.calls.file.Close()
	w.calls.file, w.calls.buf = full, bufio.NewWriterSize(full, 64)
	for _, c := range someCalls(10) {
		w.Add(&c)
	}
	err = w.Finish(nil, &result.Summary{}, nil)
	if !errors.Is(err, syscall.ENOSPC) || strings.Count(err.Error(), "no space left") != 1 {
		t.Errorf("finish: %v", err)
	}
	if exists(dir) || !exists(filepath.Join(dir+".tmp", headerFile)) {
		t.Error("the unfinished directory has the final name, or is gone")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestReadingsAreSaved: readings are with the kernel within a second, in the order in which they
// came, and those of a run that was killed are read in the order of time. A run that ends has all of them
// as Finish gives them, and without any there is no file.
func TestReadingsAreSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	synctest.Test(t, func(t *testing.T) {
		w := startRun(t, dir, someCalls(3))
		keep := w.KeepReadings()
		for _, at := range []time.Duration{-time.Second, 2 * time.Second, time.Second} {
			keep(gauge.Reading{At: at, Source: gauge.SourceHost, Values: map[string]float64{gauge.CPUUtilization: 0.5}})
		}
		time.Sleep(time.Second)
		r, err := OpenRun(dir)
		if err != nil || len(r.Readings) != 3 || r.Damage != "" || r.Readings[2].At != 2*time.Second || r.Readings[0].Values[gauge.CPUUtilization] != 0.5 {
			t.Fatalf("%+v, %v", r, err)
		}
		all := []gauge.Reading{{At: 7, Source: gauge.SourceGPU, Values: map[string]float64{}}}
		if err := w.Finish(&result.Client{}, &result.Summary{}, all); err != nil {
			t.Fatal(err)
		}
		keep(all[0]) // too late, and harmless
		if r, err = OpenRun(dir); err != nil || cmp.Diff(all, r.Readings) != "" {
			t.Errorf("%+v, %v", r.Readings, err)
		}
		without := filepath.Join(t.TempDir(), "run")
		w = startRun(t, without, someCalls(1))
		w.KeepReadings()
		if err := w.Finish(&result.Client{}, &result.Summary{}, nil); err != nil || exists(filepath.Join(without, TelemetryFile)) {
			t.Errorf("a file of no readings, %v", err)
		}
	})
}
