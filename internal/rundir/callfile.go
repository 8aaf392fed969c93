package rundir

import (
	"bufio"
	"cmp"
	"os"
	"sync"
	"time"

	"perflab/internal/result"
)

// saveAfter is how long a call may wait in memory before it is given to the
// kernel, which keeps it when this process is killed: within a second of the
// call's end also where a busy machine is late with the timer.
const saveAfter = time.Second / 2

// callFile is a file to which calls are appended.
type callFile struct {
	mu     sync.Mutex // of all of it, for save comes by a timer
	file   *os.File   // nil: closed
	buf    *bufio.Writer
	line   []byte
	saving *time.Timer // will save; nil: nothing waits
	err    error       // first write error; the run goes on in memory
}

func createCallFile(path string) (*callFile, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &callFile{file: file, buf: bufio.NewWriterSize(file, 1<<16)}, nil
}

// add appends one call. After a write error it does nothing: err keeps the
// error, and the calls are still in memory.
func (f *callFile) add(c *result.Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return
	}
	f.line = append(c.AppendJSON(f.line[:0]), '\n')
	if _, f.err = f.buf.Write(f.line); f.err == nil && f.saving == nil {
		f.saving = time.AfterFunc(saveAfter, f.save)
	}
}

// save gives the kernel the calls that wait.
func (f *callFile) save() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saving = nil
	if f.file != nil && f.err == nil {
		f.err = f.buf.Flush()
	}
}

// close ends the file with all calls that were added.
func (f *callFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return f.err
	}
	if f.saving != nil {
		f.saving.Stop()
	}
	err := cmp.Or(f.err, f.buf.Flush()) // the buffer keeps its first error
	if closed := f.file.Close(); err == nil {
		err = closed
	}
	f.file, f.err = nil, cmp.Or(err, os.ErrClosed)
	return err
}
