package durable

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/windows"
)

// beyond is where the byte lies that is locked: others cannot read what is locked, so it is one that
// no file has.
const beyond = 1 << 30

// lockFile makes a file this process's own for as long as it is open, or gives errLocked. The
// system releases the lock when the process ends, in whatever way.
func lockFile(file *os.File) error { return lock(file, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// look gives errLocked of what another process has locked.
func look(file *os.File) error { return lock(file, 0) }

func lock(file *os.File, how uint32) error {
	err := windows.LockFileEx(windows.Handle(file.Fd()), how|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{OffsetHigh: beyond})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errLocked
	}
	return err
}

// lockSuffix names the file beside a directory that is locked in its place: directories have no
// locks, and one that is open cannot be renamed.
const lockSuffix = ".lock"

// lockDirectory makes a directory this process's own.
func lockDirectory(path string) (*os.File, error) {
	file, err := os.OpenFile(path+lockSuffix, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = lockFile(file)
	if errors.Is(err, errLocked) {
		err = &BusyError{path}
	}
	// Another process may have published it before the lock was ours.
	if _, gone := os.Stat(path); err == nil && gone != nil {
		err = &BusyError{path}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func unlockDirectory(lock *os.File) {
	lock.Close()
	if strings.HasSuffix(lock.Name(), lockSuffix) {
		_ = os.Remove(lock.Name()) // another process may have it already
	}
}

// openToSync opens for writing, without which the system syncs nothing.
func openToSync(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR, 0) }

// syncDirectory does nothing: the system keeps names by a journal of its own.
func syncDirectory(string) error { return nil }
