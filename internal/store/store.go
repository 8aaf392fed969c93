// Package store is the index of what directories hold: runs, series, studies, imports and
// sites, with their facts, figures and marks, to be filtered, sorted, grouped and paged through
// in SQL.
//
//	s, err := store.Open(ctx, store.Options{Roots: []string{"perflab-out"}})
//	changes, err := s.Sync(ctx)                        // follow the directories
//	page, err := s.List(ctx, store.Query{Filter: "engine=vllm p99_ttft_ms<=200", Order: "-output_throughput", Limit: 50})
//	entry, err := s.Get(ctx, page.Entries[0].ID)       // with all figures
//	plots, err := s.Reduction(ctx, entry.ID)
//	err = s.Mark(ctx, "ada", entry.ID, mark.Record{Do: mark.Tag, Value: "keep"})
//
// Invariants: the directories are the truth, and an index that is made anew of them has the same
// rows; what people add is in files beside them (package mark), and no rebuild loses it; a list opens
// no file of a run; a run that lies in two places is one entry; any number of processes may use one index,
// and one that is killed leaves it whole and unlocked; an index that cannot be used is said so, and is
// made anew only where nothing but it is lost.
//
// Absent: pages and text for people, and what a run is worth.
package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"time"

	"perflab/internal/store/mark"
	"perflab/internal/store/scan"
)

// Options say what is indexed, and where the index is.
type Options struct {
	Roots []string // directories that are looked through
	DSN   string   // postgres://...; "": SQLite
	Dir   string   // for the index file; "": .perflab below the first root, else the user's cache
	Host  string   // name of this machine, where an index has the directories of several; "": the system's
}

// Store is an open index.
type Store struct {
	index
	trees []*tree

	syncing sync.Mutex // one Sync at a time, which alone uses the next two
	last    *known     // what the index has; nil: it is read
	marks   marked

	reducing chan struct{} // has room for so many that are made at once: each is a run in memory
	changed  notice
}

// index is the database of a Store.
type index struct {
	opt   Options
	db    *sql.DB // for readers
	write *sql.DB // one connection
	d     dialect
	info  Info
	file  string // of SQLite, once it is being opened
}

// Info says where an index is.
type Info struct {
	Index    string   `json:"index"`              // file, address without password, or "memory"
	Notes    []string `json:"notes,omitempty"`    // what was not as it was wanted, a sentence each
	ReadOnly []string `json:"readonly,omitempty"` // roots in which nothing can be marked or removed
	Shared   bool     `json:"shared,omitempty"`   // a server's, which may have the directories of other machines
}

// Info says where the index is, and what of it is not as it was wanted.
func (s *Store) Info() Info { return s.info }

// Entry is something that directories hold.
type Entry struct {
	scan.Facts

	Parent  string                 `json:"parent,omitempty"` // ID of the study, series or import that it is a part of
	Places  []Place                `json:"places"`           // where it lies, the first being that of the facts
	Marks   mark.Marks             `json:"marks"`
	Figures map[string]scan.Figure `json:"figures,omitempty"` // by metric: those that were asked for
}

// Called is what people call the entry: the name that somebody gave it, else its directory's.
func (e Entry) Called() string {
	if e.Marks.Name != "" {
		return e.Marks.Name
	}
	return e.Name
}

// Figure is a figure of the entry, where it is there.
func (e Entry) Figure(metric string) (scan.Figure, bool) {
	f, ok := e.Figures[metric]
	return f, ok
}

// Place is a directory that an entry lies in.
type Place struct {
	Host string `json:"host,omitempty"` // the machine; "": this one
	Root string `json:"root"`
	Path string `json:"path"` // below the root, with slashes
}

// Dir is the path of the directory; "" on another machine.
func (p Place) Dir() string {
	if p.Host != "" {
		return ""
	}
	return filepath.Join(p.Root, filepath.FromSlash(p.Path))
}

// Dir is where the files of the entry are on this machine; "" where they are on none but others.
func (e Entry) Dir() string {
	for _, p := range e.Places {
		if dir := p.Dir(); dir != "" {
			return dir
		}
	}
	return ""
}

// Query asks for a list.
type Query struct {
	Filter  string    // an expression of package filter; "": everything
	Order   string    // "-started,p99_ttft_ms"; "": pinned ones, then the newest
	Limit   int       // entries of a page; 0: 50
	Offset  int       // that come before it
	Figures []string  // metrics that come with the entries; "*" is all
	Now     time.Time // that ages are counted from; zero: now
}

// Page is a part of a list.
type Page struct {
	Entries []Entry `json:"entries"`
	Total   int     `json:"total"`   // of the whole list
	Version int64   `json:"version"` // of the index: see Wait
}

// Group are the entries of a list that have one value of a fact.
type Group struct {
	Value  string    `json:"value"` // "": they do not have it
	Count  int       `json:"count"`
	Newest time.Time `json:"newest,omitzero"` // when the newest of them began
}

// Changes are what a Sync found.
type Changes struct {
	Places  int      `json:"places"` // that there are
	Added   []string `json:"added,omitempty"`
	Changed []string `json:"changed,omitempty"`
	Removed []string `json:"removed,omitempty"` // IDs
	Faults  int      `json:"faults,omitzero"`   // places that cannot be read
	Version int64    `json:"version"`
}

// Any reports whether anything changed.
func (c Changes) Any() bool { return len(c.Added)+len(c.Changed)+len(c.Removed) > 0 }

// NotFoundError says that there is no such entry.
type NotFoundError struct{ Wanted, Reason string }

func (e *NotFoundError) Error() string { return e.Reason }

// begin starts a transaction of the one writer, who is it until the end: the version is its first
// statement.
func (s *index) begin(ctx context.Context) (*writer, error) {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	w := &writer{tx: tx, d: s.d}
	if err := w.row(ctx, "UPDATE meta SET value=value+1 WHERE name='version' RETURNING value").Scan(&w.version); err != nil {
		_ = tx.Rollback()
		return nil, err
	}
	return w, nil
}
