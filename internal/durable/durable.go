// Package durable writes files and directories that neither a kill nor a power
// cut leaves half done: what has its name is whole and on the disk.
//
//	err := durable.WriteFile("run-1/summary.json", b, 0o644)
//	err = durable.Publish("run-1.tmp", "run-1")
//
// Invariants: a file is synced before it gets its name, and the directory that
// has the name after it; a name that existed leads to the old or the new file
// at every instant. Of a file system that cannot sync directories, which some
// networked ones cannot, no more is asked than it can.
//
// Absent: files that grow, which their writers sync themselves.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Step is one of the acts that make something safe.
type Step string

// The steps, as a Disk's Trace is told of them.
const (
	SyncedFile      Step = "sync file"
	SyncedDirectory Step = "sync directory"
	Renamed         Step = "rename" // told with the new name
)

// Disk makes things safe. The zero Disk is ready.
type Disk struct {
	Trace    func(Step, string) // told of each step after it, one at a time; nil: nobody is
	Unsynced bool               // names and files appear whole, and who publishes the directory that they are in syncs them
}

func (d Disk) done(s Step, path string) {
	if d.Trace != nil {
		d.Trace(s, path)
	}
}

// WriteFile replaces a file as a whole: see Disk.Replace.
func WriteFile(path string, b []byte, mode fs.FileMode) error {
	return Disk{}.WriteFile(path, b, mode)
}

// AppendFile adds to the end of a file, which it makes where there is none, and syncs it.
// What is there already stays whatever happens.
func AppendFile(path string, b []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// Replace makes a file of what a function writes: see Disk.Replace.
func Replace(path string, write func(io.Writer) error) error {
	return Disk{}.Replace(path, 0o644, write)
}

// Publish gives a directory its name: see Disk.Publish.
func Publish(tmp, dir string) error { return Disk{}.Publish(tmp, dir) }

// MkdirAll makes a directory with its parents: see Disk.MkdirAll.
func MkdirAll(dir string) error { return Disk{}.MkdirAll(dir) }

// WriteFile replaces a file as a whole.
func (d Disk) WriteFile(path string, b []byte, mode fs.FileMode) error {
	return d.Replace(path, mode, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// Replace makes the file at path of what write writes. Who reads it sees the old
// file or the new one, and what could not be finished is not left behind. A link stays
// one: the file that it leads to is replaced. What is no regular file, a terminal or
// a pipe, is written to as it is.
func (d Disk) Replace(path string, mode fs.FileMode, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return inPlace(path, write)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	// The name is this process's own: two that write one file must not mix.
	tmp := fmt.Sprintf("%s.%d.new", path, os.Getpid())
	file, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	err = write(file)
	if err == nil && !d.Unsynced {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		d.done(SyncedFile, path)
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp) // the error to tell is the other
		return err
	}
	d.done(Renamed, path)
	return d.SyncDir(filepath.Dir(path))
}

func inPlace(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// Publish renames a directory that is complete: all that is in it is synced
// before, so that under its name it is complete also after a power cut.
func (d Disk) Publish(tmp, dir string) error {
	if err := d.SyncTree(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return err
	}
	d.done(Renamed, dir)
	return d.SyncDir(filepath.Dir(dir))
}

// MkdirAll makes a directory and the parents that it lacks, and syncs their names.
func (d Disk) MkdirAll(dir string) error {
	var parents []string // of what is missing, the deepest first
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || filepath.Dir(at) == at {
			break
		}
		parents = append(parents, filepath.Dir(at))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, parent := range parents {
		if err := d.SyncDir(parent); err != nil {
			return err
		}
	}
	return nil
}

// atOnce is how many files of a tree are synced at a time. A disk commits those
// that wait together, so that many small ones take the time of a few.
const atOnce = 16

// SyncTree syncs every file and directory below dir, and dir itself: the files
// first. What is neither (a socket of an engine, a link), and what this user may
// not read, which we did not write, is left as it is.
func (d Disk) SyncTree(dir string) error {
	if d.Unsynced {
		return nil
	}
	var files, dirs []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			dirs = append(dirs, path)
		case e.Type().IsRegular():
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	errs := make([]error, len(files))
	var wait sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i, path := range files {
		free <- struct{}{}
		wait.Go(func() { errs[i] = syncPath(path); <-free })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, path := range files {
		d.done(SyncedFile, path)
	}
	for _, path := range dirs {
		if err := d.SyncDir(path); err != nil {
			return err
		}
	}
	return nil
}

// SyncDir syncs the names in a directory.
func (d Disk) SyncDir(dir string) error {
	if d.Unsynced {
		return nil
	}
	err := syncDirectory(dir)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // this file system has no such thing
	}
	if err == nil {
		d.done(SyncedDirectory, dir)
	}
	return err
}

func syncPath(path string) error {
	f, err := openToSync(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
