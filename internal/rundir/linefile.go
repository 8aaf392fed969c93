package rundir

import (
	"bufio"
	"cmp"
	"os"
	"sync"
	"time"

	"perflab/internal/durable"
)

// saveAfter is how long a line may wait in memory before it is given to the
// kernel, which keeps it when this process is killed: within a second of the
// call's end also where a busy machine is late with the timer.
const saveAfter = time.Second / 2

// lineFile is a file to which lines of JSON are appended, calls or readings.
type lineFile struct {
	mu     sync.Mutex // of all of it, for save comes by a timer
	file   *os.File   // nil: closed
	buf    *bufio.Writer
	line   []byte
	saving *time.Timer // will save; nil: nothing waits
	err    error       // first write error; the run goes on in memory
}

// createLines makes the file. What goes wrong is the error of its close.
func createLines(path string) *lineFile {
	file, err := os.Create(path)
	if err != nil {
		return &lineFile{err: err}
	}
	_, _ = durable.Hold(file) // for who asks whether the run is under way, and no other use
	return &lineFile{file: file, buf: bufio.NewWriterSize(file, 1<<16)}
}

// add appends a line. After a write error it does nothing: err keeps the
// error, and what was to be written is still in memory.
func (f *lineFile) add(line interface{ AppendJSON(b []byte) []byte }) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return
	}
	f.line = append(line.AppendJSON(f.line[:0]), '\n')
	if _, f.err = f.buf.Write(f.line); f.err == nil && f.saving == nil {
		f.saving = time.AfterFunc(saveAfter, f.save)
	}
}

// save gives the kernel the lines that wait.
func (f *lineFile) save() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.saving != nil {
		f.saving.Stop()
		f.saving = nil
	}
	if f.file != nil && f.err == nil {
		f.err = f.buf.Flush()
	}
}

// close ends the file with all lines that were added.
func (f *lineFile) close() error {
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
