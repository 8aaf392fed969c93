package drift_test

import (
	"fmt"
	"time"

	"perflab/internal/drift"
)

func ExampleFind() {
	// P99 TTFT in ms of nightly builds: slower since the 13th of May.
	figures := []float64{212, 209, 214, 211, 208, 213, 210, 212, 215, 209, 211, 210, 231, 229, 233, 230, 228, 232}
	var points []drift.Point
	for i, v := range figures {
		points = append(points, drift.Point{Value: v, Time: time.Date(2026, 5, 1+i, 2, 0, 0, 0, time.UTC), Key: fmt.Sprintf("build-%02d", 1+i)})
	}
	found, err := drift.Find(points, drift.Options{Better: drift.Lower})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range found.Changes {
		fmt.Printf("%s since %s: from %v to %v, %+.1f %% (%+.1f to %+.1f), %s over %d builds\n", c.Outcome, points[c.Index].Key, c.Before, c.After,
			100**c.Relative, 100*c.Interval.Low, 100*c.Interval.High, c.Standing, c.Builds)
	}
	age := drift.Age(points, time.Date(2026, 5, 25, 2, 0, 0, 0, time.UTC))
	fmt.Printf("newest point %v old, usually one every %v, stale: %v\n", age.Age, age.Gap, age.Stale)
	// Output:
	// worse since build-13: from 211 to 230.5, +9.1 % (+8.0 to +10.4), confirmed over 6 builds
	// newest point 168h0m0s old, usually one every 24h0m0s, stale: true
}
