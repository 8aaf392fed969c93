package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"perflab/internal/durable"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/tune/journal"
)

// Names in a study directory.
const (
	journalFile = rundir.JournalFile
	trialFile   = "trial.json"
	sourceFile  = "study.yaml"
	trialsDir   = "trials"
	logsDir     = "logs" // of a trial's engine
)

// directory is the directory of a study, this process's own while it is open.
type directory struct {
	path    string
	file    *os.File // of the journal
	journal *journal.Journal
	disk    durable.Disk
}

// openDirectory creates the study directory, or reopens it, and reads the journal.
func openDirectory(s *study.Study, source []byte, o Options) (_ *directory, log journal.Log, err error) {
	d := &directory{path: o.Dir, disk: o.disk}
	defer func() {
		if err != nil && d.file != nil {
			d.file.Close()
		}
	}()
	if err := d.prepare(o.Resume); err != nil {
		return nil, log, err
	}
	hash, err := s.Fingerprint()
	if err != nil {
		return nil, log, err
	}
	path := filepath.Join(d.path, journalFile)
	if d.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644); err != nil {
		return nil, log, fmt.Errorf("open the journal: %w", err)
	}
	if err := lock(d.file, d.path); err != nil {
		return nil, log, err
	}
	if !o.Resume {
		if err := d.begin(s.Redacted(source), o); err != nil {
			return nil, log, err
		}
	}
	if log, err = journal.Replay(d.file); err != nil {
		return nil, log, fmt.Errorf("read %s: %w", path, err)
	}
	if err := log.Check(hash); err != nil {
		return nil, log, fmt.Errorf("resume %s: %w", d.path, d.explain(err, s, source, o.Version))
	}
	if err := d.verify(log); err != nil {
		return nil, log, fmt.Errorf("resume %s: %w", d.path, err)
	}
	// A line cut by the end of the last process is no record.
	if err := d.file.Truncate(log.Size); err != nil {
		return nil, log, fmt.Errorf("mend the journal: %w", err)
	}
	d.journal, err = journal.Open(d.file, log, journal.Head{Study: hash, Name: s.Name, Version: o.Version})
	return d, log, err
}

// prepare makes a new study directory, or finds the one to resume.
func (d *directory) prepare(resume bool) error {
	if err := d.check(resume); err != nil || resume {
		return err
	}
	if err := d.disk.MkdirAll(filepath.Join(d.path, trialsDir)); err != nil {
		return fmt.Errorf("create the study directory: %w", err)
	}
	return nil
}

// check says why a study cannot begin in the directory, or go on in it.
func (d *directory) check(resume bool) error {
	_, err := os.Stat(filepath.Join(d.path, journalFile))
	switch {
	case err == nil && !resume:
		return &ExistsError{Dir: d.path}
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open the study: %w", err)
	case resume:
		return fmt.Errorf("there is no study in %s to resume: it has no %s", d.path, journalFile)
	}
	return nil
}

// begin keeps the study file of a new study, without its secrets, so that the
// directory can be given to others, what it learned from earlier ones, the tokenizers and the machines that
// it found (nil: nothing), and syncs the name of its journal.
func (d *directory) begin(source []byte, o Options) error {
	for _, f := range []struct {
		name, what string
		data       []byte
	}{{sourceFile, "the study file", source}, {earlierFile, "what earlier studies measured", o.learned}, {lengthsFile, "what measures lengths", o.lengths}, {nodesFile, "the machines of the fleet", o.nodes}} {
		if f.data == nil && f.name != sourceFile {
			continue
		}
		if err := durable.WriteFile(filepath.Join(d.path, f.name), f.data, 0o644); err != nil {
			return fmt.Errorf("keep %s: %w", f.what, err)
		}
	}
	if err := d.disk.SyncDir(d.path); err != nil {
		return fmt.Errorf("create the journal: %w", err)
	}
	return nil
}

// lock makes the directory this process's own for as long as its journal is
// open: two at work in it would clear away each other's trials. The kernel
// releases the lock when the process ends, in whatever way.
func lock(journal *os.File, dir string) error {
	ok, err := durable.Hold(journal)
	switch {
	case err != nil:
		return fmt.Errorf("lock %s: %w", journal.Name(), err)
	case !ok:
		return &BusyError{Dir: dir}
	}
	return nil
}

// BusyError says that another process runs the study in the directory.
type BusyError struct{ Dir string }

func (e *BusyError) Error() string { return "another perflab is at work in " + e.Dir }

// ExistsError says that the output directory holds a study already.
type ExistsError struct{ Dir string }

func (e *ExistsError) Error() string { return e.Dir + " holds a study already" }

// trial is the directory of one trial.
func (d *directory) trial(id int) string {
	return filepath.Join(d.path, trialsDir, fmt.Sprintf("%03d", id))
}

// relative is a path as seen from the study directory.
func (d *directory) relative(path string) string {
	if r, err := filepath.Rel(d.path, path); err == nil {
		return filepath.ToSlash(r)
	}
	return path
}

// trials reads every trial that has ended, in order. One that the journal does not
// end is none: its end was taken out of it, to be measured again.
func (d *directory) trials() ([]trialRecord, error) {
	// No pattern: the directory's name may hold what is special in one.
	dirs, err := os.ReadDir(filepath.Join(d.path, trialsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the trials: %w", err)
	}
	var out []trialRecord
	for _, entry := range dirs {
		var t trialRecord
		switch err := rundir.ReadJSON(filepath.Join(d.path, trialsDir, entry.Name(), trialFile), &t); {
		case errors.Is(err, fs.ErrNotExist): // not ended
			continue
		case err != nil:
			return nil, err
		}
		if d.journal == nil || d.journal.Ended(t.ID) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b trialRecord) int { return a.ID - b.ID })
	return out, nil
}
