package durable

import (
	"errors"
	"os"
	"time"
)

// A look takes no longer than an instant, and must not be taken for a holder.
const (
	holdTries = 5
	holdPause = 10 * time.Millisecond
)

// Hold marks an open file or directory as in use until it is closed, or the process ends in
// whatever way; false where another holds it.
func Hold(f *os.File) (bool, error) {
	for try := 1; ; try++ {
		err := lockFile(f)
		switch {
		case err == nil:
			return true, nil
		case !errors.Is(err, errLocked):
			return false, err
		case try == holdTries:
			return false, nil
		}
		<-time.After(holdPause)
	}
}

// Held reports whether somebody holds a file or a directory; nobody does what does not exist.
func Held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() // which ends the look
	return Locked(f)
}

// Locked reports whether somebody holds an open file or directory. Who asks closes it at once:
// until then it cannot be held.
func Locked(f *os.File) bool { return errors.Is(look(f), errLocked) }
