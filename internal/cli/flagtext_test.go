package cli

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"perflab/internal/cli/console"
	"perflab/internal/field"
)

// TestInFlags: the errors of values, wrapped and joined, name them by the flags
// that set them, and whatever else they say stays as it is.
func TestInFlags(t *testing.T) {
	rate := field.Errorf("request_rate", "does not apply with [steps], which has the %s", "rates [of a kind]")
	for want, err := range map[string]error{
		"--request-rate does not apply with --steps, which has the rates [of a kind]": rate,
		"run 2: --num-prompts -1 must not be negative":                                fmt.Errorf("run 2: %w", field.Errorf("num_prompts", "%d must not be negative", -1)),
		"--base-url \"x\" is no URL\nplain":                                           console.Usage(errors.Join(field.Errorf("targets", "%q is no URL", "x"), errors.New("plain"))),
		"choose another --out or remove it":                                           field.Errorf("", "choose another [out] or remove it"),
		"workloads[1].rate is 0":                                                      field.Under("workloads[1]", field.Errorf("rate", "is 0")),
	} {
		if got := console.InFlags(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNoFlagsBelow: what a user types belongs to this package. Others name a
// value by its path; see package field.
func TestNoFlagsBelow(t *testing.T) {
	var names []string
	for _, c := range newRoot(console.Env{}).Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "metrics" && f.Name != "format" { // which llama-server and nvidia-smi have too
				names = append(names, regexp.QuoteMeta(f.Name))
			}
		})
	}
	flags := regexp.MustCompile(`(^|[^\w-])--(` + strings.Join(names, "|") + `)([^\w-]|$)`)
	for _, dir := range []string{"arch", "compare", "load", "openai", "rundir", "stat", "telemetry", "tokenizer", "tune", "verdict", "wire", "workload"} {
		paths, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no files, %v", dir, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil && flags.MatchString(text) {
						t.Errorf("%s: %q names a flag", files.Position(lit.Pos()), text)
					}
				}
				return true
			})
		}
	}
}
