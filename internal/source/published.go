package source

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/audit/document"
	"perflab/internal/rundir"
)

// Published is what an audit says of a directory that is published: of an import that of the
// document it was made of, where that is still there, and else of all that lies below it. No
// name in it has the path that leads to the directory or the document.
type Published struct {
	Title    string // of the document; "": there is none
	Files    []string
	Findings []audit.Finding
}

// Audit audits a directory that is published.
func Audit(dir string) Published {
	path := dir
	if file, ok := rundir.ImportedFile(dir); ok {
		if _, err := os.Stat(file); err == nil {
			path = file
		}
	}
	files := Files([]string{path}, nil, true)
	p := Published{Findings: document.Audit(files, audit.Options{})}
	short := shortener(path)
	for _, f := range files {
		p.Files = append(p.Files, short(f.Name))
		if f.Doc != nil {
			p.Title = cmp.Or(p.Title, f.Doc.Title)
		}
	}
	for i := range p.Findings {
		f := &p.Findings[i]
		f.Place.File, f.Text, f.Expected = short(f.Place.File), short(f.Text), short(f.Expected)
		for k := range f.Also {
			f.Also[k].Place.File = short(f.Also[k].Place.File)
		}
	}
	return p
}

// shortener takes the path to a file or directory out of texts, all but its last element.
func shortener(path string) func(string) string {
	parent := filepath.Dir(filepath.Clean(path))
	if parent == "." {
		return func(s string) string { return s }
	}
	return strings.NewReplacer(strings.TrimSuffix(parent, "/")+"/", "").Replace
}
