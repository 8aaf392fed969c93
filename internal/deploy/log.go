package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"perflab/internal/durable"
	"perflab/internal/redact"
)

// memberLog is the file that holds a process's stdout and stderr. Launches of
// the same directory follow each other in it; the tail is the last one's. The
// process writes it by itself, secrets and all, so that it is the owner's alone
// until conceal has replaced them.
type memberLog struct {
	path    string
	from    int64 // where this launch begins
	secrets redact.Values
}

const (
	tailBytes = 64 << 10 // read for signatures; a traceback of many ranks fits
	lastLines = 5        // shown to people
)

// openLog appends the header line with the command and returns the file for
// the child to write to.
func openLog(dir, name string, argv, env []string) (*memberLog, *os.File, error) {
	l := &memberLog{
		path:    filepath.Join(dir, name+".log"),
		secrets: redact.ValuesOf(argv, slices.Concat(os.Environ(), env)),
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	_, err = fmt.Fprintf(f, "# %s %s\n", time.Now().UTC().Format(time.RFC3339), commandLine(argv, env))
	if err == nil {
		l.from, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return l, f, nil
}

// tail returns the end of this launch's log as text that can be shown: whole lines, without
// what steers a terminal, and with the secrets of command and environment, and what looks
// like one, blotted out. A
// log that cannot be read has no tail.
func (l *memberLog) tail() string {
	b, from := l.read(0, tailBytes)
	if _, rest, cut := bytes.Cut(b, []byte{'\n'}); cut && from > l.from {
		b = rest // of a line of which the begin is not here a secret would not be known
	}
	return redact.Text(l.secrets.Mask(redact.Printable(string(b))))
}

// conceal replaces the secrets in a log to which nobody writes any more, and
// gives it to whoever may read the directory. An earlier launch's are replaced
// already.
func (l *memberLog) conceal() error {
	in, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer in.Close()
	return durable.Replace(l.path, func(w io.Writer) error { return l.copyConcealed(w, in) })
}

// concealRunning is conceal for a log to which a process may still write. It
// stays the owner's.
func (l *memberLog) concealRunning() error {
	b, err := os.ReadFile(l.path)
	if err != nil {
		return err
	}
	var masked bytes.Buffer
	if err := l.copyConcealed(&masked, bytes.NewReader(b)); err != nil || bytes.Equal(masked.Bytes(), b) {
		return err
	}
	return os.WriteFile(l.path, masked.Bytes(), 0o600)
}

// copyConcealed copies a log without its secrets, many lines at a time.
func (l *memberLog) copyConcealed(w io.Writer, r io.Reader) error {
	in := bufio.NewReader(r)
	var lines []byte
	for {
		line, err := in.ReadSlice('\n')
		lines = append(lines, line...)
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if ended || err == nil && len(lines) >= maskedAtOnce {
			if _, err := io.WriteString(w, l.secrets.Text(string(lines))); err != nil || ended {
				return err
			}
			lines = lines[:0]
		}
	}
}

// maskedAtOnce is how much of a log is looked through at a time.
const maskedAtOnce = 1 << 20

// read returns what the launch has written after the given place of the file, the last
// bytes of it where it is more than most, and the place where that begins.
func (l *memberLog) read(after, most int64) (b []byte, from int64) {
	f, err := os.Open(l.path)
	if err != nil {
		return nil, after
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, after
	}
	from = max(l.from, after, end-most)
	b, err = io.ReadAll(io.NewSectionReader(f, from, max(0, end-from)))
	if err != nil {
		return nil, from
	}
	return b, from
}

// textWatch looks for a text in a log that grows.
type textWatch struct {
	log  *memberLog
	text []byte
	next int64 // where it has not looked yet
}

func (w *textWatch) seen() bool {
	const glance = 16 << 20 // more than is written between two looks
	b, from := w.log.read(w.next, glance)
	if w.next = from + int64(len(b)) - int64(len(w.text)) + 1; w.next < from {
		w.next = from
	}
	return bytes.Contains(b, w.text)
}

// argparse prints "usage: ..." and "PROG: error: WHY", click prints
// "Usage: ..." and "Error: WHY"; both exit with status 2. A status alone says
// nothing (a Go panic has the same).
var (
	usageLine  = regexp.MustCompile(`(?im)^usage: `)
	usageError = regexp.MustCompile(`(?im)^(?:[^\n:]+: )?error: (.+)$`)
	usageWords = regexp.MustCompile(`^(?:unrecognized arguments|argument \S+:|the following arguments are required|ambiguous option|No such option|Invalid value for|Missing (?:option|argument|parameter))`)
)

// usageRefusal finds the line by which a command-line parser refused.
func usageRefusal(log string) (string, bool) {
	all := usageError.FindAllStringSubmatch(log, -1)
	if len(all) == 0 {
		return "", false
	}
	why := strings.TrimSpace(all[len(all)-1][1])
	return why, usageWords.MatchString(why) || usageLine.MatchString(log)
}
