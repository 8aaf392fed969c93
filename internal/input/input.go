// Package input reads files and standard input up to a size, so that a device, a
// pipe without an end or the wrong file costs a sentence and not the memory.
//
//	source, err := input.File("study.yaml", 4<<20)
//	data, err := input.All(os.Stdin, "stdin", input.Stream)
//	in := bufio.NewReader(input.Lines(file, 64<<20))
//
// Whoever reads something says how much it can be: the package knows no formats.
package input

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Stream is the most that is read of what has no size beforehand, as standard
// input, a pipe or a device, whatever a file of its kind may have: results of a
// hundred thousand requests with their texts are as long, and a machine that
// sends a load has the memory for it.
const Stream = 256 << 20

// SizeError says that there is more than is read.
type SizeError struct {
	Name string
	Most int64
	Line bool // a single line has it
}

func (e *SizeError) Error() string { return e.Name + " " + e.Reason() }

// Reason is the error without the name.
func (e *SizeError) Reason() string {
	what := "has"
	if e.Line {
		what = "has a line of"
	}
	return fmt.Sprintf("%s more than %s, which is more than such a file can have: see whether it is the right one", what, sizeText(e.Most))
}

func sizeText(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB"}
	for n >= 1<<10 && n%(1<<10) == 0 && len(units) > 1 {
		n, units = n>>10, units[1:]
	}
	return fmt.Sprintf("%d %s", n, units[0])
}

// File reads a file of at most a size: of a regular file that has more nothing
// is read.
func File(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return All(f, path, min(most, Stream))
	}
	if info.Size() > most {
		return nil, &SizeError{Name: path, Most: most}
	}
	var b bytes.Buffer
	b.Grow(int(info.Size()) + bytes.MinRead)
	return all(&b, f, path, most)
}

// All reads at most so many bytes up to the end.
func All(r io.Reader, name string, most int64) ([]byte, error) {
	return all(new(bytes.Buffer), r, name, most)
}

func all(b *bytes.Buffer, r io.Reader, name string, most int64) ([]byte, error) {
	n, err := b.ReadFrom(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, &SizeError{Name: name, Most: most}
	}
	return b.Bytes(), nil
}

// Lines reads on from r as long as no line has more than so many bytes.
func Lines(r io.Reader, name string, most int64) io.Reader {
	return &lines{r: r, name: name, most: most}
}

type lines struct {
	r    io.Reader
	name string
	most int64
	line int64 // bytes of the line so far
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	first := bytes.IndexByte(p[:n], '\n')
	if first < 0 {
		first = n
	}
	if l.line+int64(first) > l.most {
		return 0, &SizeError{Name: l.name, Most: l.most, Line: true}
	}
	if last := bytes.LastIndexByte(p[:n], '\n'); last >= 0 {
		l.line = int64(n - last - 1)
	} else {
		l.line += int64(n)
	}
	return n, err
}
