package submission

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/durable"
	"perflab/internal/profile/mlperf"
)

// Write writes a submission below a directory, which must not have one of that name. notes say what a
// reviewer would find, a sentence each.
func Write(dir string, d Description, c *Curve) (at string, notes []string, err error) {
	files, err := d.files(c)
	if err != nil {
		return "", nil, err
	}
	if _, err := os.Stat(filepath.Join(d.file(d.Sources), "README.md")); err != nil {
		return "", nil, fmt.Errorf("sources: %s has no README.md, which says how to build the system and to reproduce a point", d.Sources)
	}
	at = filepath.Join(dir, d.Organization, d.SubmissionID)
	if _, err := os.Lstat(at); err == nil {
		return "", nil, fmt.Errorf("%s is there already: give another --out, or remove it", at)
	}
	for key, copied := range map[string]struct{ from, to string }{"sources": {d.Sources, path.Join("src", d.Implementation)}, "documents": {d.Documents, "docs"}} {
		if err := os.CopyFS(filepath.Join(at, copied.to), os.DirFS(d.file(copied.from))); err != nil {
			return "", nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	for name, text := range files {
		to := filepath.Join(at, filepath.FromSlash(name))
		if err := durable.MkdirAll(filepath.Dir(to)); err != nil {
			return "", nil, err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return "", nil, fmt.Errorf("write the submission: %w", err)
		}
	}
	return at, c.notes(d), nil
}

// notes are what is wrong with the submission as far as perflab can tell.
func (c *Curve) notes(d Description) (notes []string) {
	for _, f := range c.Outcome.Broken {
		notes = append(notes, f.Rule+": "+f.Text)
	}
	var lacking []string
	for _, k := range c.AccuracyAt() {
		if d.Accuracy[k] == "" {
			lacking = append(lacking, fmt.Sprint(k))
		}
	}
	if len(lacking) > 0 {
		notes = append(notes, mlperf.RuleAccuracy+": accuracy at concurrency "+strings.Join(lacking, ", ")+" is missing")
	}
	i := slices.IndexFunc(mlperf.Datasets(), func(s mlperf.Dataset) bool { return s.Name == d.Dataset.ID })
	for _, r := range c.Runs {
		if set := d.seeds(); r.Point.Seed != set.Sample {
			notes = append(notes, fmt.Sprintf("%s: at concurrency %d samples were ordered by the seed %d, and the set %s has %d", mlperf.RuleSeed, r.Point.Concurrency, r.Point.Seed, set.ID, set.Sample))
		}
		if i >= 0 && r.Point.Of.Latency.Count < mlperf.Datasets()[i].Samples {
			notes = append(notes, fmt.Sprintf("%s: at concurrency %d %d queries were completed, and %s wants %d", mlperf.RuleQueries, r.Point.Concurrency, r.Point.Of.Latency.Count, d.Dataset.ID, mlperf.Datasets()[i].Samples))
		}
	}
	return append(notes, mlperf.RuleClient+": a submission has to be measured by MLCommons' own client, which perflab is not: these files show what it would hand in")
}

// ErrNoDescription says what is needed to write a submission.
var ErrNoDescription = errors.New("--submission is missing: a file with what perflab cannot know of a submission (docs/profiles.md has an example)")
