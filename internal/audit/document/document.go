// Package document finds what cannot be true in documents that publish results:
// claims, commands, headings, tables, prose and practice are held against the
// blocks of the document itself.
//
//	for _, f := range document.Audit(files, audit.Options{}) {
//		fmt.Println(f.Place, f.Severity, f.Type, f.Text)
//	}
//
// Invariants: a claim is wrong only when no figure of the document that it may
// speak of fits it; a document whose parts could not be read gets the benefit of
// the doubt. Work grows with the document's size and not with its square.
//
// Deliberately absent: figures held against each other and against hardware
// (package audit), and reading of files (package interop).
package document

import (
	"slices"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// placed is a place of a file, with the section of the nearest thing there.
func placed(f *interop.File, line int, section []string) interop.Place {
	return interop.Place{File: f.Name, Line: line, Section: section}
}

// lookback bounds how many earlier steps one step is compared with.
const lookback = 64

// Audit audits files, each alone and then beside each other. Findings come by
// file and line.
func Audit(files []interop.File, o audit.Options) []audit.Finding {
	var out []audit.Finding
	for i := range files {
		f := &files[i]
		out = append(out, audit.Runs(f, o)...)
		if f.Doc != nil {
			out = append(out, audit.Gather(ofDocument(f, o))...)
		}
	}
	out = append(out, audit.Across(files)...)
	audit.Sort(out, files)
	return out
}

// check is a type of finding of this package.
type check audit.Check

// Checks lists every type of finding, also those of figures.
func Checks() []audit.Check {
	all := audit.RunChecks()
	for _, c := range slices.Concat(claimChecks(), commandChecks(), practiceChecks()) {
		all = append(all, audit.Check(c))
	}
	return append(all, audit.AcrossChecks()...)
}

// ofDocument audits what a document says of its runs.
func ofDocument(f *interop.File, o audit.Options) []audit.Finding {
	var out []audit.Finding
	for _, check := range []func(*interop.File, audit.Options) []audit.Finding{claims, commands, practice} {
		out = append(out, check(f, o)...)
	}
	return out
}
