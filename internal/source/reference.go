package source

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"perflab/internal/interop"
)

// reference is what an argument names: a path, or one result of the file there,
// as FILE#3 or FILE:86.
type reference struct {
	arg, path    string
	number, line int // of the result, from 1; 0: not said
}

// resolve looks an argument up: as a path first, then as one result of a file.
func resolve(arg string) (reference, fs.FileInfo, error) {
	r := reference{arg: arg, path: arg}
	info, err := os.Stat(arg)
	if err == nil {
		return r, info, nil
	}
	i := strings.LastIndexAny(arg, "#:")
	if i < 1 {
		return r, nil, err
	}
	n, wrong := strconv.Atoi(arg[i+1:])
	if wrong != nil || n < 1 {
		return r, nil, err
	}
	r.path = arg[:i]
	if r.line = n; arg[i] == '#' {
		r.number, r.line = n, 0
	}
	info, err = os.Stat(r.path)
	return r, info, err
}

// whole says that no result of the file was chosen.
func (r reference) whole() bool { return r.number == 0 && r.line == 0 }

// pick finds the one result of the file that is meant.
func (r reference) pick(f *interop.File) (*interop.Run, error) {
	switch {
	case len(f.Runs) == 0 && len(f.Faults) > 0:
		return nil, fmt.Errorf("%s has no result that can be read: %s", f.Name, f.Faults[0].Text)
	case len(f.Runs) == 0:
		return nil, fmt.Errorf("%s has no result that can be read", f.Name)
	case r.number > len(f.Runs):
		return nil, fmt.Errorf("%s: the file has %d results", r.arg, len(f.Runs))
	case r.number > 0:
		return &f.Runs[r.number-1], nil
	case r.line > 0:
		for i := range f.Runs {
			if p := f.Runs[i].Place; p.Line <= r.line && r.line <= max(p.Line, p.End) {
				return &f.Runs[i], nil
			}
		}
		return nil, fmt.Errorf("%s: no result stands on line %d; they begin on %s", r.arg, r.line, lines(f))
	case len(f.Runs) > 1:
		return nil, fmt.Errorf("%s has %d results: choose one, as %s#1 or %s:%d; they begin on %s", r.arg, len(f.Runs), r.arg, r.arg, f.Runs[0].Place.Line, lines(f))
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
