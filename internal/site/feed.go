package site

import (
	"cmp"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
)

// The elements of an Atom feed (RFC 4287).
type (
	atomFeed struct {
		XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
		ID      string      `xml:"id"`
		Title   string      `xml:"title"`
		Updated string      `xml:"updated"`
		Links   []atomLink  `xml:"link"`
		Author  string      `xml:"author>name"`
		Entries []atomEntry `xml:"entry"`
	}
	atomLink struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
	}
	atomEntry struct {
		ID      string   `xml:"id"`
		Title   string   `xml:"title"`
		Updated string   `xml:"updated"`
		Link    atomLink `xml:"link"`
		Summary string   `xml:"summary"`
	}
)

// feed is the site's feed, the newest first; nil where nothing has a date. What has none of its
// own is dated by the publication, or left out.
func (s Site) feed(entries []Entry) []byte {
	base := s.URL
	if base != "" && !strings.HasSuffix(base, "/") {
		base += "/"
	}
	f := atomFeed{Title: s.title(), ID: s.identity(base, ""), Author: s.title(), Links: []atomLink{{"self", base + "feed.xml"}, {"alternate", base + "index.html"}}}
	for _, e := range entries {
		at := e.Date
		if at.IsZero() {
			at = s.Date
		}
		if at.IsZero() {
			continue
		}
		when := at.UTC().Format(time.RFC3339)
		f.Updated = max(f.Updated, when)
		f.Entries = append(f.Entries, atomEntry{
			ID: s.identity(base, e.path()), Title: e.Title, Updated: when, Link: atomLink{"alternate", base + e.path()}, Summary: e.summary(),
		})
	}
	if len(f.Entries) == 0 {
		return nil
	}
	b, err := xml.MarshalIndent(f, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("site: the feed: %v", err)) // strings alone
	}
	return []byte(xml.Header + string(b) + "\n")
}

// Undated are the titles of what the feed leaves out, since it has no date.
func (s Site) Undated() []string {
	var out []string
	for _, e := range s.Entries {
		if e.Date.IsZero() && s.Date.IsZero() {
			out = append(out, cmp.Or(e.Title, e.Name))
		}
	}
	return out
}

// identity names a page for ever: its address, or of a site that has none a name of the site's
// title and the path.
func (s Site) identity(base, path string) string {
	if base != "" {
		return base + path
	}
	h := sha256.Sum256([]byte(s.title() + "\x00" + path))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // version 8, RFC 9562
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// summary is what an entry comes to, in a sentence for each result.
func (e Entry) summary() string {
	var out []string
	for _, r := range e.Results {
		text := r.Model + " on " + r.Hardware + ": "
		switch {
		case r.Best == "":
			text += r.Basis
		case r.Gain == "":
			text += r.Best + ", " + r.Figure
		default:
			text += r.Best + ", " + r.Figure + ", gain " + r.Gain + " (" + r.Basis + ")"
		}
		if r.Simulated {
			text = "SIMULATED: " + text
		}
		out = append(out, strings.TrimSuffix(text, ".")+".")
	}
	return strings.Join(out, " ")
}
