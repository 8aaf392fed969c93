package rundir

import (
	"fmt"
	"os"
	"path/filepath"

	"perflab/internal/field"
	"perflab/internal/result"
)

// importFile says what became of an imported file. It stands beside the run
// directories, so that scripts find them and no fault is lost.
const importFile = "import.json"

// Import is one file that was imported: import.json.
type Import struct {
	Schema string        `json:"schema"` // "perflab.import/1"
	File   string        `json:"file"`   // as it was named
	Dir    string        `json:"-"`      // where the run directories are; "" where there is none
	Runs   []ImportedRun `json:"runs"`
	Faults []ImportFault `json:"faults"`
}

// ImportedRun is a run of an imported file.
type ImportedRun struct {
	Dir      string        `json:"dir"` // in the directory of the import
	Line     int           `json:"line,omitzero"`
	Client   string        `json:"client"`
	Model    string        `json:"model"`
	Case     string        `json:"case,omitempty"`
	Calls    int           `json:"calls"`
	Verdict  result.Status `json:"verdict"`
	Findings int           `json:"findings"` // of the audit, on this run alone

	Header  result.Header  `json:"-"`
	Summary result.Summary `json:"-"`
	Stored  []result.Call  `json:"-"`
}

// ImportFault is something of the file that could not be read.
type ImportFault struct {
	File string `json:"file"`
	Line int    `json:"line,omitzero"`
	Text string `json:"text"`
}

// importSchema names the format of import.json; it changes when that does.
const importSchema = "perflab.import/1"

// Write writes the run directories of an import and its import.json. It
// overwrites nothing.
func (m *Import) Write() error {
	if err := m.CheckFree(); err != nil {
		return err
	}
	for _, r := range m.Runs {
		if err := WriteImported(filepath.Join(m.Dir, r.Dir), r.Header, r.Summary, r.Stored); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		return fmt.Errorf("create the directory of the import: %w", err)
	}
	m.Fill()
	return WriteJSON(filepath.Join(m.Dir, importFile), m)
}

// Fill sets what the JSON of an import always has.
func (m *Import) Fill() {
	m.Schema = importSchema
	if m.Runs == nil {
		m.Runs = []ImportedRun{}
	}
	if m.Faults == nil {
		m.Faults = []ImportFault{}
	}
}

// CheckFree refuses a directory that exists.
func (m *Import) CheckFree() error {
	if _, err := os.Stat(m.Dir); err == nil {
		return field.Errorf("", "directory %s exists already: choose another [out] or remove it", m.Dir)
	}
	return nil
}

// WriteImported writes the directory of a run that another client measured,
// which the header says. The figures of the summary stand as they are: opened
// again, they are not computed from the calls, of which there may be none.
func WriteImported(dir string, h result.Header, s result.Summary, calls []result.Call) error {
	if h.Imported == nil {
		return fmt.Errorf("write %s: the header does not say where the run was imported from", dir)
	}
	if h.Schema == "" {
		h.Schema = Schema
	}
	w, err := Create(dir, h)
	if err != nil {
		return err
	}
	defer w.Abandon()
	for i := range calls {
		w.Add(&calls[i])
	}
	return w.Finish(nil, &s, nil)
}

// OpenImport returns the run directories of an import, in the order of its
// file.
func OpenImport(dir string) (dirs []string, err error) {
	var m Import
	if err := ReadJSON(filepath.Join(dir, importFile), &m); err != nil {
		return nil, err
	}
	for _, r := range m.Runs {
		dirs = append(dirs, filepath.Join(dir, r.Dir))
	}
	return dirs, nil
}

// IsImport reports whether dir holds the runs of an imported file.
func IsImport(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, importFile))
	return err == nil
}
