package forecast

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/engine"
)

// mostCombinations is how many configurations a grid may make of a command.
const mostCombinations = 1000

// ParseGrid reads NAME=VALUE,VALUE of each parameter.
func ParseGrid(texts []string) ([]Axis, error) {
	var grid []Axis
	all := 1
	for _, text := range texts {
		name, values, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("%q: write it as tp=1,2,4", text)
		}
		if err := engine.KnownParam(name); err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		if slices.ContainsFunc(grid, func(a Axis) bool { return a.Param == name }) {
			return nil, fmt.Errorf("has %s twice: join its values by commas", name)
		}
		axis := Axis{Param: name}
		for v := range strings.SplitSeq(values, ",") {
			axis.Values = append(axis.Values, strings.TrimSpace(v))
		}
		if all *= len(axis.Values); all > mostCombinations {
			return nil, fmt.Errorf("makes %d configurations of each command: %d are the limit", all, mostCombinations)
		}
		grid = append(grid, axis)
	}
	return grid, nil
}
