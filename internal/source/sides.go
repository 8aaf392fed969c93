package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/compare"
	"perflab/internal/result"
	"perflab/internal/rundir"
)

// Sides reads the sides of a comparison from its arguments. damage is what
// could not be read, one sentence each.
func Sides(args []string, percentiles []float64) (sides []compare.Side, damage []string, err error) {
	o := sideOpener{percentiles: percentiles}
	args = WithoutImportFiles(args)
	if len(args) == 1 && rundir.IsImport(args[0]) {
		if args, err = importedRuns(args[0]); err != nil {
			return nil, nil, err
		}
	}
	for _, arg := range args {
		s, err := o.side(arg)
		if err != nil {
			return nil, nil, err
		}
		sides = append(sides, s)
	}
	if err := addViews(sides); err != nil {
		return nil, nil, err
	}
	shorten(sides)
	for i, s := range sides {
		if slices.ContainsFunc(sides[:i], func(t compare.Side) bool { return t.Name == s.Name }) {
			return nil, nil, argumentError("two sides are called %s: give names, as before=%s after=%s", s.Name, args[0], args[1])
		}
	}
	return sides, o.damage, nil
}

// Group is one side of a comparison: places under a name.
type Group struct {
	Name   string
	Places []string // directories of runs, or one of repeated runs
	Names  []string // what those are called
}

// GroupedSides reads the sides of a comparison that are named as they shall be called. damage is
// what could not be read, one sentence each.
func GroupedSides(groups []Group, percentiles []float64) (sides []compare.Side, damage []string, err error) {
	o := sideOpener{percentiles: percentiles}
	for _, g := range groups {
		s := compare.Side{Name: g.Name}
		for i, place := range g.Places {
			one, err := o.place(place)
			if err != nil {
				return nil, nil, err
			}
			if len(one.Runs) == 1 {
				one.Runs[0].Name = g.Names[i]
			}
			s.Series = len(g.Places) == 1 && one.Series
			s.Runs = append(s.Runs, one.Runs...)
		}
		sides = append(sides, s)
	}
	return sides, o.damage, addViews(sides)
}

// WithoutImportFiles leaves out the import.json that a shell's pattern finds
// beside the runs of an import.
func WithoutImportFiles(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return filepath.Base(arg) == "import.json" && rundir.IsImport(filepath.Dir(arg))
	})
}

// importedRuns are the runs of an import that is all there is to compare.
func importedRuns(dir string) ([]string, error) {
	runs, err := rundir.OpenImport(dir)
	if err != nil {
		return nil, err
	}
	if len(runs) < 2 {
		return nil, argumentError("%s holds an import of %d runs: a comparison needs two sides at least", dir, len(runs))
	}
	return runs, nil
}

// shorten calls each side that has no name of its own by as many last parts of
// its path as tell it from the others.
func shorten(sides []compare.Side) {
	last := func(name string, n int) string {
		parts := strings.Split(filepath.ToSlash(filepath.Clean(name)), "/")
		return strings.Join(parts[max(0, len(parts)-n):], "/")
	}
	short := make([]string, len(sides))
	for i, s := range sides {
		for n := 1; n < 8 && short[i] == ""; n++ {
			alike := func(t compare.Side) bool { return last(t.Name, n) == last(s.Name, n) }
			if !slices.ContainsFunc(slices.Concat(sides[:i], sides[i+1:]), alike) {
				short[i] = last(s.Name, n)
			}
		}
	}
	for i := range sides {
		sides[i].Name = cmp.Or(short[i], sides[i].Name)
	}
}

// ArgumentError is an argument that names nothing of the kind that is wanted.
type ArgumentError struct{ err error }

func (e *ArgumentError) Error() string { return e.err.Error() }
func (e *ArgumentError) Unwrap() error { return e.err }

func argumentError(format string, args ...any) error {
	return &ArgumentError{fmt.Errorf(format, args...)}
}

type sideOpener struct {
	percentiles []float64
	damage      []string
}

// side reads one argument: a place, or a name with several.
func (o *sideOpener) side(arg string) (compare.Side, error) {
	name, list, named := strings.Cut(arg, "=")
	if _, err := os.Stat(arg); err == nil || strings.ContainsAny(name, `/\`) {
		named = false
	}
	if !named {
		return o.place(arg)
	}
	if name == "" || list == "" {
		return compare.Side{}, argumentError("%q: write a side of several runs as NAME=A,B,C", arg)
	}
	s := compare.Side{Name: name}
	places := strings.Split(list, ",")
	for _, p := range places {
		one, err := o.place(p)
		if err != nil {
			return s, err
		}
		s.Series = len(places) == 1 && one.Series
		s.Runs = append(s.Runs, one.Runs...)
	}
	return s, nil
}

// place reads what lies in one place.
func (o *sideOpener) place(path string) (compare.Side, error) {
	switch {
	case rundir.IsStudy(path):
		return compare.Side{}, argumentError("%s is a study: name runs of its trials, as %s", path, filepath.Join(path, "trials", "001", "WORKLOAD"))
	case rundir.IsImport(path):
		runs, err := rundir.OpenImport(path)
		if err == nil {
			err = argumentError("%s is an import: name runs of it (%s), or give it alone", path, strings.Join(runs, ", "))
		}
		return compare.Side{}, err
	case rundir.IsSeries(path):
		return o.series(path)
	case rundir.IsRun(path):
		m, err := o.run(path)
		return compare.Side{Name: path, Runs: []compare.Run{m}}, err
	}
	return o.file(path)
}

// series takes repeated runs as one side. The points of a sweep are of
// different loads.
func (o *sideOpener) series(dir string) (compare.Side, error) {
	f, damage, err := bench.OpenSeries(dir)
	if err != nil {
		return compare.Side{}, err
	}
	o.damage = append(o.damage, damage...)
	if f.Kind != bench.KindRepeat {
		return compare.Side{}, argumentError("%s holds runs of different loads: name two of them, as %s", dir, filepath.Join(dir, f.Points[0].Dir))
	}
	s := compare.Side{Name: dir, Series: true}
	for _, p := range f.Points {
		m, err := o.run(filepath.Join(dir, p.Dir))
		if err != nil {
			return s, err
		}
		s.Runs = append(s.Runs, m)
	}
	return s, nil
}

func (o *sideOpener) run(dir string) (compare.Run, error) {
	m := compare.Run{Name: dir, Launch: launch(dir)}
	r, err := rundir.OpenRun(dir)
	if err != nil {
		return m, err
	}
	if r.Damage != "" {
		o.damage = append(o.damage, dir+": "+r.Damage)
	}
	if m.Summary, err = r.Resummarise(o.percentiles...); err != nil {
		return m, fmt.Errorf("summarise %s: %w", dir, err)
	}
	m.Header, m.Calls = r.Header, r.Calls
	m.Options, err = r.Options()
	return m, err
}

// launch names the start of the server that a run of a study was measured on:
// each trial starts its own.
func launch(dir string) string {
	trial := filepath.Dir(filepath.Clean(dir))
	if trials := filepath.Dir(trial); filepath.Base(trials) == "trials" && rundir.IsStudy(filepath.Dir(trials)) {
		return trial
	}
	return ""
}

// file reads a result of another client.
func (o *sideOpener) file(arg string) (compare.Side, error) {
	ref, info, err := resolve(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return compare.Side{}, argumentError("there is no run directory and no file %s", arg)
	case err != nil:
		return compare.Side{}, fmt.Errorf("read %s: %w", ref.path, err)
	case info.IsDir():
		return compare.Side{}, argumentError("%s holds no run (header.json) and no repeated runs (repeat.json)", arg)
	}
	f := readFile(ref.path)
	for _, fault := range f.Faults {
		o.damage = append(o.damage, fault.String())
	}
	r, err := ref.pick(&f)
	if err != nil {
		return compare.Side{}, &ArgumentError{err}
	}
	m := compare.Run{Name: arg, Header: r.Header, Calls: r.Calls, Half: map[string]float64{}}
	for _, x := range r.Figures {
		m.Half[x.Name] = x.Half
	}
	if m.Summary, err = r.Summary(); err != nil {
		return compare.Side{}, err
	}
	addSuccess(&m.Summary)
	return compare.Side{Name: arg, Runs: []compare.Run{m}}, nil
}

// addSuccess adds the share of calls that succeeded, which clients do not write where
// they write both counts.
func addSuccess(s *result.Summary) {
	done, ok := s.Figures["completed"]
	failed, told := s.Figures["failed"]
	if _, has := s.Figures["success_rate"]; !has && ok && told && done+failed > 0 {
		s.Figures["success_rate"] = done / (done + failed)
	}
}
