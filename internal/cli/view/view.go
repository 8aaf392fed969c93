// Package view makes of what commands show a value with its forms: text, Markdown, a page and,
// where there are calls, rows. The command that measures and the one that reads again later show
// the same by it.
package view

import (
	"io"

	"perflab/internal/dirdoc"
	"perflab/internal/report/doc"
	"perflab/internal/report/parquet"
)

// Forms are how a thing can be shown. Parquet is nil where there is no single run.
type Forms struct {
	Page                          func() doc.Document // that HTML writes
	Text, Markdown, HTML, Parquet func(io.Writer) error
	Damage                        string // what could not be read, one sentence
}

// Of is a document in its forms.
func Of(d doc.Document) Forms {
	return Forms{
		Page:     func() doc.Document { return d },
		Text:     func(w io.Writer) error { return doc.Text(w, d) },
		Markdown: func(w io.Writer) error { return doc.Markdown(w, d) },
		HTML:     func(w io.Writer) error { return doc.HTML(w, d) },
	}
}

// OfDirectory is what a directory has to say in its forms.
func OfDirectory(d dirdoc.Document) Forms {
	v := Of(d.Document)
	v.Page = d.Page
	v.HTML = func(w io.Writer) error { return doc.HTML(w, d.Page()) }
	v.Damage = d.Damage
	if d.Run != nil {
		v.Parquet = func(w io.Writer) error { return parquet.Write(w, d.Run.Header, d.Run.All()) }
	}
	return v
}
