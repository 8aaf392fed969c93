package trail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Page is a part of the log, the newest event first.
type Page struct {
	Events  []Event `json:"events"`
	Next    string  `json:"next,omitempty"`    // the cursor of the page of what is older; "": there is none
	Damaged int     `json:"damaged,omitempty"` // lines that were passed and are no events
}

// MostEvents is how many events a page has at most.
const MostEvents = 1000

// mostRead is how many bytes are read for one page, so that a search for what is rare ends. Such a
// page may have no events and still a next one.
const mostRead = 32 << 20

// Page gives up to n events that match, newest first, from a cursor of an earlier page on; a cursor
// "" begins with the newest. A match of nil takes all.
func (t *Trail) Page(cursor string, n int, match func(Event) bool) (Page, error) {
	from, before, err := parseCursor(cursor)
	if err != nil {
		return Page{}, err
	}
	names, err := t.names()
	if err != nil {
		return Page{}, fmt.Errorf("read the audit log: %w", err)
	}
	slices.Reverse(names)
	c := collector{most: min(max(n, 1), MostEvents), match: match, left: mostRead}
	for _, name := range names {
		end := int64(-1) // of the file
		switch {
		case from == "" || name < from:
		case name == from:
			end = before
		default:
			continue
		}
		err := c.file(t.dir, name, end)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed since by another process
			return Page{}, fmt.Errorf("read the audit log: %w", err)
		}
		if c.page.Next != "" {
			break
		}
	}
	return c.page, nil
}

// parseCursor takes a cursor apart: a file's name and the bytes of it that are older than the page before.
func parseCursor(s string) (name string, before int64, err error) {
	if s == "" {
		return "", 0, nil
	}
	name, at, _ := strings.Cut(s, ":")
	before, err = strconv.ParseInt(at, 10, 64)
	if err != nil || before < 0 || !isName(name) {
		return "", 0, fmt.Errorf("%q is no place in the audit log: take it from the page before", s)
	}
	return name, before, nil
}

// collector fills a page.
type collector struct {
	page  Page
	most  int
	match func(Event) bool
	left  int64 // bytes that may be read
}

// file takes the lines of a file that end at or before a place, the last first. Where the page is
// full it sets the cursor, which is the start of the last line taken.
func (c *collector) file(dir, name string, end int64) error {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if end < 0 || end > info.Size() {
		end = info.Size()
	}
	return backwards(f, end, func(line []byte, at int64) bool {
		c.line(line)
		c.left -= int64(len(line)) + 1
		if len(c.page.Events) < c.most && c.left > 0 {
			return true
		}
		c.page.Next = name + ":" + strconv.FormatInt(at, 10)
		return false
	})
}

func (c *collector) line(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	var e Event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		c.page.Damaged++
		return
	}
	if c.match == nil || c.match(e) {
		c.page.Events = append(c.page.Events, e)
	}
}

// chunk is how much is read at once.
const chunk = 64 << 10

// longestLine bounds a line: a longer one was not written by Add, and ends the reading of its file.
const longestLine = 1 << 20

// backwards gives the lines before a place, the last first, each with where it starts, until take
// returns false.
func backwards(r io.ReaderAt, end int64, take func(line []byte, at int64) bool) error {
	var held []byte // what was read and belongs to lines not yet given; it starts at pos
	for pos := end; pos > 0 || len(held) > 0; {
		if i := bytes.LastIndexByte(bytes.TrimSuffix(held, []byte("\n")), '\n'); i >= 0 || pos == 0 {
			line := bytes.TrimSuffix(held[i+1:], []byte("\n"))
			if !take(line, pos+int64(i)+1) {
				return nil
			}
			held = held[:i+1]
			continue
		}
		if len(held) > longestLine {
			return fmt.Errorf("it has a line of more than %d bytes", longestLine)
		}
		n := min(pos, chunk)
		b := make([]byte, n, n+int64(len(held)))
		if _, err := r.ReadAt(b, pos-n); err != nil {
			return err
		}
		held, pos = append(b, held...), pos-n
	}
	return nil
}
