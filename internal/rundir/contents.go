package rundir

import (
	"fmt"
	"os"
	"path/filepath"

	"perflab/internal/outcome"
)

// StudyFile holds the facts of a study.
const StudyFile = "study.json"

// JournalFile is a study's journal, held by the process that runs it.
const JournalFile = "journal.jsonl"

// UnderwayFile says where a study stands that has not come to its end.
const UnderwayFile = "progress.json"

// OpenStudy reads a study's facts back from its directory.
func OpenStudy(dir string) (outcome.Study, error) {
	var s outcome.Study
	if err := ReadJSON(filepath.Join(dir, StudyFile), &s); err != nil {
		return s, fmt.Errorf("read the study in %s: %w", dir, err)
	}
	return s, nil
}

// IsStudy reports whether dir holds a study.
func IsStudy(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, StudyFile))
	return err == nil
}

// seriesFiles are the names that a series' file has.
func seriesFiles() []string { return []string{"sweep.json", "repeat.json"} }

// IsSeries reports whether dir holds a sweep, a search or repeated runs.
func IsSeries(dir string) bool { return SeriesFile(dir) != "" }

// SeriesFile is the path of the file that holds the facts of the series in dir,
// "" where there is none.
func SeriesFile(dir string) string {
	for _, name := range seriesFiles() {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// Runs returns the directories of the runs that dir holds: itself, or those
// of an import, of a series or of a study. ok is false where it holds none of
// these.
func Runs(dir string) (dirs []string, ok bool, err error) {
	switch {
	case IsImport(dir):
		dirs, err = OpenImport(dir)
	case IsStudy(dir):
		s, err := OpenStudy(dir)
		if err != nil {
			return nil, true, err
		}
		for _, t := range s.Trials {
			for _, r := range t.Runs {
				dirs = append(dirs, filepath.Join(dir, r.Dir))
			}
		}
	case IsSeries(dir):
		var f struct {
			Points []struct {
				Dir string `json:"dir"`
			} `json:"points"`
		}
		if err := ReadJSON(SeriesFile(dir), &f); err != nil {
			return nil, true, fmt.Errorf("read the series in %s: %w", dir, err)
		}
		for _, p := range f.Points {
			dirs = append(dirs, filepath.Join(dir, p.Dir))
		}
	case IsRun(dir):
		dirs = []string{dir}
	default:
		return nil, false, nil
	}
	return dirs, true, err
}
