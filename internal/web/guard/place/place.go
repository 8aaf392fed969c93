package place

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"syscall"
)

// Place is a directory of which files are opened by names that others give.
type Place struct{ root *os.Root }

// Open opens a directory.
func Open(dir string) (*Place, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Place{root}, nil
}

// Close ends it.
func (p *Place) Close() error { return p.root.Close() }

// File opens a regular file to read. What is no such file, a pipe or a device that would keep the
// reader waiting above all, is not there (fs.ErrNotExist); a name that Check refuses is a NameError.
func (p *Place) File(name string) (*os.File, fs.FileInfo, error) {
	if err := Check(name); err != nil {
		return nil, nil, err
	}
	// Without O_NONBLOCK the opening of a pipe waits until somebody writes into it.
	f, err := p.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// Serve answers with a file. A browser shows it as text or an image or saves it, and runs nothing
// of it. Whatever keeps it from being served is a 404, so that nobody learns by it what else there is.
func (p *Place) Serve(w http.ResponseWriter, r *http.Request, name string) {
	f, info, err := p.File(name)
	if err != nil {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	defer f.Close()
	Harmless(w.Header(), name)
	http.ServeContent(w, r, "", info.ModTime(), f)
}

// Harmless sets the headers by which a file of that name, whoever made it, can be given to a
// browser: its type, whether it is saved, and a policy under which nothing in it runs.
func Harmless(h http.Header, name string) {
	kind, save := contentType(name)
	h.Set("Content-Type", kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	if save {
		h.Set("Content-Disposition", Disposition(name))
	}
}

// Gone says that an error of File means no more than that there is no such file for the one who asks.
func Gone(err error) bool {
	_, bad := errors.AsType[*NameError](err)
	return bad || errors.Is(err, fs.ErrNotExist)
}

// FullError says that something would fill the disk.
type FullError struct {
	Dir                string
	Asked, Free, Keeps int64 // bytes
}

func (e *FullError) Error() string {
	return fmt.Sprintf("%s would not fit: the disk of %s has %s free, and %s stay free for what is measured: delete runs, or give the server more room",
		size(e.Asked), e.Dir, size(e.Free), size(e.Keeps))
}

func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}
