package input

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// endless never ends and counts what is taken from it.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) { e.n += int64(len(p)); return len(p), nil }

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("12345678"), 0o644); err != nil {
		t.Fatal(err)
	}
	if b, err := File(path, 8); err != nil || string(b) != "12345678" {
		t.Errorf("read %q, %v", b, err)
	}
	if _, err := File(path, 7); err == nil || err.Error() != path+" has more than 7 bytes, which is more than such a file can have: see whether it is the right one" {
		t.Errorf("too long: %v", err)
	}
	if _, err := File(filepath.Dir(path), 7); err == nil {
		t.Error("a directory was read")
	}
	if _, err := File(path+"x", 7); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// A device that never ends is refused at the limit.
func TestDevice(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("there is no /dev/zero")
	}
	_, err := File("/dev/zero", 1<<20)
	if size, ok := errors.AsType[*SizeError](err); !ok || size.Most != 1<<20 || !strings.Contains(err.Error(), "/dev/zero has more than 1 MiB") {
		t.Errorf("read: %v", err)
	}
}

func TestAll(t *testing.T) {
	if b, err := All(strings.NewReader("12345678"), "stdin", 8); err != nil || string(b) != "12345678" {
		t.Errorf("read %q, %v", b, err)
	}
	e := new(endless)
	if _, err := All(e, "stdin", 1<<16); err == nil || e.n > 1<<18 {
		t.Errorf("%d bytes were read: %v", e.n, err)
	}
}

func TestLines(t *testing.T) {
	in := bufio.NewReader(Lines(strings.NewReader("1234\n12345678\n\n123\n"), "f", 8))
	if b, err := io.ReadAll(in); err != nil || len(b) != 19 {
		t.Errorf("read %q, %v", b, err)
	}
	in = bufio.NewReader(Lines(inThrees("1234\n123456789\n"), "f", 8))
	if line, err := in.ReadString('\n'); err != nil || line != "1234\n" {
		t.Errorf("the first line is %q: %v", line, err)
	}
	if _, err := in.ReadString('\n'); err == nil || !strings.Contains(err.Error(), "f has a line of more than 8 bytes") {
		t.Errorf("too long a line: %v", err)
	}
	e := new(endless)
	if _, err := bufio.NewReader(Lines(e, "f", 1<<16)).ReadBytes('\n'); err == nil || e.n > 1<<18 {
		t.Errorf("%d bytes were read: %v", e.n, err)
	}
}

// inThrees gives a text by three bytes.
func inThrees(text string) io.Reader { return &threes{text} }

type threes struct{ text string }

func (h *threes) Read(p []byte) (int, error) {
	if h.text == "" {
		return 0, io.EOF
	}
	n := copy(p, h.text[:min(3, len(h.text))])
	h.text = h.text[n:]
	return n, nil
}
