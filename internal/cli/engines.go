package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"perflab/internal/engine"
	"perflab/internal/engine/logs"
)

type enginesFlags struct {
	version string
	all     bool
	json    bool
}

func newEngines(env Env) *cobra.Command {
	f := &enginesFlags{}
	c := &cobra.Command{
		Use:   "engines [NAME]",
		Short: "Show what is known of the engines: parameters, flags, versions",
		Long: `Show the catalogue of engines. Of one engine: the parameters by the names that
studies and perflab's own flags use, with the engine's flag, default and values
worth trying; then its flags that bear on performance, with type, default, the
versions that have them and the flags that they have to be seen with; then its
metrics, and the classes of failures that are told apart. It is some pages long.

Flags were read from the engines' sources for the versions that are named; a
version between two of them counts as the older one, a newer one as the newest.
--version V leaves out what V does not have.`,
		Example: `  perflab engines
  perflab engines vllm | less
  perflab engines sglang --version 0.5.9
  perflab engines trtllm --all --json`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return wantArgs(1, "the name of one engine, or none")(c, args)
			case len(args) == 0 && (f.version != "" || f.all):
				return usageError{errors.New("--version and --all are of one engine: name it")}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return runEngines(env, f, args) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.version, "version", "", "show what this version of the engine has, such as 0.17.1")
	fs.BoolVar(&f.all, "all", false, "show all flags, not only those that bear on performance")
	fs.BoolVar(&f.json, "json", false, "print JSON")
	return c
}

// engineSheet is an engine as it is shown.
type engineSheet struct {
	Name        string              `json:"name"`
	Title       string              `json:"title"`
	Versions    []string            `json:"versions"`
	Version     string              `json:"version,omitempty"` // that was asked for
	Health      string              `json:"ready_path"`
	Port        int                 `json:"port"`
	MetricsPath string              `json:"metrics_path"`
	FlagCount   int                 `json:"flags_known"`
	KeyCount    int                 `json:"keys_known,omitempty"` // of the configuration file
	Metrics     map[string][]string `json:"metrics,omitempty"`    // common name -> the engine's own, newest spelling first
	Failures    []failureSheet      `json:"failures,omitempty"`
	Params      []paramSheet        `json:"parameters,omitempty"`
	Flags       []engine.Flag       `json:"flags,omitempty"`
	Keys        []engine.Flag       `json:"keys,omitempty"`
}

// failureSheet is a class of what an engine's log says when it fails.
type failureSheet struct {
	Class  string `json:"class"`
	Kind   string `json:"kind"`
	Doc    string `json:"doc"`
	Advice string `json:"advice,omitempty"`
}

type paramSheet struct {
	Name    string      `json:"name"`
	Flags   []string    `json:"flags,omitempty"`
	Off     []string    `json:"off,omitempty"`
	Kind    engine.Kind `json:"kind"`
	Default string      `json:"default,omitempty"`
	Try     []string    `json:"try,omitempty"`
	Doc     string      `json:"doc"`
}

// sheet is what the engines command shows of an engine; outline leaves out its lists.
func (f *enginesFlags) sheet(e *engine.Engine, outline bool) engineSheet {
	s := engineSheet{
		Name: e.Name, Title: e.Title, Versions: e.Versions(), Version: f.version, Health: e.Health, Port: e.DefaultPort,
		MetricsPath: e.MetricsPath, FlagCount: len(e.Flags()), KeyCount: len(e.Keys()),
	}
	if outline {
		return s
	}
	s.Metrics = e.Metrics
	for _, c := range logs.FailureClasses() {
		s.Failures = append(s.Failures, failureSheet{c.Name, string(c.Kind), c.Doc, c.Advice})
	}
	shown := func(fl engine.Flag) bool { return (f.all || fl.Relevant) && fl.In(f.version) }
	for _, fl := range e.Flags() {
		if shown(fl) {
			s.Flags = append(s.Flags, fl)
		}
	}
	for _, k := range e.Keys() {
		if shown(k) {
			s.Keys = append(s.Keys, k)
		}
	}
	for i := range e.Params {
		p := &e.Params[i]
		row := paramSheet{Name: p.Name, Flags: p.Flags, Off: p.Off, Kind: p.Kind, Default: p.Default, Try: p.Ladder, Doc: p.Doc}
		has := true
		for _, fl := range e.Flags() {
			if len(p.Flags) > 0 && (fl.Flag == p.Flags[0] || slices.Contains(fl.Aliases, p.Flags[0])) {
				has = fl.In(f.version)
			}
		}
		if has {
			s.Params = append(s.Params, row)
		}
	}
	return s
}

func runEngines(env Env, f *enginesFlags, names []string) error {
	if f.version != "" && !strings.ContainsFunc(f.version, unicode.IsDigit) {
		return usageError{fmt.Errorf("--version %q is not a version: write one such as 0.17.1", f.version)}
	}
	if len(names) > 0 {
		e, err := engine.ByName(names[0])
		if err != nil {
			return usageError{err}
		}
		s := f.sheet(e, false)
		if f.json {
			return writeJSON(env.Stdout, s)
		}
		_, err = io.WriteString(env.Stdout, engineText(s, f.all))
		return err
	}
	var sheets []engineSheet
	for _, e := range engine.All() {
		sheets = append(sheets, f.sheet(e, true))
	}
	if f.json {
		return writeJSON(env.Stdout, sheets)
	}
	_, err := io.WriteString(env.Stdout, enginesText(sheets))
	return err
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
