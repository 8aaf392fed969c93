// Package submission writes the files of an MLPerf Endpoints submission: what perflab measured of a curve, and what
// its submitter says of the system in a file.
//
//	d, err := submission.Read("submission.yaml")
//	c, err := submission.Open("perflab-out/sweep-...")
//	notes, err := submission.Write("out", d, c)
//
// Invariants: what perflab cannot know is never made up, and named where it is missing; a curve of the short form becomes
// no submission; what a simulator made says so in each point.
//
// Absent: the rules (profile/mlperf), and MLCommons' checker, which has the last word.
package submission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"perflab/internal/input"
	"perflab/internal/profile/mlperf"
)

// Description is what a submitter says of a submission. Paths are relative to the file.
type Description struct {
	Organization      string         `yaml:"organization"`
	SubmissionID      string         `yaml:"submission_id"`
	Division          string         `yaml:"division"` // Standardized, Serviced, RDI
	System            string         `yaml:"system"`   // directory of its results
	Implementation    string         `yaml:"implementation"`
	Sources           string         `yaml:"sources"`            // directory with a README.md
	Documents         string         `yaml:"documents"`          // directory
	SystemDescription string         `yaml:"system_description"` // JSON file
	SystemPower       string         `yaml:"system_power"`       // JSON file; of Standardized
	Model             Model          `yaml:"model"`
	Dataset           Dataset        `yaml:"dataset"`
	SeedSet           string         `yaml:"seed_set"`
	TargetCohort      string         `yaml:"target_cohort"`
	Accuracy          map[int]string `yaml:"accuracy"` // JSON files of the benchmark's scorer, by concurrency

	from string // directory of the file
}

// Model is the benchmark's model as it was served.
type Model struct {
	Name           string `yaml:"name"`
	Precision      string `yaml:"precision"`
	Link           string `yaml:"link"`
	Transformation string `yaml:"transformation"`
	Notes          string `yaml:"notes"`
}

// Dataset is the performance data set.
type Dataset struct {
	ID   string `yaml:"id"`
	Name string `yaml:"name"`
	Type string `yaml:"type"`
	Link string `yaml:"link"`
}

var (
	cohort = regexp.MustCompile(`^\d{4}-\d{2}-C[01]$`)
	simple = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`) // a name that becomes a directory
)

// mostFile bounds what a submitter gives: results of a scorer may have every answer.
const mostFile = 1 << 30

// Read reads a description and checks that it says everything that it must.
func Read(path string) (Description, error) {
	b, err := input.File(path, mostFile)
	if err != nil {
		return Description{}, fmt.Errorf("read the description of the submission: %w", err)
	}
	d, err := Parse(b)
	d.from = filepath.Dir(path)
	if err != nil {
		return d, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// Parse reads the text of a description.
func Parse(text []byte) (d Description, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&d); err != nil {
		return d, fmt.Errorf("the description cannot be read: %s", strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
	}
	return d, d.check()
}

// check names what is missing or cannot be.
func (d Description) check() error {
	needed := map[string]string{
		"organization": d.Organization, "submission_id": d.SubmissionID, "division": d.Division, "system": d.System, "implementation": d.Implementation,
		"sources": d.Sources, "documents": d.Documents, "system_description": d.SystemDescription, "model.name": d.Model.Name, "model.precision": d.Model.Precision,
		"model.link": d.Model.Link, "dataset.id": d.Dataset.ID, "dataset.name": d.Dataset.Name, "dataset.type": d.Dataset.Type, "dataset.link": d.Dataset.Link,
		"seed_set": d.SeedSet, "target_cohort": d.TargetCohort,
	}
	if strings.EqualFold(d.Division, "standardized") {
		needed["system_power"] = d.SystemPower
	}
	missing := slices.Sorted(maps.Keys(needed))
	if missing = slices.DeleteFunc(missing, func(k string) bool { return strings.TrimSpace(needed[k]) != "" }); len(missing) > 0 {
		return fmt.Errorf("these keys are missing, which perflab cannot know: %s (docs/profiles.md has an example)", strings.Join(missing, ", "))
	}
	for _, key := range []string{"organization", "submission_id", "system", "implementation"} {
		if !simple.MatchString(needed[key]) {
			return fmt.Errorf("%s is %q: it names a directory, so write letters, digits, dots, - and _", key, needed[key])
		}
	}
	switch {
	case !slices.Contains([]string{"standardized", "serviced", "rdi"}, strings.ToLower(d.Division)):
		return fmt.Errorf("division is %q: use Standardized, Serviced or RDI", d.Division)
	case !slices.Contains(mlperf.Models(), d.Model.Name):
		return fmt.Errorf("model.name is %q: the round's models are %s", d.Model.Name, strings.Join(mlperf.Models(), ", "))
	case !cohort.MatchString(d.TargetCohort):
		return fmt.Errorf("target_cohort is %q: write it as 2026-10-C1", d.TargetCohort)
	case d.seeds().ID == "":
		return fmt.Errorf("seed_set is %q: perflab knows %s", d.SeedSet, mlperf.SeedSets()[0].ID)
	}
	return nil
}

// seeds are those of the set; none has no ID.
func (d Description) seeds() mlperf.SeedSet {
	for _, s := range mlperf.SeedSets() {
		if s.ID == d.SeedSet {
			return s
		}
	}
	return mlperf.SeedSet{}
}

// file is a path of the description.
func (d Description) file(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(d.from, path)
}

// readJSON reads a file that the submitter gives, which must be one JSON object, or a list where list says so.
func (d Description) readJSON(key, path string, to any) error {
	b, err := input.File(d.file(path), mostFile)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("%s: %s holds no such JSON: %w", key, path, err)
	}
	return nil
}

// system is the description of the system, as JSON.
func (d Description) system(cMax int) (map[string]any, error) {
	var s map[string]any
	if err := d.readJSON("system_description", d.SystemDescription, &s); err != nil {
		return nil, err
	}
	if s == nil {
		return nil, errors.New("system_description: the file holds no object")
	}
	for key, want := range map[string]any{"max_supported_concurrency": float64(cMax), "division": d.Division} {
		if got, given := s[key]; given && fmt.Sprint(got) != fmt.Sprint(want) {
			return nil, fmt.Errorf("system_description: %s is %v there and %v of the curve: leave it out, or make them agree", key, got, want)
		}
		s[key] = want
	}
	return s, nil
}
