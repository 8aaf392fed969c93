package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"perflab/internal/study"
	"perflab/internal/tune/journal"
)

// seal makes a trial safe before the journal learns that it ended: it syncs all that
// is in the trial's directory, and the directory's name, and returns the SHA-256 of the
// trial's files for its record. Files are hashed here, between trials, since hashing
// calls as they are written would take the client's time while it measures.
func (d *directory) seal(trial string) (map[string]string, error) {
	if err := d.disk.SyncTree(trial); err != nil {
		return nil, fmt.Errorf("sync %s: %w", trial, err)
	}
	if err := d.disk.SyncDir(filepath.Dir(trial)); err != nil {
		return nil, fmt.Errorf("sync %s: %w", filepath.Dir(trial), err)
	}
	if !d.journal.Checksums() {
		return nil, nil
	}
	sums := map[string]string{}
	err := filepath.WalkDir(trial, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join(trial, logsDir):
			return fs.SkipDir // no figure is made of logs, and an engine that is stuck still writes them
		case !e.Type().IsRegular():
			return nil
		}
		sum, err := sumFile(path)
		sums[d.relative(path)] = sum
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("hash the files of %s: %w", trial, err)
	}
	return sums, nil
}

// verify holds the files of all trials that ended against the journal. The strategy was told
// what they held, and went on from there: a trial in the middle cannot be measured
// again without those after it, so that is left to the user.
func (d *directory) verify(log journal.Log) error {
	for _, t := range log.Trials {
		if t.Observation == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(t.Observation.Files)) {
			sum, err := sumFile(filepath.Join(d.path, filepath.FromSlash(name)))
			what := "is not as it was"
			switch {
			case errors.Is(err, fs.ErrNotExist):
				what = "is gone, which was there"
			case err != nil:
				return fmt.Errorf("check the files of trial %d: %w", t.Proposal.Trial, err)
			case sum == t.Observation.Files[name]:
				continue
			}
			return fmt.Errorf("%s %s when trial %d ended: put it back, or remove line %d and those after it from %s to have the trials from %d on measured again",
				name, what, t.Proposal.Trial, t.Line, journalFile, t.Proposal.Trial)
		}
	}
	return nil
}

func sumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// explain says of the journal of another study what differs: the study file, whose copy
// is beside the journal, or how it is read.
func (d *directory) explain(err error, s *study.Study, source []byte, version string) error {
	other, ok := errors.AsType[*journal.AnotherStudyError](err)
	if !ok {
		return err
	}
	path := filepath.Join(d.path, sourceFile)
	kept, rerr := os.ReadFile(path)
	shown := s.Redacted(source) // as the copy is kept
	secret := !bytes.Equal(shown, source)
	kept, source = s.Redacted(kept), shown
	switch {
	case rerr != nil:
		return err
	case !bytes.Equal(kept, source):
		return fmt.Errorf("%w (the study file differs from its copy %s from line %d on)", err, path, differentLine(kept, source))
	case other.Version != version:
		return fmt.Errorf("the study file is as it was, but perflab %s began the study and this is %s, which reads it as another one: resume with %s, or begin anew in an empty directory", other.Version, version, other.Version)
	}
	if secret {
		return fmt.Errorf("%w (the study file is as it was, but for a secret in it perhaps, which its copy does not have: --strategy, a secret, a file of recipes that it names, or earlier.json, is another)", err)
	}
	return fmt.Errorf("%w (the study file is as it was: --strategy, a file of recipes that it names, or earlier.json, is another)", err)
}

// differentLine numbers the first line in which two texts differ, 1 the first.
func differentLine(a, b []byte) int {
	line := 1
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			break
		}
		if a[i] == '\n' {
			line++
		}
	}
	return line
}
