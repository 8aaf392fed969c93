package finding

import (
	"testing"

	"perflab/internal/outcome"
	"perflab/internal/tune"
)

func TestMachines(t *testing.T) {
	s := outcome.Study{Machines: []tune.NodeEffect{
		{Name: "a", Launches: 9},
		{Name: "b", Launches: 8, Effect: &tune.Span{Value: -0.031, Low: -0.042, High: -0.02}},
		{Name: "c", Launches: 3, Effect: &tune.Span{Value: 0.004, Low: -0.006, High: 0.014}, Lost: true},
		{Name: "d", Lost: true},
	}}
	const want = "a (9 launches); b (8 launches) is 3.1 % [2.0, 4.2] behind a; c (3 launches, lost) is 0.4 % [-0.6, 1.4] ahead of a; d (0 launches, lost). What a machine does to figures is taken off where launches on several are compared"
	if got := Machines(s); got != want+"." {
		t.Errorf("%s\nwant %s", got, want)
	}
	s.Machines[1].Stratum = "driver 570"
	if got := Machines(s); got != want+". They are not alike in driver or clocks: the gain is of launches on the most that are." {
		t.Error(got)
	}
	if got := Machines(outcome.Study{}); got != "" {
		t.Errorf("of one machine: %s", got)
	}
}
