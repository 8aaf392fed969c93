package flagset

import (
	"slices"
	"strings"
	"testing"
)

func TestPercentiles(t *testing.T) {
	got, err := Percentiles("50, 99.9,99,50")
	if err != nil || !slices.Equal(got, []float64{50, 99.9, 99}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "p99", "nan", "inf", "-1", "0", "100", "99;95"} {
		if got, err := Percentiles(bad); err == nil || !strings.Contains(err.Error(), "--metric-percentiles has") {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}
