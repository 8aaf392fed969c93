package dirdoc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Tree is a directory of files that is written anew as a whole.
type Tree struct {
	Dir      string
	Manifest string                         // the file that names the others
	Read     func([]byte) ([]string, error) // its files
}

// Write writes files and the manifest, last, and takes away what an earlier manifest names and is no
// more; write writes one file. A directory that holds something else is refused, as an *OptionError,
// before anything is written.
func (t Tree) Write(files map[string][]byte, manifest []byte, write func(path string, b []byte) error) error {
	before, err := t.before()
	if err != nil {
		return err
	}
	text := func(path string, b []byte) error { return write(filepath.Join(t.Dir, filepath.FromSlash(path)), b) }
	paths := make([]string, 0, len(files))
	for path := range files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		if err := text(path, files[path]); err != nil {
			return err
		}
	}
	if err := text(t.Manifest, manifest); err != nil {
		return err
	}
	for _, path := range before {
		if _, kept := files[path]; kept || !filepath.IsLocal(path) {
			continue
		}
		if err := os.Remove(filepath.Join(t.Dir, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take away a page that is no more: %w", err)
		}
	}
	return nil
}

// before are the files that an earlier tree left in the directory.
func (t Tree) before() ([]string, error) {
	b, err := os.ReadFile(filepath.Join(t.Dir, t.Manifest))
	if err == nil {
		return t.Read(b)
	}
	entries, err := os.ReadDir(t.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look into the directory to write to: %w", err)
	}
	return nil, &OptionError{fmt.Errorf("%s is not empty and has no %s: name a new or an empty directory", t.Dir, t.Manifest)}
}
