package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// architecture is the document whose table of packages says what each package
// of ours may import of ours. The table is read here, so that the document and
// the rule cannot differ: a new package is a new row of it.
const architecture = "../../docs/architecture.md"

// ours begins the paths of our packages: the module's own.
const ours = "perflab/"

// named is a package's name in the table: its path below internal, and of what is not there its
// path behind "perflab/".
func named(path string) string {
	if name, ok := strings.CutPrefix(path, ours+"internal/"); ok {
		return name
	}
	return "perflab/" + strings.TrimPrefix(path, ours)
}

// row is a row of that table.
type row struct {
	name, does string
	line       int // among the rows
	imports    []string
	everything bool // it may import all packages
}

var rowPattern = regexp.MustCompile("(?m)^\\| `([^`|]+)` \\|(.*)\\| *([^|]*?) *\\|$")

// table reads the rows of the document by the packages' names.
func table(t *testing.T) map[string]row {
	t.Helper()
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]row{}
	for _, m := range rowPattern.FindAllStringSubmatch(string(text), -1) {
		r := row{name: m[1], does: strings.TrimSpace(m[2]), line: len(rows)}
		switch m[3] {
		case "-":
		case "everything":
			r.everything = true
		default:
			r.imports = strings.Split(m[3], ", ")
		}
		if _, twice := rows[r.name]; twice {
			t.Errorf("%s: package %s has two rows", architecture, r.name)
		}
		rows[r.name] = r
	}
	for _, r := range rows {
		for _, name := range r.imports {
			switch below, ok := rows[name]; {
			case !ok:
				t.Errorf("%s: the row of %s names %q, which has no row", architecture, r.name, name)
			case below.line >= r.line:
				t.Errorf("%s: the row of %s names %s, whose row must stand above it", architecture, r.name, name)
			}
		}
	}
	return rows
}

// tests are what the tests of a package may import of ours beyond what the
// package itself may, with the reason. The test kits below internal/test are
// for every test.
var tests = map[string]map[string]string{
	"compare":             {"verdict": "runs with verdicts are compared"},
	"verdict":             {"block": "a run is printed with its verdict", "reuse": "what prompts share is judged"},
	"rundir":              {"block": "an imported run is printed"},
	"audit":               {"block": "our own blocks are audited", "engine": "commands in documents are held against the catalogue", "sim": "simulated runs must pass the audit"},
	"candidate":           {"stat": "random configurations"},
	"draft":               {"deploy/docker": "a machine whose containers get GPUs", "version": "machines of other systems"},
	"deploy/docker":       {"engine/cluster": "plans over several machines"},
	"deploy/render":       {"engine/shellwords": "lines that were rendered are taken apart"},
	"engine/cluster":      {"engine/shellwords": "commands of cases are written as lines"},
	"engine":              {"engine/logs": "the line of a rejection is found in a log"},
	"fleet/node":          {"lab": "a study over nodes", "study": "and its file", "outcome": "what it found", "tune": "its journal", "generator": "who sent a load", "engine": "the flags of the engine that stands in", "deploy/docker": "containers of its agents"},
	"fleet/clock":         {"stat": "random networks"},
	"fleet/ship":          {"stat": "random calls and faults"},
	"fleet":               {"fleet/agent": "agents to lead", "workload": "what they send", "rundir": "what was fetched of them"},
	"lab":                 {"sim": "a server to measure", "gauge": "what was read of the nodes", "replay": "predictions are corrected by what was measured", "price": "of the hardware of a study"},
	"record":              {"workload": "recordings are replayed", "sim": "by an engine that answers", "engine": "which is configured", "arch": "of a model", "truth": "a server with known instants shows what is added", "stat": "and by how much"},
	"report":              {"stat": "random calls", "verdict": "summaries with verdicts", "price": "what the hardware costs", "tune/answers": "answers that were asked are reported"},
	"report/prediction":   {"engine": "the memory of a configuration is rendered"},
	"report/progress":     {"tune": "the ratio of what leads"},
	"report/audited":      {"interop": "places of findings"},
	"report/parquet":      {"stat": "random calls"},
	"profile/submission":  {"workload": "the load of a curve that was measured"},
	"push":                {"web": "a laboratory is pushed to", "web/guard": "its tokens and certificate", "store": "what it has then"},
	"web/api":             {"web": "the API is asked behind its guard"},
	"perflab/cmd/perflab": {"tune/journal": "the journal of a study that was killed", "outcome": "the facts of a study", "source": "how far a launched study has come", "web": "a study is followed in a browser", "web/allow": "each flag of bench has a row", "truth": "a server with known instants is measured over a slow link", "rundir": "calls that a fleet brought", "result": "what a run says of a Service", "study": "the example of every night is checked"},
	"listing":             {"store/mark": "what people said is shown"},
	"sim":                 {"prometheus": "the metrics that it publishes are read", "engine/meters": "and given common names", "engine/logs": "what it prints at the start is read"},
	"outline":             {"load": "what is foreseen is held against a client of a simulated engine", "result": "its calls", "engine": "the engine", "arch": "the engine"},
	"test/science":        {"result": "the figures of a replay are those that it defines", "earlier": "what was measured under another load is weighed"},
	"web/asset":           {"web/figure": "plots of every kind are looked at"},
	"tune/journal":        {"tune/staged": "a search that is interrupted"},
	"tune/staged":         {"stat": "random studies"},
	"tune/foresight":      {"tune/answers": "a search whose answers are guarded"},
	"web/runs":            {"web": "pages are served as they are", "rundir": "a run that is under way", "gauge": "and what is read of its engine", "durable": "a series that somebody is at work on"},
	"web":                 {"push": "directories are pushed to a server that is killed", "fleet/order": "an agent whose every text is hostile"},
	"web/guard/meter":     {"prometheus": "what is written is read again"},
	"web/agents":          {"web": "pages are looked at as the server gives them", "fleet/bus": "machines join by what was shown"},
	"web/hardware":        {"web": "pages are looked at as the server gives them", "web/asset": "and what they load"},
	"web/history":         {"web": "pages are looked at as the server gives them"},
	"web/versus":          {"web": "pages are looked at as the server gives them", "rundir": "runs to compare", "verdict": "and what they are worth"},
	"web/studies":         {"web": "screens are served behind the guard", "tune/journal": "a study that somebody is at work on", "web/allow": "what a launched study may use"},
	"web/intake":          {"web": "screens are served behind the guard"},
	"web/start":           {"web": "screens are served behind the guard", "web/allow": "what a launched study may use"},
	"truth":               {"selfcheck": "the client's cost is measured as a run is", "proc": "other programs are told from it", "interop": "what other clients print is held against the truth", "result": "what perflab prints is too"},
}

// modules are the dependencies, and which packages may import of each: no
// other may, and no dependency is absent here. A nil list stands for the tests
// and the test kits.
var modules = map[string][]string{
	"go.yaml.in/yaml/v4":                       {"study", "engine/nested", "deploy/render", "deploy/kube", "web/allow", "profile/submission"},
	"github.com/invopop/jsonschema":            nil,
	"github.com/spf13/cobra":                   {"cli", "cli/console", "cli/library", "cli/machines", "cli/measure", "cli/plan", "cli/read", "perflab/scripts/release"},
	"github.com/spf13/pflag":                   {"cli", "cli/console", "cli/flagset", "cli/library", "cli/machines", "cli/measure", "cli/plan", "cli/read"},
	"golang.org/x/term":                        {"cli/console"},
	"golang.org/x/sys":                         {"durable", "wire", "load", "truth", "deploy", "test/netns", "test/relay"},
	"github.com/parquet-go/parquet-go":         {"report/parquet", "datafile"},
	"github.com/jackc/pgx/v5":                  {"store"},
	"github.com/klauspost/compress":            {"fleet/ship"},
	"modernc.org/sqlite":                       {"store"},
	"github.com/moby/moby/client":              {"deploy/docker"},
	"github.com/moby/moby/api":                 {"deploy/docker"},
	"github.com/containerd/errdefs":            {"deploy/docker"},
	"github.com/opencontainers/image-spec":     {"deploy/docker"},
	"github.com/nats-io/nats-server/v2":        {"fleet/bus"},
	"github.com/nats-io/nats.go":               {"fleet/bus"},
	"github.com/nats-io/nkeys":                 {"fleet/bus"},
	"github.com/go-logr/logr":                  {"deploy/kube"},
	"k8s.io/api":                               {"deploy/kube", "test/kubetest"},
	"k8s.io/apimachinery":                      {"deploy/kube", "test/kubetest"},
	"k8s.io/client-go":                         {"deploy/kube", "test/kubetest"},
	"k8s.io/cri-streaming":                     nil,
	"k8s.io/streaming":                         {"deploy/kube"},
	"github.com/google/go-cmp":                 nil,
	"github.com/yuin/goldmark":                 nil,
	"github.com/rogpeppe/go-internal":          nil,
	"github.com/chromedp/chromedp":             nil,
	"github.com/chromedp/cdproto":              nil,
	"github.com/santhosh-tekuri/jsonschema/v6": nil,
}

// testModules are the dependencies that tests of other packages may import
// too, with the packages.
var testModules = map[string][]string{
	"go.yaml.in/yaml/v4":     {"cli", "perflab/cmd/perflab"},
	"github.com/spf13/pflag": {"perflab/cmd/perflab"},
}

// forbidden are standard packages that a package which is not pure must not use
// all the same, with the reason.
var forbidden = []struct {
	packages, imports []string
	why               string
}{
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
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", ours+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	rows := table(t)
	seen := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); ; seen++ {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		r, known := rows[named(p.ImportPath)]
		if !known {
			t.Errorf("package %s has no row in the table of %s", p.ImportPath, architecture)
			continue
		}
		checkImports(t, p, r)
		checkTestImports(t, p, r)
	}
	if seen != len(rows) {
		t.Errorf("go list showed %d packages, the table of %s has %d", seen, architecture, len(rows))
	}
}

func checkImports(t *testing.T, p pkg, r row) {
	for _, name := range r.imports {
		if !slices.Contains(p.Imports, ours+"internal/"+name) {
			t.Errorf("%s does not import %s, which its row in the table of %s names", r.name, name, architecture)
		}
	}
	for _, path := range p.Imports {
		if name, ok := strings.CutPrefix(path, ours+"internal/"); ok {
			if !r.everything && !slices.Contains(r.imports, name) {
				t.Errorf("%s imports %s: the table of %s does not allow it", r.name, name, architecture)
			}
			if isTest(name) && !isTest(r.name) {
				t.Errorf("%s imports %s, which is for tests", r.name, name)
			}
		}
		checkModule(t, r.name, path, false)
		for _, f := range forbidden {
			if slices.Contains(f.packages, r.name) && slices.Contains(f.imports, path) {
				t.Errorf("%s imports %s: %s", r.name, path, f.why)
			}
		}
	}
}

func checkTestImports(t *testing.T, p pkg, r row) {
	for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
		name, ok := strings.CutPrefix(path, ours+"internal/")
		if ok && !r.everything && name != r.name && !isTest(name) && !slices.Contains(r.imports, name) && tests[r.name][name] == "" {
			t.Errorf("the tests of %s import %s: neither the table of %s nor the list of tests allows it", r.name, name, architecture)
		}
		checkModule(t, r.name, path, true)
	}
}

// isTest says whether a package is a test kit or an experiment.
func isTest(name string) bool { return strings.HasPrefix(name, "test/") }

// checkModule holds an import of another module against the list of
// dependencies.
func checkModule(t *testing.T, name, path string, test bool) {
	first, _, _ := strings.Cut(path, "/")
	if !strings.Contains(first, ".") || strings.HasPrefix(path, ours) {
		return
	}
	for module, packages := range modules {
		if path != module && !strings.HasPrefix(path, module+"/") {
			continue
		}
		switch {
		case packages == nil && (test || isTest(name)):
		case slices.Contains(packages, name):
		case test && slices.Contains(testModules[module], name):
		default:
			t.Errorf("%s imports %s, which is for %q and tests named in deps_test.go alone", name, path, packages)
		}
		return
	}
	t.Errorf("%s imports %s of a module that is not in the list of dependencies", name, path)
}

// Names in the document: files with their folder, and what packages declare.
var (
	filePattern = regexp.MustCompile("`([a-z]+(?:/[a-z_]+)*\\.(?:go|json|sh))`")
	namePattern = regexp.MustCompile("`([a-z]+)\\.([A-Z][A-Za-z]*)(?:\\.([A-Z][A-Za-z]*))?`")
)

// TestArchitectureNames holds the files and the names that the document speaks
// of against the code, so that a newcomer finds what is written there.
func TestArchitectureNames(t *testing.T) {
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range filePattern.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], "/") && !exists("../../internal/"+m[1]) && !exists("../../"+m[1]) {
			t.Errorf("%s names %s, which is not there", architecture, m[1])
		}
	}
	code := map[string]string{} // of a package, by the last part of its name
	for name := range table(t) {
		files, err := filepath.Glob("../../internal/" + name + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			code[path.Base(name)] += string(b)
		}
	}
	named := 0
	for _, m := range namePattern.FindAllStringSubmatch(string(text), -1) {
		for _, id := range m[2:] {
			declared := regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type |\t)` + id + `\b`)
			if id != "" && !declared.MatchString(code[m[1]]) {
				t.Errorf("%s names %s of package %s, which does not declare it", architecture, id, m[1])
			}
			named++
		}
	}
	if named < 20 {
		t.Errorf("%s names %d parts of packages, which this test should have found more of", architecture, named)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
