package doctor

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/hardware"
)

// Engine is an engine that is installed.
type Engine struct {
	Name    string `json:"name"`  // in the catalogue
	Title   string `json:"title"` //
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`   // of its program; "": it is a module of Python's alone
	Python  string `json:"python,omitempty"` // that has its module, "": it is none
	OnPath  bool   `json:"ready"`            // its serving command starts as it is
}

// install is how an engine is recognised.
type install struct {
	name    string
	program string // on PATH
	module  string // distribution of Python's, "": it is none
	byPath  bool   // the program on PATH is what serves; else python3 -m
}

func installs() []install {
	return []install{
		{"vllm", "vllm", "vllm", true},
		{"sglang", "sglang", "sglang", false},
		{"trtllm", "trtllm-serve", "tensorrt_llm", true},
		{"llamacpp", "llama-server", "", true},
	}
}

func lookEngines(ctx context.Context, p Probes) (func(*Report), error) {
	s := search{Probes: p, asked: map[string]map[string]string{}}
	var found []Engine
	for _, in := range installs() {
		e, ok := s.find(ctx, in)
		if ok {
			found = append(found, e)
		}
	}
	return func(r *Report) { r.Engines = append(r.Engines, found...) }, errors.Join(s.faults...)
}

// search looks for engines, and asks each Python once.
type search struct {
	Probes
	asked  map[string]map[string]string // versions of modules, by interpreter
	faults []error
}

func (s *search) find(ctx context.Context, in install) (Engine, bool) {
	known, err := engine.ByName(in.name)
	if err != nil {
		return Engine{}, false
	}
	e := Engine{Name: in.name, Title: known.Title, Path: s.Find(in.program)}
	if in.module == "" {
		if e.Path == "" {
			return e, false
		}
		e.OnPath, e.Version = true, s.version(ctx, known, e.Path)
		return e, true
	}
	python := s.Find("python3")
	if own := s.interpreter(e.Path); own != "" && s.modules(ctx, own)[in.module] != "" {
		e.Python, e.Version = own, s.modules(ctx, own)[in.module]
	} else if v := s.modules(ctx, python)[in.module]; v != "" {
		e.Python, e.Version = python, v
	}
	switch {
	case e.Path == "" && e.Python == "":
		return e, false
	case e.Version == "": // a program of another kind, which tells its version itself
		e.Version = s.version(ctx, known, e.Path)
	}
	e.OnPath = in.byPath && e.Path != "" || !in.byPath && e.Python != "" && e.Python == python
	return e, true
}

// version asks a program for its own. llama-server prints it as an error.
func (s *search) version(ctx context.Context, known *engine.Engine, path string) string {
	out, errs, err := s.Run(ctx, path, "--version")
	if err != nil {
		s.faults = append(s.faults, err)
		return ""
	}
	version, _ := known.ParseVersion(out + "\n" + errs)
	return version
}

// metadata prints the versions of modules by what their installation wrote down: importing an
// engine takes half a minute. The directory that perflab runs in is none of Python's.
const metadata = `import sys
sys.path[:] = [p for p in sys.path if p]
import importlib.metadata as m
for name in sys.argv[1:]:
    try: print(name, m.version(name))
    except m.PackageNotFoundError: pass
`

// modules are the versions of the engines' modules in a Python.
func (s *search) modules(ctx context.Context, python string) map[string]string {
	if python == "" {
		return nil
	}
	if got, ok := s.asked[python]; ok {
		return got
	}
	argv := []string{python, "-c", metadata}
	for _, in := range installs() {
		if in.module != "" {
			argv = append(argv, in.module)
		}
	}
	out, _, err := s.Run(ctx, argv...)
	if err != nil && !errors.Is(err, hardware.ErrNoTool) {
		s.faults = append(s.faults, err)
	}
	got := map[string]string{}
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) == 2 {
			got[words[0]] = words[1]
		}
	}
	s.asked[python] = got
	return got
}

// wrapped is how a script names its interpreter where its path is long or has blanks.
var wrapped = regexp.MustCompile(`^'''exec' "?([^"\n]*?)"? "\$0"`)

// interpreter is the Python that a script on PATH is run by, "" where it is no script of Python's.
func (s *search) interpreter(path string) string {
	if path == "" {
		return ""
	}
	text, err := s.Read(path)
	if err != nil || !strings.HasPrefix(text, "#!") {
		return ""
	}
	line, rest, _ := strings.Cut(text[2:], "\n")
	if m := wrapped.FindStringSubmatch(rest); m != nil {
		return m[1]
	}
	words := strings.Fields(line)
	if len(words) > 1 && strings.HasSuffix(words[0], "/env") {
		words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") })
		if len(words) > 0 && strings.HasPrefix(words[0], "python") {
			return s.Find(words[0])
		}
		return ""
	}
	if len(words) == 0 || !strings.Contains(words[0], "python") {
		return ""
	}
	return words[0]
}
