// Package manifest is what a client and a laboratory's server say to each other of a directory that is
// pushed or pulled: which files it has, how long they are, and their digests.
//
//	m, err := manifest.Parse(body)
//	id := m.ID() // the same for everybody who pushes the same files
//
// Invariants: a manifest that was parsed names no file outside of its directory, none twice, and none
// that is a directory of another; its names mean the same on every system that perflab runs on.
//
// Deliberately absent: files, and what a directory holds.
package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"perflab/internal/field"
	"perflab/internal/web/guard/place"
)

// Schema names the format.
const Schema = "perflab.push/1"

// Headers of pieces. OffsetHeader says where a piece of a file begins, and in answers how much of it is
// there, as the draft of the IETF for resumable uploads has it; AgainHeader, in a refusal, that there are
// files to be sent again.
const (
	OffsetHeader = "Upload-Offset"
	AgainHeader  = "Upload-Again"
)

// Bounds of a manifest. A study of a thousand launches has some ten thousand files.
const (
	MostFiles  = 100_000
	MostBytes  = 1 << 40  // of all files
	MostLength = 32 << 20 // of the manifest itself
	longest    = 1024     // bytes of a path: what stands before it needs some too
)

// File is a file of a directory.
type File struct {
	Path   string `json:"path"` // below the directory, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hexadecimal digits
}

// Manifest is a directory that a client wants to push.
type Manifest struct {
	Schema string `json:"schema"`          // "perflab.push/1"
	Name   string `json:"name"`            // of the directory; the server adds a number where it is taken
	Entry  string `json:"entry,omitempty"` // the ID that the client has of it, by which a copy is found
	Files  []File `json:"files"`
}

// Part is how much of a file has come.
type Part struct {
	File   int   `json:"file"`   // its place in the manifest, from 0
	Offset int64 `json:"offset"` // bytes that are there
}

// Upload is how far a push has come.
type Upload struct {
	ID      string    `json:"id"`
	Entry   string    `json:"entry,omitempty"` // the ID of what is in the laboratory: nothing is to be sent
	Place   string    `json:"place,omitempty"` // its directory below the root
	Missing []Part    `json:"missing"`         // files that are not whole
	Chunk   int64     `json:"chunk_bytes"`     // the most that one request may bring
	Expires time.Time `json:"expires,omitzero"`
}

// Files is what an entry has to pull.
type Files struct {
	Entry string `json:"entry"`
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"` // of all files
	Files []File `json:"files"` // a digest is "" where none was asked for
}

// Parse reads a manifest, and says what is wrong with it. A key that is not known is an error.
func Parse(b []byte) (Manifest, error) {
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("the manifest is not the JSON that it should be: %w", err)
	}
	if d.More() {
		return m, fmt.Errorf("the manifest is followed by something else")
	}
	return m, m.Validate()
}

// Validate says what is wrong with a manifest.
func (m Manifest) Validate() error {
	if m.Schema != Schema {
		return field.Errorf("schema", "is %q and not %q: this server is of another version", m.Schema, Schema)
	}
	if err := CheckName(m.Name); err != nil {
		return field.Errorf("name", "%v", err)
	}
	switch n := len(m.Files); {
	case n == 0:
		return field.Errorf("files", "is empty")
	case n > MostFiles:
		return field.Errorf("files", "has %d files, and at most %d are taken", n, MostFiles)
	}
	return m.validateFiles()
}

func (m Manifest) validateFiles() error {
	seen, dirs, total := map[string]bool{}, map[string]bool{}, int64(0)
	for i, f := range m.Files {
		at := fmt.Sprintf("files[%d]", i)
		if err := f.validate(at); err != nil {
			return err
		}
		if total += f.Size; total > MostBytes {
			return field.Errorf(at+".size", "makes more than %d bytes of all", int64(MostBytes))
		}
		name := folded(f.Path)
		if seen[name] {
			return field.Errorf(at+".path", "%q is there twice, or differs from another in capital letters alone", f.Path)
		}
		seen[name] = true
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for i, f := range m.Files {
		if dirs[folded(f.Path)] {
			return field.Errorf(fmt.Sprintf("files[%d].path", i), "%q is a file and a directory", f.Path)
		}
	}
	return nil
}

// folded is a name as file systems see it that do not tell capital letters from others.
func folded(name string) string { return strings.ToLower(name) }

func (f File) validate(at string) error {
	if err := CheckPath(f.Path); err != nil {
		return field.Errorf(at+".path", "%q: %v", f.Path, err)
	}
	if f.Size < 0 {
		return field.Errorf(at+".size", "is below 0")
	}
	if b, err := hex.DecodeString(f.SHA256); err != nil || len(b) != sha256.Size || strings.ToLower(f.SHA256) != f.SHA256 {
		return field.Errorf(at+".sha256", "is not 64 small hexadecimal digits")
	}
	return nil
}

// CheckPath reports what is wrong with the path of a file: it must lead to the same file below its
// directory on every system.
func CheckPath(name string) error {
	if len(name) > longest {
		return fmt.Errorf("the name of a file is longer than %d bytes", longest)
	}
	return place.CheckPortable(name)
}

// CheckName reports what is wrong with the name of a directory. One that ends as that of a run under way
// does would hide what is in it.
func CheckName(name string) error {
	if strings.Contains(name, "/") {
		return fmt.Errorf("the name of a directory has a slash")
	}
	for _, suffix := range []string{".tmp", ".importing", ".pulling"} {
		if strings.HasSuffix(strings.ToLower(name), suffix) {
			return fmt.Errorf("the name ends in %s, as that of a directory under way does", suffix)
		}
	}
	if len(name) > 200 {
		return fmt.Errorf("the name is longer than 200 bytes")
	}
	return place.CheckPortable(name)
}

// ID names what a manifest is of: a digest of its files with their contents. The name of the directory is
// not in it, so that two who push the same under two names share one upload.
func (m Manifest) ID() string {
	sum := sha256.New()
	for _, f := range m.Files {
		fmt.Fprintf(sum, "%d:%s %d %s\n", len(f.Path), f.Path, f.Size, f.SHA256)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Bytes is the size of all files.
func (m Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}
