package studies

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"perflab/internal/redact"
)

// Bounds of what is read of a file that grows.
const (
	firstRead = 64 << 10  // of what is there when somebody begins to look
	mostRead  = 256 << 10 // in one look: what is between is left out
	mostLine  = 2000      // bytes of a line
	mostLines = 400       // of a log that are kept
)

// tail reads on in a file that grows.
type tail struct {
	path string
	at   int64  // what is before it was read
	rest []byte // the beginning of a line whose end is not there yet
	cut  bool   // rest is not the beginning of its line
}

// more returns the whole lines that were added, without their ends, and how many bytes were left
// out before them. A file that is not there, or became another, has none.
func (t *tail) more() (lines [][]byte, left int64, err error) {
	f, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, err
	}
	most := int64(mostRead)
	if t.at == 0 {
		most = firstRead
	}
	size := info.Size()
	switch {
	case size <= t.at: // as it was, or replaced
		t.at = size
		return nil, 0, nil
	case size-t.at > most:
		left = size - most - t.at
		t.at, t.rest, t.cut = size-most, nil, true
	}
	b := make([]byte, size-t.at)
	n, err := f.ReadAt(b, t.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	t.at += int64(n)
	return t.split(b[:n]), left, nil
}

// split takes whole lines of what was read.
func (t *tail) split(b []byte) (lines [][]byte) {
	b = append(t.rest, b...)
	for {
		line, rest, ok := bytes.Cut(b, []byte{'\n'})
		if !ok {
			break
		}
		if !t.cut {
			lines = append(lines, line)
		}
		t.cut, b = false, rest
	}
	if len(b) > mostRead { // a line without end
		b, t.cut = nil, true
	}
	t.rest = bytes.Clone(b)
	return lines
}

// line is one of a log, and where it ends in the file: what a browser says that it has.
type line struct {
	text string
	end  int64
}

// logTail is the end of a log, as it can be shown.
type logTail struct {
	name    string // of the file, below the study's directory
	lines   []line // the last ones; never written to
	secrets redact.Values
	tail    tail
}

// follow reads on in a log; another one is read from its end.
func (l *logTail) follow(name, path string) error {
	if l.tail.path != path {
		l.name, l.lines, l.tail = name, nil, tail{path: path}
	}
	added, left, err := l.tail.more()
	if err != nil || len(added) == 0 {
		return err
	}
	var out []line
	if left > 0 && len(l.lines) > 0 {
		out = append(out, line{"... more than can be followed was written here ...", l.tail.at})
	}
	end := l.tail.at - int64(len(l.tail.rest))
	for i := len(added) - 1; i >= 0; i-- { // ends are counted from the last
		out = append(out, line{string(added[i]), end})
		end -= int64(len(added[i])) + 1
	}
	from := len(out) - len(added)
	reverse(out[from:])
	l.mask(out[from:])
	all := append(l.lines[:len(l.lines):len(l.lines)], out...)
	l.lines = all[max(0, len(all)-mostLines):]
	return nil
}

func reverse(all []line) {
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
}

// mask makes lines fit to be shown. They are masked together, since a secret may have several;
// where that changes how many there are, the first has the text of all.
func (l *logTail) mask(all []line) {
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = shownLine(all[i].text)
	}
	whole := strings.Split(l.secrets.Text(strings.Join(texts, "\n")), "\n")
	for i := range all {
		if len(whole) == len(all) {
			all[i].text = whole[i]
			continue
		}
		all[i].text = "" // the mask stands for all of them
		if i == 0 {
			all[i].text = strings.Join(whole, " ")
		}
	}
}

// shownLine is a line without what steers a terminal; of one that was written over, as a bar of progress is, the last.
func shownLine(s string) string {
	s = strings.TrimRight(s, "\r")
	if i := strings.LastIndexByte(s, '\r'); i >= 0 {
		s = s[i+1:]
	}
	if len(s) > mostLine {
		s = s[:mostLine] + "..."
	}
	return redact.Printable(s)
}
