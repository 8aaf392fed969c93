// Package mark keeps what people say of entries beside the directories that they are of: tags,
// notes, names, pins, known issues, and who moved what away. The file is only ever added to, so that an
// index that is made anew has lost none, and who said what, and when, can be read in it.
//
//	err := mark.Append(path, mark.Record{At: now, Who: "ada", Entry: id, Do: mark.Tag, Value: "keep"})
//	log, err := mark.Read(path)
//	marks := mark.Of(log.Records) // of those of one entry
//
// Invariants: a record is on the disk when Append returns, and two processes at once lose none; a
// line that a kill cut off is left out, and the one after it is not; lines of a newer version that this
// one does not know are left as they are.
//
// Absent: the index (package store), and what an entry is.
package mark

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"perflab/internal/durable"
	"perflab/internal/field"
)

// Act is what a record does.
type Act string

// Acts of records.
const (
	Tag     Act = "tag"     // Value is the tag
	Untag   Act = "untag"   // Value is the tag
	Note    Act = "note"    // Text is the note, and takes the place of an earlier one; "" takes it away
	Name    Act = "name"    // Value is the name; "" takes it away
	Pin     Act = "pin"     // it stands at the top of lists
	Unpin   Act = "unpin"   //
	Issue   Act = "issue"   // Value is the ID of a known issue, Text what it is, Link where it is
	Resolve Act = "resolve" // Value is the ID of an issue that it has no more
	Remove  Act = "remove"  // Value is the place, Text its name in the trash
	Restore Act = "restore" // Value is the place
)

// Record is one line of the file.
type Record struct {
	At    time.Time `json:"at"`
	Who   string    `json:"who,omitempty"`
	Entry string    `json:"entry"` // its ID
	Do    Act       `json:"do"`
	Value string    `json:"value,omitempty"`
	Text  string    `json:"text,omitempty"`
	Link  string    `json:"link,omitempty"`
}

// Marks are what holds of an entry now.
type Marks struct {
	Name   string       `json:"name,omitempty"`
	Tags   []string     `json:"tags,omitempty"` // in the order of the alphabet
	Note   string       `json:"note,omitempty"`
	By     string       `json:"note_by,omitempty"`
	At     time.Time    `json:"note_at,omitzero"`
	Pinned bool         `json:"pinned,omitempty"`
	Issues []KnownIssue `json:"issues,omitempty"`
}

// KnownIssue is something that is known to be wrong with what an entry measured.
type KnownIssue struct {
	ID   string    `json:"id"`
	Text string    `json:"text,omitempty"`
	Link string    `json:"link,omitempty"`
	By   string    `json:"by,omitempty"`
	At   time.Time `json:"at"`
}

// Lengths of what people write.
const (
	mostTag  = 64
	mostName = 200
	mostNote = 8000
	mostLine = 64 << 10
)

// Validate says what is wrong with a record; the paths are those of its fields.
func (r Record) Validate() error {
	if r.Entry == "" {
		return field.Errorf("entry", "is missing: the ID of what is marked")
	}
	switch r.Do {
	case Tag, Untag:
		return checkTag(r.Value)
	case Issue, Resolve:
		if err := checkLine("value", r.Value, mostTag, "the ID of the issue"); err != nil {
			return err
		}
		if r.Link != "" && !strings.HasPrefix(r.Link, "https://") && !strings.HasPrefix(r.Link, "http://") {
			return field.Errorf("link", "%q is no link: it begins with https:// or http://", r.Link)
		}
		return checkText(r.Text)
	case Name:
		if r.Value == "" {
			return nil
		}
		return checkLine("value", r.Value, mostName, "the name")
	case Note:
		return checkText(r.Text)
	case Pin, Unpin, Remove, Restore:
		return nil
	}
	return field.Errorf("do", "%q is nothing that can be done: use tag, untag, note, name, pin, unpin, issue or resolve", r.Do)
}

func checkTag(tag string) error {
	if err := checkLine("value", tag, mostTag, "the tag"); err != nil {
		return err
	}
	if strings.ContainsFunc(tag, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune(`,|"'=<>!~`, c) }) {
		return field.Errorf("value", `%q is no tag: one word without spaces and , | " ' = < > ! ~, which filters use`, tag)
	}
	return nil
}

func checkLine(path, s string, most int, what string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return field.Errorf(path, "is missing: %s", what)
	case utf8.RuneCountInString(s) > most:
		return field.Errorf(path, "is longer than %d characters", most)
	case !utf8.ValidString(s), strings.ContainsFunc(s, unicode.IsControl):
		return field.Errorf(path, "has characters that cannot be shown")
	}
	return nil
}

func checkText(s string) error {
	switch {
	case utf8.RuneCountInString(s) > mostNote:
		return field.Errorf("text", "is longer than %d characters", mostNote)
	case !utf8.ValidString(s), strings.Contains(s, "\x00"):
		return field.Errorf("text", "is no text")
	}
	return nil
}

// Append adds records to a file, which it makes where there is none, and syncs it.
func Append(path string, records ...Record) (err error) {
	var lines bytes.Buffer
	for _, r := range records {
		if err := r.Validate(); err != nil {
			return err
		}
		b, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode a mark: %w", err)
		}
		lines.Write(append(b, '\n'))
	}
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return fmt.Errorf("keep the marks: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("keep the marks: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }() // which lets go of it
	if held, err := hold(file); err != nil || !held {
		return fmt.Errorf("keep the marks in %s: %w", path, cmpErr(err, errBusy))
	}
	torn, err := isTorn(file)
	if err != nil {
		return fmt.Errorf("keep the marks: %w", err)
	}
	b := lines.Bytes()
	if torn {
		b = append([]byte("\n"), b...)
	}
	if _, err := file.Write(b); err != nil {
		return fmt.Errorf("keep the marks: %w", err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("keep the marks: %w", err)
	}
	return (durable.Disk{}).SyncDir(filepath.Dir(path))
}

var errBusy = errors.New("another process holds the file: try again")

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// holdTries is how often a file is asked for that another process appends to, which takes as long
// as a disk's sync.
const holdTries = 100

func hold(file *os.File) (held bool, err error) {
	for range holdTries {
		if held, err = durable.Hold(file); held || err != nil {
			return held, err
		}
	}
	return false, nil
}

// isTorn reports whether a kill cut the last line off.
func isTorn(file *os.File) (bool, error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	last := make([]byte, 1)
	_, err = file.ReadAt(last, info.Size()-1)
	return last[0] != '\n', err
}

// Log is what a file has.
type Log struct {
	Records []Record
	Skipped int // lines that are no record, or one of a newer version
}

// Read reads a file; one that does not exist is empty.
func Read(path string) (Log, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Log{}, nil
	}
	if err != nil {
		return Log{}, fmt.Errorf("read the marks: %w", err)
	}
	defer file.Close()
	log, err := Parse(file)
	if err != nil {
		return log, fmt.Errorf("read the marks in %s: %w", path, err)
	}
	return log, nil
}

// Parse reads the lines of a file.
func Parse(r io.Reader) (log Log, err error) {
	lines := bufio.NewReaderSize(r, mostLine)
	for {
		line, err := lines.ReadSlice('\n')
		for long := err; errors.Is(long, bufio.ErrBufferFull); { // no record is that long
			line = []byte("{")
			_, long = lines.ReadSlice('\n')
			err = long
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var one Record
			if json.Unmarshal(line, &one) != nil || one.Validate() != nil {
				log.Skipped++
			} else {
				log.Records = append(log.Records, one)
			}
		}
		if errors.Is(err, io.EOF) {
			return log, nil
		}
		if err != nil {
			return log, err
		}
	}
}

// Of gives what holds of an entry after its records, in the order in which they were made.
func Of(records []Record) (m Marks) {
	for _, r := range slices.SortedStableFunc(slices.Values(records), func(a, b Record) int { return a.At.Compare(b.At) }) {
		m.apply(r)
	}
	return m
}

func (m *Marks) apply(r Record) {
	issue := func(k KnownIssue) bool { return k.ID == r.Value }
	switch r.Do {
	case Tag:
		if at, there := slices.BinarySearch(m.Tags, r.Value); !there {
			m.Tags = slices.Insert(slices.Clone(m.Tags), at, r.Value)
		}
	case Untag:
		m.Tags = slices.DeleteFunc(slices.Clone(m.Tags), func(t string) bool { return t == r.Value })
	case Note:
		m.Note, m.By, m.At = r.Text, r.Who, r.At
		if r.Text == "" {
			m.By, m.At = "", time.Time{}
		}
	case Name:
		m.Name = r.Value
	case Pin, Unpin:
		m.Pinned = r.Do == Pin
	case Issue, Resolve:
		m.Issues = slices.DeleteFunc(slices.Clone(m.Issues), issue)
		if r.Do == Issue {
			m.Issues = append(m.Issues, KnownIssue{ID: r.Value, Text: r.Text, Link: r.Link, By: r.Who, At: r.At})
		}
	}
}

// Empty reports whether nothing is said.
func (m Marks) Empty() bool {
	return m.Name == "" && len(m.Tags) == 0 && m.Note == "" && !m.Pinned && len(m.Issues) == 0
}
