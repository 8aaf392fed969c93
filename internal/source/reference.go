package source

import (
	"fmt"
	"strconv"
	"strings"

	"perflab/internal/interop"
)

// split takes FILE#3 and FILE:86 apart.
func split(arg string) (path string, number, line int) {
	i := strings.LastIndexAny(arg, "#:")
	if i < 1 {
		return arg, 0, 0
	}
	n, err := strconv.Atoi(arg[i+1:])
	if err != nil || n < 1 {
		return arg, 0, 0
	}
	if arg[i] == '#' {
		return arg[:i], n, 0
	}
	return arg[:i], 0, n
}

// pick finds the one result of a file that is meant.
func pick(f *interop.File, arg string, number, line int) (*interop.Run, error) {
	switch {
	case len(f.Runs) == 0 && len(f.Faults) > 0:
		return nil, fmt.Errorf("%s has no result that can be read: %s", f.Name, f.Faults[0].Text)
	case len(f.Runs) == 0:
		return nil, fmt.Errorf("%s has no result that can be read", f.Name)
	case number > len(f.Runs):
		return nil, fmt.Errorf("%s: the file has %d results", arg, len(f.Runs))
	case number > 0:
		return &f.Runs[number-1], nil
	case line > 0:
		for i := range f.Runs {
			if p := f.Runs[i].Place; p.Line <= line && line <= max(p.Line, p.End) {
				return &f.Runs[i], nil
			}
		}
		return nil, fmt.Errorf("%s: no result stands on line %d; they begin on %s", arg, line, lines(f))
	case len(f.Runs) > 1:
		return nil, fmt.Errorf("%s has %d results: choose one, as %s#1 or %s:%d; they begin on %s", arg, len(f.Runs), arg, arg, f.Runs[0].Place.Line, lines(f))
	}
	return &f.Runs[0], nil
}

// lines says where the results of a file begin.
func lines(f *interop.File) string {
	var out []string
	for _, r := range f.Runs {
		out = append(out, strconv.Itoa(r.Place.Line))
	}
	if len(out) > 12 {
		out = append(out[:12], "...")
	}
	return "line " + strings.Join(out, ", ")
}
