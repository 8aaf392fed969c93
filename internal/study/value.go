package study

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"perflab/internal/workload"
)

// Values are engine-neutral parameters: name -> value as the engine's flag
// takes it. In a study file a value may be a string, a number or true or false.
type Values map[string]string

// Share is a part of a whole as users write it: "2%" or 0.02.
type Share = workload.Share

// parsePoints parses points of a share, "-6pt"; "" is 0.
func parsePoints(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "pt")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(math.Abs(v) <= 100) { // nor NaN
		return 0, fmt.Errorf("%q is no number of points: write it as 2pt", text)
	}
	return v / 100, nil
}
