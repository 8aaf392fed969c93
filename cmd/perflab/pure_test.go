package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pureFiles are the files that are pure in packages that are not: they open no
// file or socket, read no clock and start no goroutine, and their answers follow
// from their arguments alone. Whole packages are pure where their row in the
// document says "Pure."
var pureFiles = map[string][]string{
	"proc":     {"process.go", "cpu.go", "socket.go"},
	"workload": {"random.go", "arrival*.go"},
	"sim":      {"blocks.go", "constants.go", "core.go", "frontend.go", "kvcache.go", "queue.go", "replay.go", "sched*.go", "seq.go", "stats.go", "steptime.go"},
}

// clocks are what reads or waits for the time in package time.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func TestPure(t *testing.T) {
	patterns := maps.Clone(pureFiles)
	for name, r := range table(t) {
		if strings.Contains(r.does, "Pure.") {
			patterns[name] = []string{"*.go"}
		}
	}
	if len(patterns) < len(pureFiles)+10 {
		t.Errorf("only %d packages are pure by %s: has its wording changed?", len(patterns)-len(pureFiles), architecture)
	}
	for name, files := range patterns {
		for _, pattern := range files {
			paths, err := filepath.Glob(filepath.Join("..", "..", "internal", name, pattern))
			if err != nil {
				t.Fatal(err)
			}
			if len(paths) == 0 {
				t.Errorf("there is no %s in %s: has it moved?", pattern, name)
			}
			for _, path := range paths {
				if !strings.HasSuffix(path, "_test.go") {
					checkPure(t, path)
				}
			}
		}
	}
}

func checkPure(t *testing.T, path string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		if p := strings.Trim(i.Path.Value, `"`); slices.Contains([]string{"os", "net", "net/http", "os/exec", "syscall"}, p) {
			t.Errorf("%s imports %s", path, p)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%s starts a goroutine", set.Position(x.Pos()))
		case *ast.CallExpr:
			if f, ok := x.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Go" {
				t.Errorf("%s starts a goroutine", set.Position(x.Pos()))
			}
		case *ast.SelectorExpr:
			if id, ok := x.X.(*ast.Ident); ok && id.Name == "time" && slices.Contains(clocks, x.Sel.Name) {
				t.Errorf("%s reads the clock by time.%s", set.Position(x.Pos()), x.Sel.Name)
			}
		}
		return true
	})
}
