package place

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// Disk keeps some room of a disk free. Uploads that run at the same time count together.
type Disk struct {
	Keep int64 // bytes that stay free

	mu      sync.Mutex
	pending int64
}

// ErrUnknown says that this system does not tell how much of a disk is free.
var ErrUnknown = errors.New("this system does not tell how much of the disk is free")

// Reserve sets bytes aside for something that will be written below a directory, or gives a
// FullError where the disk would then have less free than it keeps. Release gives back what was set
// aside, when it is written or given up; it may be called twice.
func (d *Disk) Reserve(dir string, n int64) (release func(), err error) {
	if n < 0 {
		return nil, errors.New("reserve room on the disk: the size of what comes is not known: say it by Content-Length")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	free, err := free(dir)
	if err != nil {
		return nil, fmt.Errorf("see how much room %s has: %w", dir, err)
	}
	if n > free-d.pending-d.Keep { // none of them is so large that this turns over: free is what a disk has
		return nil, &FullError{Dir: dir, Asked: n, Free: max(0, free-d.pending), Keeps: d.Keep}
	}
	d.pending += n
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.pending -= n
	}), nil
}

// Writer writes to w as long as the disk of a directory keeps its room: for what grows without a
// size that was said before. It looks at the disk once for every MiB.
func (d *Disk) Writer(dir string, w io.Writer) io.Writer { return &writer{d: d, dir: dir, w: w} }

type writer struct {
	d    *Disk
	dir  string
	w    io.Writer
	room int64 // bytes until the disk is looked at again
}

const lookEvery = 1 << 20

func (w *writer) Write(b []byte) (int, error) {
	if int64(len(b)) > w.room {
		need := max(int64(len(b)), lookEvery)
		release, err := w.d.Reserve(w.dir, need)
		if err != nil {
			return 0, err
		}
		release()
		w.room = need
	}
	n, err := w.w.Write(b)
	w.room -= int64(n)
	return n, err
}
