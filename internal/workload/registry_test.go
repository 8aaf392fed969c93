package workload

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRegistry: each dataset says all that is asked of it, and each of its
// fields is one of Spec's.
func TestRegistry(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range datasets() {
		if d.name == "" || seen[d.name] {
			t.Errorf("a dataset is called %q, or two are", d.name)
		}
		seen[d.name] = true
		if d.open == nil && !d.takesPath() || d.title == nil || d.group == "" {
			t.Errorf("%s can be neither made up nor read, has no title or stands under no heading", d.name)
		}
		if d.takesPath() && d.open == nil && d.hint == "" {
			t.Errorf("%s does not say where its file comes from", d.name)
		}
		if d.trace && d.open != nil {
			t.Errorf("%s: a trace comes from a file", d.name)
		}
		for _, p := range d.params {
			new(Spec).Field(p.key) // or it panics
		}
	}
	for _, p := range Params() {
		if p.Usage == "" {
			t.Errorf("nothing is said of %s", p.Key)
		}
	}
}

// TestDatasetsAreRows: the name of a dataset stands in the file of its row and
// in no other of the program, so that a new dataset is one file and one row.
func TestDatasetsAreRows(t *testing.T) {
	others := map[string]string{ // what else is called so
		"random":        "the way to assign adapters, and a strategy",
		"conversations": "a key of ShareGPT's files",
	}
	in := map[string]map[string]bool{}
	for _, dir := range []string{".", "../lab", "../bench", "../study"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(lit.Value); err == nil && slices.Contains(Datasets(), text) {
					if in[text] == nil {
						in[text] = map[string]bool{}
					}
					in[text][path] = true
				}
				return true
			})
		}
	}
	for _, name := range Datasets() {
		if files := slices.Sorted(maps.Keys(in[name])); len(files) != 1 && others[name] == "" {
			t.Errorf("%s stands in %s: ask the registry", name, strings.Join(files, ", "))
		}
	}
}
