// Package docsite makes a site of static pages of README.md and docs: make docs-site. Links are
// relative and nothing is loaded from elsewhere, so that the pages work from files.
package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Chapter is a heading of the navigation with its pages, as paths of Markdown files.
type Chapter struct {
	Title string
	Pages []string
}

// Chapters are the pages of the site in the order in which they are read.
func Chapters() []Chapter {
	return []Chapter{
		{"Start", []string{"README.md", "docs/get-started.md", "docs/faq.md"}},
		{"Use", []string{"docs/bench.md", "docs/agents.md", "docs/profiles.md", "docs/record.md", "docs/tuning.md", "docs/predict.md", "docs/results.md", "docs/publish.md", "docs/store.md", "docs/serve.md", "docs/fleet.md", "docs/ci.md", "docs/runtimes.md", "docs/kubernetes.md"}},
		{"Coming from", []string{"docs/from-vllm.md", "docs/from-guidellm.md", "docs/from-aiperf.md", "docs/from-others.md"}},
		{"Look up", []string{"docs/commands.md", "docs/metrics.md", "docs/findings.md", "docs/api.md", "docs/catalogue.md", "CHANGELOG.md"}},
		{"How true it is", []string{"docs/accuracy.md", "docs/performance.md", "docs/history.md", "docs/real-engine.md", "docs/agents-measured.md", "docs/llamacpp-cpu/README.md", "docs/vllm-cpu/README.md", "docs/simulator.md"}},
		{"The project", []string{"docs/architecture.md", "CONTRIBUTING.md", "SECURITY.md", "docs/release.md"}},
	}
}

// Page is a Markdown file as HTML.
type Page struct {
	Path    string // of the Markdown file
	Title   string
	Body    template.HTML
	Anchors []string
	Links   []string // as the file has them
}

// Read reads a page.
func Read(root fs.FS, name string) (*Page, error) {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, fmt.Errorf("read a page: %w", err)
	}
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	doc := md.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(&ids{seen: map[string]int{}}))))
	p := &Page{Path: name, Title: name}
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if id, ok := n.AttributeString("id"); ok {
				p.Anchors = append(p.Anchors, string(id.([]byte)))
			}
			if n.Level == 1 && p.Title == name {
				p.Title = plain(n, source)
			}
		case *ast.Link:
			p.Links = append(p.Links, string(n.Destination))
			n.Destination = []byte(toPage(string(n.Destination)))
		case *ast.Image:
			p.Links = append(p.Links, string(n.Destination))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := md.Renderer().Render(&b, source, doc); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	p.Body = template.HTML(wide.ReplaceAllString(b.String(), `<div class="wide">$0</div>`)) // of our own files; raw HTML in them is left out
	return p, nil
}

// wide is what scrolls in a box of its own.
var wide = regexp.MustCompile(`(?s)<table>.*?</table>`)

// plain is the text of a heading.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	for lines, i := n.Lines(), 0; i < lines.Len(); i++ {
		at := lines.At(i)
		b.Write(at.Value(source))
	}
	return strings.NewReplacer("`", "", "*", "").Replace(b.String())
}

// toPage is a link to a Markdown file as one to its page.
func toPage(link string) string {
	file, anchor, has := strings.Cut(link, "#")
	if strings.Contains(file, "://") || !strings.HasSuffix(file, ".md") {
		return link
	}
	file = path.Join(path.Dir(file), strings.TrimPrefix(PageOf(path.Base(file)), "/"))
	if has {
		return file + "#" + anchor
	}
	return file
}

// PageOf is the path of the page of a Markdown file.
func PageOf(name string) string {
	dir, base := path.Split(name)
	if base == "README.md" {
		return dir + "index.html"
	}
	return dir + strings.TrimSuffix(base, ".md") + ".html"
}

// ids makes the anchors of headings as forges do, which the links in the files go by.
type ids struct{ seen map[string]int }

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

func (s *ids) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(string(value))), ""), " ", "-")
	n := s.seen[id]
	s.seen[id]++
	if n > 0 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	return []byte(id)
}

func (s *ids) Put(value []byte) { s.seen[util.BytesToReadOnlyString(value)]++ }

// Build makes the site: its files by path.
func Build(root fs.FS) (map[string][]byte, error) {
	out := map[string][]byte{}
	var pages []*Page
	for _, c := range Chapters() {
		for _, name := range c.Pages {
			p, err := Read(root, name)
			if err != nil {
				return nil, err
			}
			pages = append(pages, p)
		}
	}
	for _, p := range pages {
		var b bytes.Buffer
		if err := layout.Execute(&b, view{p, pages}); err != nil {
			return nil, fmt.Errorf("make the page of %s: %w", p.Path, err)
		}
		out[PageOf(p.Path)] = b.Bytes()
		for _, link := range p.Links {
			file, _, _ := strings.Cut(link, "#")
			if file == "" || strings.Contains(link, "://") || strings.HasSuffix(file, ".md") {
				continue
			}
			at := path.Join(path.Dir(p.Path), file)
			if info, err := fs.Stat(root, at); err != nil || info.IsDir() {
				continue // the test of links says it
			}
			content, err := fs.ReadFile(root, at)
			if err != nil {
				return nil, err
			}
			out[at] = content
		}
	}
	return out, nil
}

// view is a page among all.
type view struct {
	*Page
	all []*Page
}

// Entry is a line of the navigation.
type Entry struct {
	Title, Href string
	Here        bool
}

// Nav is the navigation as it stands on the page.
func (v view) Nav() (out []struct {
	Title   string
	Entries []Entry
}) {
	up := strings.Repeat("../", strings.Count(v.Path, "/"))
	for _, c := range Chapters() {
		var entries []Entry
		for _, p := range v.all {
			if slices.Contains(c.Pages, p.Path) {
				entries = append(entries, Entry{p.Title, up + PageOf(p.Path), p.Path == v.Path})
			}
		}
		out = append(out, struct {
			Title   string
			Entries []Entry
		}{c.Title, entries})
	}
	return out
}

var layout = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{.Title}}{{if ne .Path "README.md"}} - perflab{{end}}</title>
<style>
:root { --ink: #1b1f24; --soft: #57606a; --ground: #fff; --panel: #f6f8fa; --line: #d0d7de; --link: #0757b5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa5b1; --ground: #0d1117; --panel: #161b22; --line: #30363d; --link: #79b8ff; } img { background: #fff; } }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--ground); }
a { color: var(--link); }
.skip { position: absolute; left: -999px; } .skip:focus { left: 8px; top: 8px; background: var(--ground); padding: 4px 8px; }
.page { display: grid; grid-template-columns: 240px minmax(0, 1fr); max-width: 1240px; margin: auto; }
nav { padding: 24px 16px; border-right: 1px solid var(--line); font-size: 14px; }
nav h2 { font-size: 13px; color: var(--soft); margin: 18px 0 4px; }
nav ul { list-style: none; margin: 0; padding: 0; } nav li { margin: 3px 0; }
nav a[aria-current] { font-weight: 600; color: var(--ink); text-decoration: none; }
main { padding: 24px 32px 64px; min-width: 0; }
h1 { font-size: 30px; line-height: 1.2; } h2 { margin-top: 36px; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 12px; overflow-x: auto; font-size: 13.5px; line-height: 1.45; }
code { background: var(--panel); border-radius: 4px; padding: 1px 4px; font-size: 0.9em; overflow-wrap: anywhere; } pre code { padding: 0; font-size: inherit; overflow-wrap: normal; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 14px; } th, td { border: 1px solid var(--line); padding: 4px 10px; vertical-align: top; }
th { background: var(--panel); text-align: left; } img { max-width: 100%; height: auto; }
td:first-child code { white-space: nowrap; }
.menu { display: none; }
@media (max-width: 800px) { .page { display: flex; flex-direction: column; } main { order: -1; padding: 0 16px 16px; } nav { border-right: 0; border-top: 1px solid var(--line); } .menu { display: block; padding: 12px 16px 0; } }
</style>
</head>
<body>
<a class="skip" href="#content">To the text</a>
<a class="menu" href="#pages">All pages</a>
<div class="page">
<nav id="pages" aria-label="Pages">
{{range .Nav}}<h2>{{.Title}}</h2>
<ul>
{{range .Entries}}<li><a href="{{.Href}}"{{if .Here}} aria-current="page"{{end}}>{{.Title}}</a></li>
{{end}}</ul>
{{end}}</nav>
<main id="content">
{{.Body}}</main>
</div>
</body>
</html>
`))
