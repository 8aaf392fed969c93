package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/gauge"
)

// fakeSMI is the environment variable that makes the test binary be nvidia-smi, of
// the kind it names.
const fakeSMI = "PERFLAB_FAKE_NVIDIA_SMI"

func TestMain(m *testing.M) {
	if kind := os.Getenv(fakeSMI); kind != "" {
		os.Exit(playSMI(kind, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// playSMI answers as nvidia-smi does: refuses fields that the driver does not know,
// else writes a line a GPU every 20 ms until nobody reads.
func playSMI(kind string, args []string) int {
	query := strings.Split(strings.TrimPrefix(args[0], "--query-gpu="), ",")
	last := query[len(query)-1]
	if kind == "old" && last == "clocks_event_reasons.active" {
		fmt.Printf("Field %q is not a valid field to query.\n\n", last)
		return 2
	}
	if kind == "none" {
		fmt.Println("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
		return 9
	}
	done := make(chan os.Signal, 1)
	signal.Notify(done, os.Interrupt)
	for {
		for gpu := range 2 {
			if _, err := fmt.Printf("%s, %d, 87, 70123, 81559, 612.34, 1755, 2619, 63, 0x0000000000000004\n", time.Now().Format(smiTime), gpu); err != nil {
				return 1
			}
		}
		select {
		case <-done:
			return 0
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// smi runs the test binary in nvidia-smi's place, found on PATH as it is.
func smi(t *testing.T, kind string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "nvidia-smi")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv(fakeSMI, kind)
}

// awaitReadings waits until the readings, counted by what key gives, are enough, or for
// ten seconds.
func awaitReadings(rec *Recording, enough func(n map[string]int) bool, key func(gauge.Reading) string) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		n := map[string]int{}
		for _, r := range rec.Readings(time.Now()) {
			n[key(r)]++
		}
		if enough(n) {
			return
		}
	}
}

func TestGPUProcess(t *testing.T) {
	for _, kind := range []string{"new", "old"} {
		smi(t, kind)
		sources := Local(time.Hour, nil)
		if len(sources) != 2 {
			t.Fatalf("%d sources on a machine with nvidia-smi, want host and GPUs", len(sources))
		}
		rec := Start(t.Context(), sources[1])
		start := time.Now()
		awaitReadings(rec, func(n map[string]int) bool { return n["0"] >= 3 && n["1"] >= 3 }, func(r gauge.Reading) string { return fmt.Sprint(r.Index) })
		rec.Stop()
		n := map[int]int{}
		for _, r := range rec.Readings(start) {
			if r.Error != "" || r.Values[gauge.GPUPower] != 612.34 || r.Values[gauge.ThrottlePower] != 1 {
				t.Errorf("%s: reading %+v", kind, r)
			}
			if r.At > time.Since(start) || r.At < -3*time.Second {
				t.Errorf("%s: a reading at %v of the run's clock", kind, r.At)
			}
			n[r.Index]++
		}
		if n[0] < 3 || n[1] < 3 {
			t.Errorf("%s: readings by GPU %v", kind, n)
		}
	}
}

func TestNoGPU(t *testing.T) {
	smi(t, "none")
	rec := Start(t.Context(), GPU("", time.Second, nil, LocalCommand))
	rec.Stop()
	got := rec.Readings(time.Now())
	if len(got) != 1 || !strings.Contains(got[0].Error, "couldn't communicate with the NVIDIA driver") || !strings.Contains(got[0].Error, "exit status 9") {
		t.Errorf("readings %+v", got)
	}
}

// TestGPURows reads recorded rows: of a device that does not tell its power, of one
// that is not asked for, of a line that is cut, and lines that came late together.
func TestGPURows(t *testing.T) {
	const rows = "2026/11/22 10:00:00.000, 0, 50, [N/A], 81559, 400.00, 1755, 2619, 63, 0x0000000000000060\n" +
		"2026/11/22 10:00:00.002, 1, 0, 4, 81559, [N/A], 345, 2619, 30, 0x0000000000000001\n" +
		"2026/11/22 10:00:00.002, 2, 99, 4, 81559, 10, 345, 2619, 30, Not Active\n" +
		"2026/11/22 10:00:00.500, 0, 100, [N/A], 81559, 500.00, 1755, 2619, 63, 0x0000000000000088\n"
	var got []gauge.Reading
	var at []time.Time
	before := time.Now()
	source := GPU("b", 250*time.Millisecond, []string{"0", "1"}, func(_ context.Context, argv []string, w io.Writer) error {
		if last := argv[len(argv)-2:]; last[0] != "-lms" || last[1] != "250" {
			t.Errorf("asked %q", argv)
		}
		for _, part := range []string{rows[:30], rows[30:]} {
			if _, err := io.WriteString(w, part); err != nil {
				t.Error(err)
			}
		}
		return errors.New("exit status 15")
	})
	source(t.Context(), func(when time.Time, r gauge.Reading) { got, at = append(got, r), append(at, when) })
	values := func(util, power, clock float64, more map[string]float64) map[string]float64 {
		v := map[string]float64{
			gauge.GPUUtilization: util, gauge.MemoryTotal: 81559 << 20, gauge.GPUPower: power, gauge.GPUClock: clock * 1e6,
			gauge.GPUMemoryClock: 2619e6, gauge.GPUTemperature: 63, gauge.ThrottlePower: 0, gauge.ThrottleHW: 0, gauge.ThrottleThermal: 0,
		}
		maps.Copy(v, more)
		return v
	}
	idle := values(0, 0, 345, map[string]float64{gauge.MemoryUsed: 4 << 20, gauge.GPUTemperature: 30})
	delete(idle, gauge.GPUPower)
	want := []gauge.Reading{
		{Source: gauge.SourceGPU, Node: "b", Values: values(0.5, 400, 1755, map[string]float64{gauge.ThrottleThermal: 1})},
		{Source: gauge.SourceGPU, Node: "b", Index: 1, Values: idle},
		{Source: gauge.SourceGPU, Node: "b", Values: values(1, 500, 1755, map[string]float64{gauge.ThrottleHW: 1, gauge.ThrottlePower: 1})},
		{Source: gauge.SourceGPU, Node: "b", Error: "nvidia-smi stopped in the middle: exit status 15"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("-want +got\n%s", d)
	}
	if d := at[2].Sub(at[0]); d != 500*time.Millisecond {
		t.Errorf("rows of half a second came %v apart", d)
	}
	if at[2].Before(before) || at[2].After(time.Now()) {
		t.Errorf("the newest row is of %v, it came between %v and now", at[2], before)
	}
}

// Devices that are named by UUID, whole or cut short, are told apart by it.
func TestGPUsByUUID(t *testing.T) {
	row := func(index int, uuid string) string {
		return fmt.Sprintf("2026/11/22 10:00:00.000, %d, 50, 4, 81559, 400.00, 1755, 2619, 63, 0x0, %s\n", index, uuid)
	}
	asked := ""
	var got []int
	source := GPU("", time.Second, []string{"GPU-aa11", "2", "MIG-5c0c"}, func(_ context.Context, argv []string, w io.Writer) error {
		asked = argv[1]
		_, err := io.WriteString(w, row(0, "GPU-00ff-1")+row(1, "GPU-aa11-2")+row(2, "GPU-bb22-3"))
		return err
	})
	source(t.Context(), func(_ time.Time, r gauge.Reading) {
		if r.Error == "" {
			got = append(got, r.Index)
		}
	})
	if !slices.Equal(got, []int{1, 2}) || !strings.HasSuffix(asked, ",uuid") {
		t.Errorf("read %v, asked %s", got, asked)
	}
}

func BenchmarkGPU(b *testing.B) {
	s := &smiStream{reasons: true, emit: func(time.Time, gauge.Reading) {}}
	var tick []byte
	for gpu := range 8 {
		tick = fmt.Appendf(tick, "2026/11/22 10:00:00.000, %d, 87, 70123, 81559, 612.34, 1755, 2619, 63, 0x0000000000000004\n", gpu)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Write(tick)
	}
}

// BenchmarkEngine takes a page as large as a busy vLLM's: some sixty series and
// twenty histograms.
func BenchmarkEngine(b *testing.B) {
	var p strings.Builder
	for i := range 60 {
		fmt.Fprintf(&p, "vllm:metric_%d{engine=\"0\",model_name=\"Qwen/Qwen3-32B\"} %d.0\n", i, i)
	}
	for i := range 20 {
		for k := range 20 {
			fmt.Fprintf(&p, "vllm:histogram_%d_seconds_bucket{engine=\"0\",le=\"%d\",model_name=\"Qwen/Qwen3-32B\"} %d.0\n", i, k, k)
		}
	}
	text := p.String() + "vllm:num_requests_running{engine=\"0\",model_name=\"a\"} 3.0\n"
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engineValues(b.Context(), func(context.Context) (string, error) { return text, nil }); err != nil {
			b.Fatal(err)
		}
	}
}
