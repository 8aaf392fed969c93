// Package catalogue folds what the engines' releases say of themselves, as
// scripts/catalogue.py reads it out of their wheels, into internal/engine/flags.json, and
// says what changed. Facts are taken over; group, doc, try, with, perf and figures are our
// own words and stay.
package catalogue

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/engine"
)

// Source says where an engine's releases are found: an engine's part of releases.json.
type Source struct {
	Wheel    string              `json:"wheel"`
	Parts    int                 `json:"parts"` // numbers of a release that name its version: 2 for 0.33.0 as 0.33
	Releases []string            `json:"releases"`
	Others   []Other             `json:"others,omitempty"`
	Also     map[string][]string `json:"also,omitempty"` // names of a flag that the parser does not list: it takes them apart itself, or refuses them as too short, which perflab says better
}

// Other is another wheel of an engine, which is held against the catalogue of its version
// and adds nothing to it.
type Other struct {
	Wheel    string   `json:"wheel"`
	Releases []string `json:"releases"`
}

// version is the name of a release in the catalogue.
func (s Source) version(release string) string {
	parts := strings.Split(release, ".")
	return strings.Join(parts[:min(s.Parts, len(parts))], ".")
}

// Option is a flag as the parser of one release has it.
type Option struct {
	Names      []string `json:"names"`
	Off        []string `json:"off"`
	Kind       string   `json:"kind"`
	Choices    []string `json:"choices"`
	Default    string   `json:"default"`
	Help       string   `json:"help"`
	Deprecated bool     `json:"deprecated"`
	Bare       bool     `json:"bare"`
}

// Facts are what one release says of itself.
type Facts struct {
	Engine  string   `json:"engine"`
	Release string   `json:"release"`
	Flags   []Option `json:"flags"`
	Metrics []string `json:"metrics"`
	Texts   []string `json:"texts"` // literals, with a NUL where a value stands

	version string
}

// ReadSources reads releases.json.
func ReadSources(path string) (map[string]Source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s map[string]Source
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return s, nil
}

// ReadFacts reads the facts of those releases of an engine that the directory has, the
// oldest first. The newest has to be there.
func ReadFacts(dir, engine string, s Source) ([]Facts, error) {
	var all []Facts
	for _, release := range s.Releases {
		text, err := os.ReadFile(filepath.Join(dir, engine+"-"+release+".json"))
		if errors.Is(err, fs.ErrNotExist) && release != s.Releases[len(s.Releases)-1] {
			continue
		}
		if err != nil {
			return nil, err
		}
		f := Facts{Engine: engine, Release: release, version: s.version(release)}
		if err := json.Unmarshal(text, &f); err != nil {
			return nil, fmt.Errorf("read the facts of %s %s: %w", engine, release, err)
		}
		if len(f.Flags) < 100 {
			return nil, fmt.Errorf("%s %s has %d flags: its parser was not read whole", engine, release, len(f.Flags))
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Facts) int { return compare(a.version, b.version) })
	return all, nil
}

// compare orders versions by their numbers.
func compare(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, _ := strconv.Atoi(as[i])
		y, _ := strconv.Atoi(bs[i])
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(as), len(bs))
}

// option finds the option that a name means in the release: by its name, or as the only
// ones that begin with it.
func (f Facts) option(name string, also map[string][]string) (*Option, bool) {
	var found *Option
	for i := range f.Flags {
		o := &f.Flags[i]
		if slices.Contains(o.Names, name) || slices.Contains(o.Off, name) ||
			slices.ContainsFunc(o.Names, func(n string) bool { return slices.Contains(also[n], name) }) {
			return o, true
		}
	}
	if !strings.HasPrefix(name, "--") {
		return nil, false
	}
	for i := range f.Flags {
		o := &f.Flags[i]
		for _, n := range slices.Concat(o.Names, o.Off) {
			if strings.HasPrefix(n, name) {
				if found != nil && found != o {
					return nil, false
				}
				found = o
			}
		}
	}
	return found, found != nil
}

// Unpublished lists what perflab reads of the engine's metrics and the release has under
// none of the names that are known.
func (f Facts) Unpublished() (missing []string, err error) {
	e, err := engine.ByName(f.Engine)
	if err != nil {
		return nil, err
	}
	for what, names := range e.Metrics {
		if !slices.ContainsFunc(names, f.publishes) {
			missing = append(missing, what)
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// MetricsSince lists the metrics that a release publishes and one before it did not, and
// the other way about.
func (f Facts) MetricsSince(before Facts) (fresh, ended []string) {
	not := func(have, lack []string) []string {
		return slices.DeleteFunc(slices.Clone(have), func(m string) bool { return slices.Contains(lack, m) })
	}
	return not(f.Metrics, before.Metrics), not(before.Metrics, f.Metrics)
}

// publishes reports whether a name of the engine's metrics is in the release: as it is
// in the source, without what a Prometheus client puts behind it.
func (f Facts) publishes(name string) bool {
	for _, suffix := range []string{"", "_total", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && slices.Contains(f.Metrics, base) {
			return true
		}
	}
	return false
}
