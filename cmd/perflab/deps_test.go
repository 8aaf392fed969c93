package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed is the import table of docs/architecture.md: what each package of
// ours may import of ours.
var allowed = map[string][]string{
	"stat":              {},
	"field":             {},
	"token":             {},
	"tokenizer":         {},
	"arch":              {"stat"},
	"result":            {"stat"},
	"workload":          {"stat", "token", "field"},
	"wire":              {},
	"openai":            {"workload", "result", "wire"},
	"load":              {"workload", "result", "stat"},
	"engine":            {"arch"},
	"engine/cluster":    {"engine"},
	"deploy":            {"engine", "engine/cluster"},
	"deploy/deploytest": {"deploy", "engine"},
	"deploy/docker":     {"deploy"},
	"deploy/render":     {"deploy", "engine", "engine/cluster"},
	// The stand-in knows nothing of the client's types, so that it cannot share its errors.
	"deploy/docker/dockertest": {},
	"sim":                      {"stat", "token", "arch", "engine"},
	"sim/simtest":              {"sim", "engine"},
	"calib":                    {"stat", "arch", "engine", "sim", "result"},
	"tune":                     {"stat"},
	"candidate":                {"arch", "engine", "tune"},
	"test/science":             {"stat", "arch", "engine", "sim", "calib", "result", "tune", "candidate"},
	"truth":                    {"stat"},
	"telemetry":                {"engine", "result"},
	"lab":                      {"stat", "token", "arch", "result", "workload", "openai", "load", "engine", "engine/cluster", "deploy", "deploy/docker", "telemetry", "tune", "candidate", "truth", "tokenizer", "interop"},
	"interop":                  {"result"},
	"audit":                    {"result", "interop", "arch", "stat"},
	"report":                   {"result", "stat", "tune", "audit"},
	"report/parquet":           {"result"},
	"cli":                      nil, // everything
}

// heavy are dependencies that may appear in one package each.
var heavy = map[string]string{
	"go.yaml.in/yaml/v4":                               "lab",
	"github.com/invopop/jsonschema":                    "cli",
	"github.com/spf13/cobra":                           "cli",
	"golang.org/x/term":                                "cli",
	"github.com/spf13/pflag":                           "cli",
	"github.com/parquet-go/parquet-go":                 "report/parquet",
	"github.com/parquet-go/parquet-go/compress/zstd":   "report/parquet",
	"github.com/moby/moby/client":                      "deploy/docker",
	"github.com/moby/moby/api/pkg/authconfig":          "deploy/docker",
	"github.com/moby/moby/api/pkg/stdcopy":             "deploy/docker",
	"github.com/moby/moby/api/types/container":         "deploy/docker",
	"github.com/moby/moby/api/types/jsonstream":        "deploy/docker",
	"github.com/moby/moby/api/types/mount":             "deploy/docker",
	"github.com/moby/moby/api/types/network":           "deploy/docker",
	"github.com/moby/moby/api/types/registry":          "deploy/docker",
	"github.com/containerd/errdefs":                    "deploy/docker",
	"github.com/opencontainers/image-spec/specs-go/v1": "deploy/docker",
}

// forbidden are standard packages that a pure package must not use, with the
// reason.
var forbidden = []struct {
	packages, imports []string
	why               string
}{
	{
		[]string{"stat", "token", "arch", "engine", "engine/cluster", "tune", "candidate", "calib", "interop", "audit", "report", "report/parquet", "result"}, []string{"net", "net/http", "os", "os/exec"},
		"it computes; files and sockets are for lab, deploy, openai and cli",
	},
	{
		[]string{"deploy/render"}, []string{"net/http", "os", "os/exec"},
		"it writes down what others do: its text is a function of the plan",
	},
	{
		[]string{"tokenizer"}, []string{"net", "net/http", "os/exec", "time"},
		"it reads one file, in Open, and computes",
	},
	{
		[]string{"workload", "openai", "load"}, []string{"os/exec"},
		"only deploy starts processes",
	},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "perflab/internal/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); ; seen++ {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		check(t, strings.TrimPrefix(p.ImportPath, "perflab/internal/"), p.Imports)
	}
	if seen < len(allowed)-2 {
		t.Errorf("go list showed %d packages, the table has %d", seen, len(allowed))
	}
}

func check(t *testing.T, name string, imports []string) {
	may, known := allowed[name]
	if !known {
		t.Errorf("package %s is not in the table of docs/architecture.md", name)
		return
	}
	for _, path := range imports {
		ours, isOurs := strings.CutPrefix(path, "perflab/internal/")
		if isOurs && may != nil && !slices.Contains(may, ours) {
			t.Errorf("%s imports %s: the table of docs/architecture.md does not allow it", name, ours)
		}
		if only, isHeavy := heavy[path]; isHeavy && only != name {
			t.Errorf("%s imports %s, which is for %s alone", name, path, only)
		}
		for _, f := range forbidden {
			if slices.Contains(f.packages, name) && slices.Contains(f.imports, path) {
				t.Errorf("%s imports %s: %s", name, path, f.why)
			}
		}
	}
}
