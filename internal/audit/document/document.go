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
	"iter"
	"slices"
	"sort"
	"strconv"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/result"
)

// document is a document with its runs and what it says of them.
type document struct {
	file           *interop.File
	options        audit.Options
	runs           []*citedRun
	steps          []step // the runs, each with what was served for it
	configurations []configuration
	statements     []statement   // tables first, then prose, in order
	rows           []comparedRow // what tables compare
	optionRows     []optionRow   // of tables that give gains alone
	rankings       []ranking
}

// scripts are the commands of some kinds, in order.
func (d *document) scripts(kinds ...string) iter.Seq[*interop.Script] {
	return func(yield func(*interop.Script) bool) {
		for i := range d.file.Doc.Scripts {
			if s := &d.file.Doc.Scripts[i]; slices.Contains(kinds, s.Kind) && !yield(s) {
				return
			}
		}
	}
}

// at is a line of the document in a section.
func (d *document) at(line int, section []string) interop.Place {
	return interop.Place{File: d.file.Name, Line: line, Section: section}
}

// place is a line of the document in the section it stands in.
func (d *document) place(line int) interop.Place {
	all := d.file.Doc.Sections // by line
	n := sort.Search(len(all), func(i int) bool { return all[i].Line > line })
	if n == 0 {
		return d.at(line, nil)
	}
	return d.at(line, all[n-1].Path)
}

// match finds the runs that have the figure, and under which metric. A block
// that is a copy of another counts as well.
func (d *document) match(t *citation) {
	for _, name := range t.named.metrics() {
		for _, r := range d.runs {
			if f, ok := r.figures[name]; ok && t.fits(f) {
				t.runs, t.metric = append(t.runs, r), name
			}
		}
		if len(t.runs) > 0 {
			return
		}
	}
}

// knows reports whether any run has the metric.
func (d *document) knows(m namedMetric) bool {
	return slices.ContainsFunc(d.runs, func(r *citedRun) bool {
		return slices.ContainsFunc(m.metrics(), func(n string) bool { _, ok := r.figures[n]; return ok })
	})
}

// What speaks for a run, in points: a figure of it counts for more than all
// words of a label, and a word for more than all headings.
const (
	figurePoints  = 1000
	wordPoints    = 10
	headingPoints = 1
)

// runOf picks the run that has all these figures, or the first of them; among
// several the one whose headings share most words with the label, and then one
// under the headings of the line.
func (d *document) runOf(label string, line int, terms []citation) *citedRun {
	if len(terms) == 0 {
		return nil
	}
	words, section := wordsOf(label), d.place(line).Section
	var best *citedRun
	score := -1
	for _, r := range d.runs {
		n := 0
		for _, t := range terms {
			if slices.Contains(t.runs, r) {
				n += figurePoints
			}
		}
		if n == 0 || !slices.Contains(terms[0].runs, r) {
			continue
		}
		for _, w := range words {
			if r.words[w.text] {
				n += wordPoints
			}
		}
		for i, h := range section {
			if i < len(r.run.Place.Section) && r.run.Place.Section[i] == h {
				n += headingPoints
			}
		}
		if n > score {
			best, score = r, n
		}
	}
	return best
}

// unread reports whether a part of the document could not be read, which may
// hold what is missed elsewhere.
func (d *document) unread() bool {
	return slices.ContainsFunc(d.file.Faults, func(f interop.Fault) bool { return f.Kind == interop.Unread })
}

// gpus is the number of GPUs that the document has, 0 where it does not say.
func (d *document) gpus() int {
	if d.options.GPUs > 0 {
		return d.options.GPUs
	}
	most := 0
	for _, r := range d.runs {
		if n, err := strconv.Atoi(r.run.Header.Label(result.LabelGPUs)); err == nil {
			most = max(most, n)
		}
	}
	return most
}
