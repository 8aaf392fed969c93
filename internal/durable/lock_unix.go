//go:build unix

package durable

import (
	"errors"
	"os"
	"syscall"
)

// lockFile makes a file this process's own for as long as it is open, or gives errLocked. The
// kernel releases the lock when the process ends, in whatever way.
func lockFile(file *os.File) error { return flock(file, syscall.LOCK_EX) }

// look gives errLocked of what another process has locked.
func look(file *os.File) error { return flock(file, syscall.LOCK_SH) }

func flock(file *os.File, how int) error {
	err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

// lockDirectory makes a directory this process's own.
func lockDirectory(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	// A file system that has no locks for directories, as some networked ones, leaves
	// it to the user that two do not make the same directory at once.
	busy := errors.Is(lockFile(dir), errLocked)
	// Another process may have published it before the lock was ours.
	locked, err := dir.Stat()
	if err != nil {
		dir.Close()
		return nil, err
	}
	if there, err := os.Stat(path); busy || err != nil || !os.SameFile(locked, there) {
		dir.Close()
		return nil, &BusyError{path}
	}
	return dir, nil
}

func unlockDirectory(lock *os.File) { lock.Close() } // it holds nothing that could be lost

func openToSync(path string) (*os.File, error) { return os.Open(path) }

func syncDirectory(path string) error { return syncPath(path) }
