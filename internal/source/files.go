// Package source opens what a user names: run directories and those that hold
// runs, other clients' result files, documents that print them, standard input.
//
//	files := source.Files(paths, os.Stdin, true)                // for an audit
//	sides, damage, err := source.Sides(args, nil)               // for a comparison
//	source.Observe(&observer, paths, os.Stdin)                  // for a calibration
//
// Invariants: what cannot be read is a fault with its place, and the rest is
// read nevertheless. Secrets in texts and commands are replaced before anything
// else sees them.
//
// The package is apart because interop is pure and goes by what is in a file,
// and rundir knows perflab's own directories alone.
package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/input"
	"perflab/internal/interop"
	"perflab/internal/redact"
	"perflab/internal/rundir"
)

// Files reads what paths name, - being standard input: files of results, directories
// of such files, and where deep says so what is below them, run directories and
// those that hold runs. What cannot be read is a fault of its file. Secrets in texts and
// commands are replaced before anything else sees them.
func Files(paths []string, stdin io.Reader, deep bool) []interop.File {
	var files []interop.File
	for _, path := range paths {
		if path == "-" {
			files = append(files, readInput(stdin))
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			files = append(files, Faulty(path, Reason(err)))
		case !info.IsDir():
			files = append(files, readFile(path))
		default:
			files = append(files, readDir(path, deep)...)
		}
	}
	return interop.Merge(files)
}

// Faulty is a file of which nothing could be read.
func Faulty(path, why string) interop.File {
	return interop.File{Name: path, Faults: []interop.Fault{{Place: interop.Place{File: path}, Text: why}}}
}

// Reason is the reason of an error on a file, without the file's name.
func Reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*input.SizeError](err); ok {
		return "it " + e.Reason()
	}
	return err.Error()
}

// readDir reads the runs that a directory holds, else its files, and where deep
// says so those below it.
func readDir(dir string, deep bool) []interop.File {
	if dirs, ok, err := rundir.Runs(dir); ok && !deep {
		return []interop.File{Faulty(dir, "this is a directory of perflab's own runs, which need no import: give it to report, export or audit")}
	} else if err != nil {
		return []interop.File{Faulty(dir, err.Error())}
	} else if ok {
		var files []interop.File
		for _, d := range dirs {
			files = append(files, readRun(d))
		}
		return files
	}
	var files []interop.File
	paths, err := list(dir, deep, func(place, why string) { files = append(files, Faulty(place, why)) })
	if err != nil {
		return []interop.File{Faulty(dir, Reason(err))}
	}
	var others []string
	for _, path := range paths {
		if holdsRuns(path) {
			files = append(files, readDir(path, deep)...)
			continue
		}
		if f := readFile(path); deep && ofSomethingElse(f) {
			others = append(others, strings.TrimPrefix(path, dir+string(filepath.Separator)))
		} else {
			files = append(files, f)
		}
	}
	if len(others) > 0 {
		files = append(files, passedOver(dir, others))
	}
	return files
}

// ofSomethingElse reports whether nothing of a file is a result.
func ofSomethingElse(f interop.File) bool {
	return len(f.Runs) == 0 && f.Doc == nil && len(f.Faults) > 0 &&
		!slices.ContainsFunc(f.Faults, func(x interop.Fault) bool { return x.Kind != interop.NoResult })
}

// passedOver tells of the files of a directory that hold no result.
func passedOver(dir string, names []string) interop.File {
	const mostNamed = 5
	text := fmt.Sprintf("%d files hold no result and are passed over: %s", len(names), strings.Join(names[:min(len(names), mostNamed)], ", "))
	if len(names) == 1 {
		text = names[0] + " holds no result and is passed over"
	}
	if len(names) > mostNamed {
		text += ", ..."
	}
	return interop.File{Name: dir, Faults: []interop.Fault{{Place: interop.Place{File: dir}, Kind: interop.PassedOver, Text: text}}}
}

// mostPaths bounds the files of a tree: who means a disk does not mean results.
const mostPaths = 10_000

// list gives what is read of a directory: its files, the directories in it that
// hold runs, and where deep says so what is below the others. What else there
// is, omit is told.
func list(dir string, deep bool, omit func(place, why string)) (paths []string, err error) {
	omitted := 0
	tell := func(place, why string) {
		omitted++
		omit(place, why)
	}
	if err := collect(dir, deep, &paths, tell); err != nil {
		return nil, err
	}
	if len(paths) > mostPaths {
		paths = paths[:mostPaths]
		tell(dir, fmt.Sprintf("the directory has more than %d files, and the rest is not read: name the directories that hold results", mostPaths))
	}
	if len(paths) == 0 && omitted == 0 {
		omit(dir, "the directory has no file")
	}
	return paths, nil
}

// collect adds what is read of a directory. Hidden files are left out, and where
// it goes deep also files that hold no result by their name; links to
// directories may lead back and are not followed.
func collect(dir string, deep bool, paths *[]string, omit func(place, why string)) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case len(*paths) > mostPaths:
			return nil
		case strings.HasPrefix(e.Name(), ".") || deep && isAsset(e.Name()):
		case !e.IsDir() && !(deep && isDir(path)) || holdsRuns(path):
			*paths = append(*paths, path)
		case deep && e.IsDir():
			if err := collect(path, deep, paths, omit); err != nil {
				omit(path, Reason(err))
			}
		case deep:
			omit(path, "a link to a directory is not followed: name the directory")
		default:
			omit(path, "a directory in a directory is not read: name it too")
		}
	}
	return nil
}

// isDir reports whether a path leads to a directory, also by a link.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// assets are the endings of files that stand beside documents and hold no
// result: pictures, fonts and what makes a page of them.
var assets = []string{".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".pdf", ".mp4", ".css", ".js", ".woff", ".woff2", ".ttf"}

// isAsset reports whether a file is no result by its name.
func isAsset(name string) bool {
	return slices.Contains(assets, strings.ToLower(filepath.Ext(name)))
}

// holdsRuns reports whether a directory is one of perflab's.
func holdsRuns(dir string) bool {
	_, ok, err := rundir.Runs(dir)
	return ok || err != nil
}

// readRun reads a run directory as a file of one run.
func readRun(dir string) interop.File {
	r, err := rundir.OpenRun(dir)
	if err != nil {
		return Faulty(dir, err.Error())
	}
	s, err := r.Resummarise()
	if err != nil {
		return Faulty(dir, err.Error())
	}
	place := interop.Place{File: dir}
	f := interop.File{Name: dir, Runs: []interop.Run{interop.Stored(place, r.Header, s, r.Whole())}}
	if r.Damage != "" {
		f.Faults = append(f.Faults, interop.Fault{Place: place, Text: r.Damage})
	}
	return f
}

// inputName is what standard input is called.
const inputName = "stdin"

// readInput reads what is piped in or pasted.
func readInput(in io.Reader) interop.File {
	if in == nil {
		return Faulty(inputName, "there is no standard input")
	}
	data, err := input.All(in, inputName, input.Stream)
	if err != nil {
		return Faulty(inputName, Reason(err))
	}
	return readData(inputName, data)
}

// mostFile is the size of a file that is read: results of a million requests
// with their texts are smaller.
const mostFile = 4 << 30

// readFile reads one file.
func readFile(path string) interop.File {
	data, err := input.File(path, mostFile)
	if err != nil {
		return Faulty(path, Reason(err))
	}
	return readData(path, data)
}

// Upload is a file that somebody sent: where it lies, and what they call it.
type Upload struct{ Path, Name string }

// Uploads reads files that were sent, as Files reads those that are named: each by its own name.
func Uploads(all []Upload) []interop.File {
	var files []interop.File
	for _, u := range all {
		data, err := input.File(u.Path, mostFile)
		if err != nil {
			files = append(files, Faulty(u.Name, Reason(err)))
			continue
		}
		files = append(files, readData(u.Name, data))
	}
	return interop.Merge(files)
}

// packed are how compressed files begin, and what unpacks them.
var packed = []struct{ magic, name, unpack string }{
	{"\x1f\x8b", "gzip", "gunzip"}, {"PK\x03\x04", "zip", "unzip"}, {"\x28\xb5\x2f\xfd", "zstd", "unzstd"}, {"\xfd7zXZ\x00", "xz", "unxz"}, {"BZh", "bzip2", "bunzip2"},
}

// readData reads a file by what is in it.
func readData(path string, data []byte) interop.File {
	if f, ok := readParquet(path, data); ok {
		return f
	}
	for _, p := range packed {
		if bytes.HasPrefix(data, []byte(p.magic)) {
			return Faulty(path, fmt.Sprintf("this is compressed (%s): unpack it first, as with %s", p.name, p.unpack))
		}
	}
	data = interop.Decode(data)
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return Faulty(path, "the file is empty")
	case bytes.IndexByte(data, 0) >= 0:
		return Faulty(path, "this is neither text (UTF-8, or UTF-16 with its mark) nor JSON, and no binary format that is known here")
	}
	f := interop.Read(path, redactDocument(data))
	for i := range f.Runs {
		redactRun(&f.Runs[i])
	}
	for i := range f.Faults {
		f.Faults[i].Text = redact.Text(f.Faults[i].Text)
	}
	return f
}

// redactDocument replaces the secrets of a text. JSON is left as it is, since
// its prompts and answers are data: what is taken from it is redacted after.
func redactDocument(data []byte) []byte {
	if head := strings.TrimSpace(string(data[:min(len(data), 64)])); strings.HasPrefix(head, "{") || strings.HasPrefix(head, "[") {
		return data
	}
	return []byte(redact.Text(string(data)))
}

// redactRun replaces the secrets in what a run says of itself.
func redactRun(r *interop.Run) {
	h := &r.Header
	for _, s := range []*string{&h.Model, &h.Backend, &h.Workload, &h.Command, &h.Tokenizer} {
		*s = redact.Text(*s)
	}
	for i := range r.Calls {
		r.Calls[i].Model, r.Calls[i].Error = redact.Text(r.Calls[i].Model), redact.Text(r.Calls[i].Error)
	}
	r.Header.Targets = slices.Clone(r.Header.Targets)
	for i, t := range r.Header.Targets {
		r.Header.Targets[i] = redact.Text(t)
	}
	if r.Header.Imported == nil {
		return
	}
	h.Imported.Version = redact.Text(h.Imported.Version)
	for i, s := range h.Imported.Section {
		h.Imported.Section[i] = redact.Text(s)
	}
	for k, v := range h.Imported.Labels {
		h.Imported.Labels[k] = redact.Field(k, v)
	}
	for i := range r.Other {
		r.Other[i].Text = redact.Field(r.Other[i].Label, r.Other[i].Text)
	}
}

// AnyRead reports whether a run or a document was read.
func AnyRead(files []interop.File) bool {
	return slices.ContainsFunc(files, func(f interop.File) bool {
		return len(f.Runs) > 0 || f.Doc != nil && len(f.Doc.Lines) > 0
	})
}
