package telemetry

import (
	"io"
	"testing"
	"time"

	"perflab/internal/gauge"
)

// fuzzStream gives an output to a stream whole and byte by byte: both tell the same
// numbers.
func fuzzStream(t *testing.T, output []byte, stream func(Emit) interface{ Write([]byte) (int, error) }) {
	var whole, bytewise Recording
	_, _ = stream(whole.add).Write(output)
	s := stream(bytewise.add)
	for i := range output {
		_, _ = s.Write(output[i : i+1])
	}
	if err := gauge.Write(io.Discard, whole.Readings(time.Time{})); err != nil {
		t.Errorf("no file can hold the readings: %v", err)
	}
	if a, b := len(whole.readings), len(bytewise.readings); len(output) < maxLine && a != b {
		t.Errorf("%d readings of the whole, %d of its bytes", a, b)
	}
}

// FuzzSMI: whatever nvidia-smi prints, readings have numbers.
func FuzzSMI(f *testing.F) {
	f.Add([]byte("2026/01/02 03:04:05.678, 0, 87, 70123, 81559, 612.34, 1755, 2619, 63, 0x0000000000000004\n"), true)
	f.Add([]byte("2026/01/02 03:04:05.678, 1, [N/A], nan, inf, -1, 1e400, 2619, 66\nNVIDIA-SMI has failed\n"), false)
	f.Fuzz(func(t *testing.T, output []byte, reasons bool) {
		fuzzStream(t, output, func(e Emit) interface{ Write([]byte) (int, error) } { return &smiStream{reasons: reasons, emit: e} })
	})
}

// FuzzHost: likewise of a machine's files.
func FuzzHost(f *testing.F) {
	f.Add([]byte("cpu  10 0 5 100 1 0 0 0 0 0\nMemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\ncpu  20 0 5 110 1 0 0 0 0 0\nMemTotal: 1000 kB\nMemAvailable: 300 kB\n"))
	f.Add([]byte("cpu nan inf 1e999\nMemTotal: nan kB\nMemAvailable: inf\n"))
	f.Fuzz(func(t *testing.T, output []byte) {
		fuzzStream(t, output, func(e Emit) interface{ Write([]byte) (int, error) } { return &hostStream{emit: e} })
	})
}
