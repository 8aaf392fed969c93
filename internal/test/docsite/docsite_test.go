package docsite

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var out = flag.String("out", "", "write the site into this directory")

// TestSite makes the site, and writes it where -out says.
func TestSite(t *testing.T) {
	files, err := Build(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(files["index.html"]) == 0 {
		t.Error("there is no first page")
	}
	for name, content := range files {
		if strings.HasSuffix(name, ".html") && strings.Contains(string(content), `src="http`) {
			t.Errorf("%s loads something from elsewhere", name)
		}
		if *out == "" {
			continue
		}
		at := filepath.Join(*out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLinks: every link of the documents leads to a file that is there, and to a heading in it; and
// every document stands in the navigation.
func TestLinks(t *testing.T) {
	root := os.DirFS("../../..")
	pages := map[string]*Page{}
	read := func(name string) *Page {
		if pages[name] == nil {
			p, err := Read(root, name)
			if err != nil {
				t.Fatal(err)
			}
			pages[name] = p
		}
		return pages[name]
	}
	for _, c := range Chapters() {
		for _, name := range c.Pages {
			read(name)
		}
	}
	all, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(all) < 5 {
		t.Fatal(err, len(all))
	}
	for _, file := range all {
		if name := "docs/" + filepath.Base(file); pages[name] == nil {
			t.Errorf("%s stands in no chapter of the site", name)
		}
	}
	for name := range pages {
		for _, link := range read(name).Links {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(link, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join("../../..", target)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, link)
				continue
			}
			if anchor != "" && strings.HasSuffix(target, ".md") && !slices.Contains(read(target).Anchors, anchor) {
				t.Errorf("%s links to %s, which has no such heading", name, link)
			}
		}
	}
}
