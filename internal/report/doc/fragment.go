package doc

import (
	"perflab/internal/redact"
	"perflab/internal/report/plot"
)

// Fragment is a document as parts of a larger page, which has the style of Style and the script of
// Script as files: nothing in a fragment needs a content policy that allows what stands in the page.
type Fragment struct {
	Title    string // plain text
	Banner   string // plain text, to be shown above everything else; "": there is none
	Contents string // HTML: list items of links to the sections
	Body     string // HTML: the sections, without the title
}

// Parts gives a document as a fragment.
func Parts(d Document) Fragment {
	f := parts(d)
	for _, s := range []*string{&f.Title, &f.Banner, &f.Contents, &f.Body} {
		*s = redact.Shown(*s)
	}
	return f
}

func parts(d Document) Fragment {
	var h htmlWriter
	h.items(d.Body.Items)
	return Fragment{d.Body.Title, d.Banner, contents(h.entries), h.b.String()}
}

// Style is the style sheet of documents and their plots. It is also what stands between <style> and
// </style> in a page, byte for byte, so that its hash can allow it.
func Style() string { return pageStyle + plot.Style }

// Script is the script of documents, which works at the end of a page or deferred. It is also what
// stands between <script> and </script> in a page without a frame, byte for byte.
func Script() string { return pageScript }

// SearchScript is the script of the search that a page in a frame has, byte for byte as it stands there.
func SearchScript() string { return searchScript }
