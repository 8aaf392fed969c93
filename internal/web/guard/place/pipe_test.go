//go:build unix

package place

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe, whose opening would wait for a writer, is no file.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.log"), 0o600); err != nil {
		t.Skip(err)
	}
	p, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, _, err := p.File("pipe.log"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a pipe: %v", err)
	}
}
