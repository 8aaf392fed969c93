package forecast

import "testing"

// TestFront: what another row beats in both is not on the front.
func TestFront(t *testing.T) {
	row := func(total, tpot float64) Row {
		return Row{
			Figures: map[string]Estimate{"mean_tpot_ms": {Value: tpot}},
			PerGPU:  map[string]Estimate{"total_token_throughput": {Value: total}},
		}
	}
	rows := []Row{row(100, 10), row(90, 12), row(100, 11), row(200, 30), row(50, 5), {}, row(100, 10)}
	markFront(rows, "mean_tpot_ms")
	for i, want := range []bool{true, false, false, true, true, false, true} {
		if rows[i].Front != want {
			t.Errorf("row %d: %v", i, rows[i].Front)
		}
	}
}
