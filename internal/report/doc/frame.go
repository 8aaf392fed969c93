package doc

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"perflab/internal/redact"
)

//go:embed page/search.js
var searchScript string

// Frame is what stands around the page of a document that is one of several. All paths are
// relative to the page.
type Frame struct {
	Name  string // of all of them
	Home  string // the first of them
	Links []Span // to others
	Feed  string // of what is new; "": there is none
	Index string // the script that holds what a search finds, see SearchIndex; "": there is no search
	Root  string // the directory that the paths of that index are relative to, with a slash at its end; "": the page's
}

// Found is what a search can find: a page or a place in one.
type Found struct{ Title, Path, Text string }

// SearchIndex is the script of an index. A page of a file may load a script beside it, and
// nothing else.
func SearchIndex(all []Found) ([]byte, error) {
	rows := make([][3]string, 0, len(all))
	for _, f := range all {
		rows = append(rows, [3]string{redact.Shown(f.Title), f.Path, redact.Shown(strings.Join(strings.Fields(f.Text), " "))})
	}
	b, err := json.Marshal(rows) // with < and > escaped
	if err != nil {
		return nil, fmt.Errorf("encode the index of the search: %w", err)
	}
	return append(append([]byte("window.perflabIndex="), b...), ";\n"...), nil
}

// sources are what the page may load: a file of a disk is its own origin to no browser.
func (f Frame) sources() string {
	if f.Index == "" {
		return ""
	}
	return " 'self' file:"
}

// titled is what the title of the window ends with.
func (f Frame) titled() string {
	if f.Name == "" {
		return ""
	}
	return " - " + htmlEscaper.Replace(f.Name)
}

func (f Frame) feed() string {
	if f.Feed == "" {
		return ""
	}
	return `<link rel="alternate" type="application/atom+xml" title="` + htmlEscaper.Replace(f.Name) + `" href="` + htmlEscaper.Replace(f.Feed) + "\">\n"
}

// bar leads to the other pages. The search is shown by its script.
func (f Frame) bar() string {
	if f.Home == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString(`<header class="bar"><div><a class="home" href="` + htmlEscaper.Replace(f.Home) + `">` + htmlEscaper.Replace(f.Name) + "</a>")
	for _, l := range f.Links {
		b.WriteString(htmlSpans([]Span{l}))
	}
	if f.Index != "" {
		b.WriteString(`<form role="search" hidden><label for="q">Search</label> <input id="q" type="search" autocomplete="off"></form><ul id="hits" aria-live="polite" hidden></ul>`)
	}
	return b.String() + "</div></header>\n"
}

func (f Frame) scripts() string {
	if f.Index == "" {
		return ""
	}
	return `<script src="` + htmlEscaper.Replace(f.Index) + `" data-root="` + htmlEscaper.Replace(f.Root) + "\"></script>\n<script>" + searchScript + "</script>\n"
}
