package workload

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"perflab/internal/field"
	"perflab/internal/stat"
)

// faults collects what is wrong with a spec: a field.Error each, with the
// field's JSON key as its path.
type faults []error

func (f *faults) add(path, format string, args ...any) {
	*f = append(*f, field.Errorf(path, format, args...))
}

// join adds an error that says itself where it is; nil is none.
func (f *faults) join(err error) {
	if err != nil {
		*f = append(*f, err)
	}
}

func (f faults) err() error { return errors.Join(f...) }

// oneOf refuses a value that is not known, and says the nearest that is.
func (f *faults) oneOf(path, got string, known ...string) {
	if slices.Contains(known, got) {
		return
	}
	best := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(stat.Distance(got, a), stat.Distance(got, b)) })
	if stat.Distance(got, best) <= 1+len(got)/3 {
		f.add(path, "%q is unknown: did you mean %s? (known: %s)", got, best, strings.Join(known, ", "))
		return
	}
	f.add(path, "%q is unknown: use %s", got, either(known))
}

// count refuses a number of things that is negative or over a limit.
func (f *faults) count(path string, value, limit int) {
	switch {
	case value < 0:
		f.add(path, "%d must not be negative", value)
	case value > limit:
		f.add(path, "%d is over the limit of %d", value, limit)
	}
}

// finite refuses a quantity that is negative, infinite or no number.
func (f *faults) finite(path string, value float64) {
	if !(value >= 0) || math.IsInf(value, 1) {
		f.add(path, "%g must be a finite number above 0", value)
	}
}

// either joins names: "a", "a or b", "a, b or c".
func either(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
