package rundir

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"perflab/internal/block"
	"perflab/internal/gauge"
	"perflab/internal/result"
)

// runFiles are the files of a run, in the order in which FuzzOpenRun takes them.
var runFiles = []string{headerFile, CallsFile, clientFile, TelemetryFile, summaryFile}

// FuzzOpenRun: whatever the files of a run hold, opening and summarising it end, and what they
// give can be shown: figures are numbers, and JSON has all of it.
func FuzzOpenRun(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "run")
	w, err := Create(dir, result.Header{Schema: Schema, Model: "m", Requests: 3, Spec: []byte(`{"metric_percentiles":[50,99.9],"goodput":["ttft:5"]}`)})
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range someCalls(3) {
		w.Add(&c)
	}
	if err := w.Finish(&result.Client{Wall: 9e9, Procs: 2}, &result.Summary{Figures: map[string]float64{"completed": 3}}, []gauge.Reading{
		{Source: gauge.SourceGPU, Values: map[string]float64{"power_w": 300}}, {At: 5e6, Source: gauge.SourceGPU, Error: "gone"},
	}); err != nil {
		f.Fatal(err)
	}
	var seeds [5][]byte
	for i, name := range runFiles {
		if seeds[i], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(seeds[0], seeds[1], seeds[2], seeds[3], seeds[4])
	f.Add(seeds[0], seeds[1][:len(seeds[1])-7], []byte(nil), []byte(nil), []byte(nil)) // killed
	h, s := importedRun()
	header, err := json.Marshal(h)
	if err != nil {
		f.Fatal(err)
	}
	summary, err := json.Marshal(s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(header, seeds[1], []byte(nil), []byte(nil), summary)
	f.Add([]byte(`{"predicted":true,"requests":9223372036854775807}`), []byte(`{"i":-1,"end_ns":-9223372036854775808}`), []byte(`{"partial":true}`), []byte(`{"at_ns":1}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, header, calls, client, telemetry, summary []byte) {
		dir := t.TempDir()
		for i, data := range [][]byte{header, calls, client, telemetry, summary} {
			if err := os.WriteFile(filepath.Join(dir, runFiles[i]), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := OpenRun(dir)
		if err != nil {
			return
		}
		for _, percentiles := range [][]float64{nil, {50, 99}} {
			s, err := r.Resummarise(percentiles...)
			if err != nil {
				continue
			}
			if _, err := json.Marshal(s); err != nil {
				t.Fatal(err)
			}
			for name, v := range s.Figures {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s is %v", name, v)
				}
			}
			if s.Verdict.Status != "" {
				_ = s.Verdict.Text()
			}
			_ = block.Text(s, block.Style{Percentiles: r.Percentiles()})
		}
	})
}

// FuzzRuns: whatever study.json, sweep.json or import.json hold, the runs that they name
// are listed, or an error.
func FuzzRuns(f *testing.F) {
	names := []string{StudyFile, "sweep.json", "repeat.json", importFile}
	f.Add(uint8(0), []byte(`{"schema":"perflab.study/1","trials":[{"id":1,"runs":[{"workload":"chat","dir":"trials/001/chat","summary":{"completed":1}}]}],"race":{}}`))
	f.Add(uint8(1), []byte(`{"schema":"perflab.series/1","points":[{"dir":"rate-4","load":{"axis":"rate","value":4}}]}`))
	f.Add(uint8(3), []byte(`{"schema":"perflab.import/1","file":"a.md","runs":[{"dir":"001-a","calls":3}],"faults":[]}`))
	f.Add(uint8(2), []byte(`null`))
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, names[int(which)%len(names)]), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok, _ := Runs(dir); !ok {
			t.Error("the directory holds nothing")
		}
	})
}
