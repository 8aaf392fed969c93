package scan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"perflab/internal/input"
)

// Read makes the facts of a place. digest gives the digest of the calls in a file, where it is
// known; nil: it is computed.
func (t *Tree) Read(p Place, digest Digests) Facts {
	f := Facts{Kind: p.Kind, Name: short(t.name(p.Path)), Fault: p.Fault}
	var err error
	switch p.Kind {
	case Run:
		err = t.readRun(p, &f, digest)
	case Study:
		err = t.readStudy(p, &f)
	case Series:
		err = t.readSeries(p, &f)
	case Import:
		err = t.readImport(p, &f)
	case Site:
		err = t.readSite(p, &f)
	}
	if err != nil {
		f.Fault = cmp.Or(f.Fault, short(err.Error()))
	}
	if f.ID == "" { // nothing tells it from others but where it is
		f.ID = id("place", t.Dir, p.Path)
	}
	f.Config, f.Known = configuration(&f)
	return f
}

// name is the directory's own, without what says that a run is under way.
func (t *Tree) name(at string) string {
	if at == "." {
		abs, err := filepath.Abs(t.Dir)
		if err != nil {
			return t.Dir
		}
		return filepath.Base(abs)
	}
	return strings.TrimSuffix(path.Base(at), partialSuffix)
}

// mostJSON is the size of a JSON file that is read.
const mostJSON = 1 << 30

// file reads a file of a place whole, and counts its bytes.
func (t *Tree) file(p Place, name string, f *Facts) ([]byte, error) {
	file, err := t.root.Open(path.Join(p.Path, name))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer file.Close()
	b, err := input.All(file, name, mostJSON)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	f.Bytes += int64(len(b))
	return b, nil
}

func (t *Tree) json(p Place, name string, f *Facts, v any) error {
	b, err := t.file(p, name, f)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// size is how long a file of a place is, 0 where there is none.
func (t *Tree) size(p Place, name string) int64 {
	info, err := t.root.Lstat(path.Join(p.Path, name))
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}
