package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pure are the packages, and in sim the files, that open no file or socket,
// read no clock and start no goroutine: their answers follow from their
// arguments alone.
var pure = map[string][]string{
	"stat": nil, "token": nil, "arch": nil, "engine": nil, "engine/cluster": nil, "tune": nil, "report": nil, "report/parquet": nil, "result": nil, "workload": {"random.go", "arrival*.go"},
	"sim": {"core.go", "schedule.go", "steptime.go", "kvcache.go", "frontend.go", "replay.go", "constants.go"},
}

// clocks are what reads or waits for the time in package time.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func TestPure(t *testing.T) {
	checked := 0
	for name, files := range pure {
		if files == nil {
			files = []string{"*.go"}
		}
		for _, pattern := range files {
			paths, err := filepath.Glob(filepath.Join("..", "..", "internal", name, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				if !strings.HasSuffix(path, "_test.go") {
					checkPure(t, path)
					checked++
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d files were checked: have they moved?", checked)
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
