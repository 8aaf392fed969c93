package rundir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"perflab/internal/durable"
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

// importing ends the name of a directory that an import writes. What a killed one left
// under it has nothing that was measured, and the next one clears it away.
const importing = ".importing"

// WriteImports writes the run directories of imports that have runs, with their
// import.json. Their directories appear whole and together, after all is written: an
// import that was killed or failed can be made again. It overwrites nothing.
func WriteImports(imports []Import) error {
	var all []*durable.Directory
	defer func() {
		for _, d := range all {
			d.Abandon()
		}
	}()
	for i := range imports {
		m := &imports[i]
		if len(m.Runs) == 0 {
			continue
		}
		if err := m.CheckFree(); err != nil {
			return err
		}
		d, err := durable.Begin(m.Dir, importing)
		if _, busy := errors.AsType[*durable.BusyError](err); busy {
			return field.Errorf("", "another perflab imports into %s: wait for it, or choose another [out]", m.Dir)
		}
		if err != nil {
			return fmt.Errorf("create the directory of the import: %w", err)
		}
		all = append(all, d)
		if err := m.write(d.Path); err != nil {
			return err
		}
	}
	if err := durable.PublishAll(all...); err != nil {
		return fmt.Errorf("name the directory of the import: %w", err)
	}
	return nil
}

// write writes the runs of an import, unsynced, and its import.json.
func (m *Import) write(dir string) error {
	disk := durable.Disk{Unsynced: true}
	for _, r := range m.Runs {
		if err := writeImported(disk, filepath.Join(dir, r.Dir), r.Header, r.Summary, r.Stored); err != nil {
			return err
		}
	}
	m.Fill()
	return writeJSON(disk, filepath.Join(dir, importFile), m)
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
	return writeImported(durable.Disk{}, dir, h, s, calls)
}

func writeImported(disk durable.Disk, dir string, h result.Header, s result.Summary, calls []result.Call) error {
	if h.Imported == nil {
		return fmt.Errorf("write %s: the header does not say where the run was imported from", dir)
	}
	if h.Schema == "" {
		h.Schema = Schema
	}
	w, err := create(disk, dir, h)
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

// ImportedFile is the file whose import dir holds, as it was named then.
func ImportedFile(dir string) (file string, ok bool) {
	var m Import
	if !IsImport(dir) || ReadJSON(filepath.Join(dir, importFile), &m) != nil {
		return "", false
	}
	return m.File, m.File != ""
}

// IsImport reports whether dir holds the runs of an imported file.
func IsImport(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, importFile))
	return err == nil
}
