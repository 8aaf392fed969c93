package calib

import (
	"math"
	"slices"
	"testing"

	"perflab/internal/sim"
)

// shipped is the calibration in the program, with its constants.
func shipped(t *testing.T) (Calibration, *sim.Constants) {
	t.Helper()
	c, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	k, err := c.Constants()
	if err != nil {
		t.Fatal(err)
	}
	return c, k
}

// TestShippedCalibration: the calibration in the program is of this program. A
// change of the model's equations that is not followed by make calibration shows
// here, on blocks that were sent all at once.
func TestShippedCalibration(t *testing.T) {
	c, k := shipped(t)
	obs := publishedObservations(t)
	var plain []Observation
	for i := range obs {
		if err := obs[i].Resolve(); err != nil {
			t.Fatal(err)
		}
		if obs[i].Apart == "" && obs[i].Load.Rate == 0 {
			plain = append(plain, obs[i])
		}
	}
	rs, err := Score(plain, k, 0)
	if err != nil {
		t.Fatal(err)
	}
	for metric, most := range map[string]float64{Throughput: 0.06, MeanTTFT: 0.075, MeanTPOT: 0.065, MedianITL: 0.065} {
		var off []float64
		for _, r := range rs {
			if r.Metric == metric {
				off = append(off, math.Abs(r.Off()))
			}
		}
		slices.Sort(off)
		if m := at(off, 0.5); len(off) < 40 || !(m <= most) {
			t.Errorf("%s: median error %.3f in sample over %d blocks, want at most %v: run make calibration", metric, m, len(off), most)
		}
	}
	for _, gpu := range []string{"a100-sxm-80", "gb10", "h100-pcie", "h100-sxm", "h200"} {
		if !slices.ContainsFunc(c.Seen, func(e Envelope) bool { return e.Accelerator == gpu }) {
			t.Errorf("no envelope of %s", gpu)
		}
	}
	for _, n := range []Novelty{NothingNew, OneThingNew, SeveralNew} {
		if !slices.ContainsFunc(c.Errors, func(e Error) bool { return e.New == n && e.Metric == Throughput && e.Runs >= 8 }) {
			t.Errorf("no error where %s is new", n)
		}
	}
}
