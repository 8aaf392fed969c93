// Package trail keeps an audit log: who did what, or was refused it, as lines of JSON that are only
// ever added to.
//
//	t, err := trail.Open(dir, trail.Limits{File: 16 << 20, Files: 20})
//	err = t.Add(trail.Event{Time: now, Who: "anna", Action: "delete", Object: "run 01J..."})
//	page, err := t.Page("", 50, nil) // the newest first
//
// Invariants: an event is one line and on the disk when Add returns, whatever is in its texts; no
// line holds a secret or what steers a terminal. A file keeps its name, so a page's cursor stays
// good when the next file is begun. Two processes may add to one log. A line that a kill cut short
// spoils no other and is counted.
package trail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/durable"
	"perflab/internal/redact"
)

// Event is something that somebody did.
type Event struct {
	Time    time.Time         `json:"time"`
	Who     string            `json:"who,omitempty"`     // name of the token
	Role    string            `json:"role,omitempty"`    // that the one had
	Address string            `json:"address,omitempty"` // from where
	Request string            `json:"request,omitempty"` // id of the request
	Action  string            `json:"action"`            // launch, delete, log in ...
	Object  string            `json:"object,omitempty"`  // what it was done to
	Outcome Outcome           `json:"outcome"`
	Reason  string            `json:"reason,omitempty"` // of a refusal or failure
	Detail  map[string]string `json:"detail,omitempty"` // what else is worth knowing
}

// Outcome is how an action went.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused"
	Failed  Outcome = "failed"
)

// Limits bound a log. Files that are too many are removed, the oldest first.
type Limits struct {
	File  int64 // bytes of a file before the next is begun
	Files int   // how many are kept
}

// Trail is an audit log that is open. Its methods may be called by several goroutines.
type Trail struct {
	dir    string
	limits Limits

	mu   sync.Mutex
	file *os.File
}

// Files of a log have the instant in their names at which they were begun, so that they sort by it.
const (
	prefix = "audit-"
	suffix = ".jsonl"
	stamp  = "20060102T150405.000000000"
)

// Open opens the log in a directory, which it makes where there is none.
func Open(dir string, limits Limits) (*Trail, error) {
	if limits.File <= 0 || limits.Files <= 0 {
		return nil, errors.New("an audit log needs a size of its files and a number")
	}
	if err := durable.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	t := &Trail{dir: dir, limits: limits}
	if err := t.next(); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return t, nil
}

// names are the files of the log, the oldest first.
func (t *Trail) names() ([]string, error) {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries { // sorted by name
		if isName(e.Name()) && e.Type().IsRegular() {
			all = append(all, e.Name())
		}
	}
	return all, nil
}

func isName(name string) bool {
	middle, ok := strings.CutPrefix(name, prefix)
	middle, ends := strings.CutSuffix(middle, suffix)
	_, err := time.Parse(stamp, middle)
	return ok && ends && err == nil
}

// next opens the newest file if there is room in it, or begins one.
func (t *Trail) next() error {
	names, err := t.names()
	if err != nil {
		return err
	}
	name := prefix + time.Now().UTC().Format(stamp) + suffix
	if n := len(names); n > 0 {
		if info, err := os.Stat(filepath.Join(t.dir, names[n-1])); err == nil && info.Size() < t.limits.File {
			name = names[n-1]
		}
	}
	file, err := os.OpenFile(filepath.Join(t.dir, name), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := endLine(file); err != nil {
		return errors.Join(err, file.Close())
	}
	if t.file != nil {
		err = t.file.Close()
	}
	t.file = file
	return errors.Join(err, t.prune())
}

// endLine ends a line that a kill cut short, so that the next begins on its own.
func endLine(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = f.Write([]byte("\n"))
	return err
}

// prune removes the oldest files of too many.
func (t *Trail) prune() error {
	names, err := t.names()
	if err != nil {
		return err
	}
	for len(names) > t.limits.Files {
		if err := os.Remove(filepath.Join(t.dir, names[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		names = names[1:]
	}
	return nil
}

// longest is how many characters a text of an event has at most.
const longest = 500

// mostDetails is how many details an event has at most.
const mostDetails = 20

// text makes a text that belongs to a line: no secret, nothing that steers a terminal, no second line.
func text(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > 16*longest { // hostile: not worth the time of the searches
		s = strings.ToValidUTF8(s[:16*longest], "")
	}
	s = redact.Printable(redact.Text(s))
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest]) + "..."
	}
	return s
}

// clean is an event as it is kept.
func clean(e Event) Event {
	for _, s := range []*string{&e.Who, &e.Role, &e.Address, &e.Request, &e.Action, &e.Object, &e.Reason} {
		*s = text(*s)
	}
	e.Time = e.Time.UTC()
	var detail map[string]string
	for _, name := range slices.Sorted(maps.Keys(e.Detail)) {
		if len(detail) == mostDetails {
			break
		}
		if detail == nil {
			detail = map[string]string{}
		}
		detail[text(name)] = text(redact.Field(name, e.Detail[name]))
	}
	e.Detail = detail
	return e
}

// Add writes an event and has it on the disk when it returns. Who does something that must not
// happen unseen does it after.
func (t *Trail) Add(e Event) error {
	line, err := json.Marshal(clean(e))
	if err != nil {
		return fmt.Errorf("write to the audit log: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.add(append(line, '\n')); err != nil {
		return fmt.Errorf("write to the audit log: %w", err)
	}
	return nil
}

func (t *Trail) add(line []byte) error {
	if t.file == nil {
		return fs.ErrClosed
	}
	info, err := t.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() >= t.limits.File {
		if err := t.next(); err != nil {
			return err
		}
	}
	n, err := t.file.Write(line) // one write at the end of the file, which another process cannot come between
	if err != nil {
		if n > 0 {
			_, _ = t.file.Write([]byte("\n")) // the error to tell is the other
		}
		return err
	}
	return t.file.Sync()
}

// Close ends the log.
func (t *Trail) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file = nil
	return err
}
