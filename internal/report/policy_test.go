package report

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perflab/internal/block"
	"perflab/internal/report/doc"
)

// What a strict content policy forbids in a page, in a tag of HTML or SVG.
var forbiddenInline = regexp.MustCompile(`(?i)<(?:style|script|link|iframe|object|embed|base|meta)\b|<[a-z][^<>]*\s(?:style|on[a-z]+|srcdoc)\s*=|(?:href|src|action)\s*=\s*["']?\s*javascript:`)

// A page of any kind of document is one that a policy by hashes takes: one style and one script, which
// Style and Script give, and neither attributes with style nor any with script.
func TestPagesNeedNoUnsafeInline(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.html")
	more, moreErr := filepath.Glob("*/testdata/*.html")
	if err != nil || moreErr != nil || len(paths) < 8 || len(more) < 2 {
		t.Fatalf("%d and %d pages, %v, %v", len(paths), len(more), err, moreErr)
	}
	for _, path := range append(paths, more...) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		head, page, _ := strings.Cut(string(b), "<style>"+doc.Style()+"</style>")
		before, after, ok := strings.Cut(page, "<script>"+doc.Script()+"</script>")
		if !ok || strings.Count(head, "<style") != 0 {
			t.Errorf("%s has not the style and the script that doc gives", path)
		}
		if m := forbiddenInline.FindString(before + after); m != "" {
			t.Errorf("%s has %q", path, m)
		}
	}
}

// A fragment is the page without what stands around it, hostile names and all.
func TestParts(t *testing.T) {
	const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>` + "\x1b[2J\u202e"
	h, calls := burst(120)
	h.Model, h.Workload, h.Command, h.Invoked, h.Backend = hostile, hostile, hostile, hostile, hostile
	d := must(Run(h, *chat(3792.5, 38065.91, 123.36), block.Style{}, calls, nil))
	d.Body.Title, d.Banner = hostile, hostile
	f := doc.Parts(d)
	if len(f.Body) < 10_000 || !strings.Contains(f.Body, "<svg") || !strings.HasPrefix(f.Contents, "<li><a href=\"#") {
		t.Errorf("%d bytes, contents %q", len(f.Body), f.Contents)
	}
	if m := forbiddenInline.FindString(f.Body + f.Contents); m != "" {
		t.Errorf("the fragment has %q", m)
	}
	if strings.ContainsAny(f.Title+f.Banner+f.Body+f.Contents, "\x1b\u202e") {
		t.Error("the fragment has what steers a terminal or the direction of writing")
	}
	var page strings.Builder
	if err := doc.HTML(&page, d); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), f.Body) || !strings.Contains(page.String(), f.Contents) {
		t.Error("the page has other parts")
	}
}
