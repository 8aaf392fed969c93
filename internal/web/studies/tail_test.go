package studies

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/redact"
)

func appendTo(t testing.TB, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}

func texts(l *logTail) (out []string) {
	for _, x := range l.lines {
		out = append(out, x.text)
	}
	return out
}

// TestLogTail: lines come whole, once, masked and bounded, and their ends are those of the file.
func TestLogTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "replica-0.log")
	l := &logTail{secrets: redact.ValuesOf(nil, []string{"HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345"})}
	follow := func() {
		t.Helper()
		if err := l.follow("replica-0.log", path); err != nil {
			t.Fatal(err)
		}
	}
	follow() // it is not there yet
	appendTo(t, path, []byte("one\ntwo \x1b[31mred\x1b[0m\nthree, wi"))
	follow()
	if got := fmt.Sprint(texts(l)); got != "[one two red]" {
		t.Errorf("%s", got)
	}
	appendTo(t, path, []byte("th hf_abcdefghijklmnopqrstuvwxyz012345\nloading 1 %\rloading 2 %\r\n"))
	follow()
	follow()
	got := texts(l)
	if len(got) != 4 || !strings.HasPrefix(got[2], "three, with ") || strings.Contains(got[2], "abcdefghij") || got[3] != "loading 2 %" {
		t.Errorf("%q", got)
	}
	info, err := os.Stat(path)
	if err != nil || l.lines[3].end != info.Size() || l.lines[0].end != 4 {
		t.Errorf("the lines end at %+v of %d", l.lines, info.Size())
	}
	appendTo(t, path, bytes.Repeat([]byte("a line of what is too much to be followed\n"), 100_000))
	follow()
	if n := len(l.lines); n != mostLines || l.lines[n-1].text != "a line of what is too much to be followed" {
		t.Errorf("%d lines, the last one %q", n, l.lines[n-1].text)
	}
	if err := os.WriteFile(path, []byte("replaced\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	follow() // what is shorter was replaced by one that is masked: nobody writes to it any more
	if n := len(l.lines); n != mostLines {
		t.Errorf("%d lines of a log that was replaced", n)
	}
	long := filepath.Join(filepath.Dir(path), "long.log")
	appendTo(t, long, bytes.Repeat([]byte("x"), 3*mostRead))
	if err := l.follow("long.log", long); err != nil || len(l.lines) != 0 || len(l.tail.rest) > mostRead {
		t.Errorf("a line without end: %d lines, %d bytes are kept, %v", len(l.lines), len(l.tail.rest), err)
	}
}

// FuzzTail: however a file grows, the lines are those that it has.
func FuzzTail(f *testing.F) {
	f.Add([]byte("one\ntwo\n\nthree"), uint8(3), uint8(5))
	f.Add([]byte("\n\n"), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, a, b uint8) {
		path := filepath.Join(t.TempDir(), "log")
		x := tail{path: path}
		var got []string
		for len(data) > 0 {
			n := min(len(data), 1+int(a))
			a, b = b, a
			appendTo(t, path, data[:n])
			data = data[n:]
			lines, left, err := x.more()
			if err != nil || left != 0 {
				t.Fatal(left, err)
			}
			for _, l := range lines {
				got = append(got, string(l))
			}
		}
		all, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return
		}
		whole := strings.Split(string(all), "\n")
		if want := whole[:len(whole)-1]; strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
			t.Errorf("%q of %q", got, all)
		}
		if string(x.rest) != whole[len(whole)-1] {
			t.Errorf("the rest is %q of %q", x.rest, all)
		}
	})
}
