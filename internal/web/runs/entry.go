package runs

import (
	"strings"

	"perflab/internal/store"
	"perflab/internal/store/scan"
	"perflab/internal/web/page"
)

// entryView is an entry as rows and pages show it.
type entryView struct {
	store.Entry
	Href     string // of its page
	Name     string
	Result   string // what a study or a series came to, in short
	Copies   int    // further places
	Running  bool
	Halted   string // stopped, partial
	Compared bool   // it can be compared
}

func viewOf(e store.Entry, base string) entryView {
	v := entryView{Entry: e, Href: href(e, base), Name: e.Called(), Result: headline(e), Copies: max(0, len(e.Places)-1), Running: e.State == scan.Running}
	if e.State == scan.Stopped || e.State == scan.Partial {
		v.Halted = string(e.State)
	}
	v.Compared = e.Kind != scan.Site && e.Kind != scan.Folder
	return v
}

// href is the address of an entry's page: studies have a screen of their own.
func href(e store.Entry, base string) string {
	if e.Kind == scan.Study && base == "" {
		return "/study/" + e.ID
	}
	return base + "/run/" + e.ID
}

// headline is what a study or a series came to, in a line.
func headline(e store.Entry) string {
	h := e.Headline
	if h == nil {
		return ""
	}
	if h.Gain == nil {
		return h.Text
	}
	out := page.Percent(*h.Gain)
	if h.Low != nil && h.High != nil {
		out += " [" + page.Percent(*h.Low) + ", " + page.Percent(*h.High) + "]"
	}
	if h.Best != "" {
		out += " by " + h.Best
	}
	if !h.Confirmed {
		out += ", not confirmed"
	}
	return strings.TrimSpace(out)
}

// Shown is a figure of the entry as text.
func (v entryView) Shown(metric string) string {
	c, _ := columnOf(metric)
	x := c.of(v.Entry)
	if x.Missing {
		return page.None
	}
	return x.Text
}
