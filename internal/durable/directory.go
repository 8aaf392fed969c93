package durable

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Directory is a directory under way. It is written beside the name that it will have and
// gets it whole. What a killed process left of one is cleared away by the next that
// makes it; two processes at once are kept apart by a lock, which the kernel
// releases when a process ends, in whatever way.
type Directory struct {
	Path string // where to write

	name string
	lock *os.File // nil: published or abandoned
}

// BusyError says that another process makes the directory.
type BusyError struct{ Path string }

func (e *BusyError) Error() string { return "another process writes " + e.Path }

// Begin makes an empty directory beside the name that it will have, with a suffix that
// nothing else uses: what is there under that name is cleared away. A name that is
// taken is an error (fs.ErrExist).
func Begin(name, suffix string) (*Directory, error) {
	name = filepath.Clean(name)
	d := &Directory{Path: name + suffix, name: name}
	if err := MkdirAll(d.Path); err != nil {
		return nil, err
	}
	var err error
	if d.lock, err = lockDirectory(d.Path); err != nil {
		return nil, err
	}
	if err := d.clear(); err != nil {
		unlockDirectory(d.lock)
		return nil, err
	}
	return d, nil
}

// clear empties the directory, which is locked.
func (d *Directory) clear() error {
	if _, err := os.Lstat(d.name); err == nil {
		_ = os.Remove(d.Path) // where it is empty, which a leftover is not
		return fmt.Errorf("%s: %w", d.name, fs.ErrExist)
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(d.Path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// PublishAll gives directories their names: all of them are safe before the first has its
// own. Where one cannot have it, those after it are left under way.
func PublishAll(all ...*Directory) error {
	for _, d := range all {
		if err := (Disk{}).SyncTree(d.Path); err != nil {
			return err
		}
	}
	for _, d := range all {
		if err := os.Rename(d.Path, d.name); err != nil {
			return err
		}
		unlockDirectory(d.lock)
		d.lock = nil
	}
	for _, d := range all {
		if err := (Disk{}).SyncDir(filepath.Dir(d.name)); err != nil {
			return err
		}
	}
	return nil
}

// Abandon removes a directory that was not published. After PublishAll it does nothing.
func (d *Directory) Abandon() {
	if d.lock == nil {
		return
	}
	_ = os.RemoveAll(d.Path) // else the next one removes it
	unlockDirectory(d.lock)
	d.lock = nil
}
