package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/engine"
	"perflab/internal/engine/logs"
)

type enginesFlags struct {
	version string
	all     bool
	json    bool
}

// NewEngines is perflab engines: what the catalogue knows of each engine.
func NewEngines(env console.Env) *cobra.Command {
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
				return console.WantArgs(1, "the name of one engine, or none")(c, args)
			case len(args) == 0 && (f.version != "" || f.all):
				return console.Usage(errors.New("--version and --all are of one engine: name it"))
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

func runEngines(env console.Env, f *enginesFlags, names []string) error {
	if f.version != "" && !strings.ContainsFunc(f.version, unicode.IsDigit) {
		return console.Usage(fmt.Errorf("--version %q is not a version: write one such as 0.17.1", f.version))
	}
	if len(names) > 0 {
		e, err := engine.ByName(names[0])
		if err != nil {
			return console.Usage(err)
		}
		s := f.sheet(e, false)
		if f.json {
			return console.WriteJSON(env.Stdout, s)
		}
		_, err = io.WriteString(env.Stdout, engineText(s, f.all))
		return err
	}
	var sheets []engineSheet
	for _, e := range engine.All() {
		sheets = append(sheets, f.sheet(e, true))
	}
	if f.json {
		return console.WriteJSON(env.Stdout, sheets)
	}
	_, err := io.WriteString(env.Stdout, enginesText(sheets))
	return err
}

// sheetWidth is how wide the catalogue's text is.
const sheetWidth = 100

// enginesText is the table of engines.
func enginesText(sheets []engineSheet) string {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "name\tengine\tversions known\tflags\tready\tport\tmetrics")
	for _, s := range sheets {
		flags := fmt.Sprint(s.FlagCount)
		if s.KeyCount > 0 {
			flags += fmt.Sprintf(" + %d keys", s.KeyCount)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", s.Name, s.Title, spanOf(s.Versions), flags, s.Health, s.Port, s.MetricsPath)
	}
	tw.Flush()
	return b.String()
}

// spanOf are versions on a line: all where they are few, else the first and the last.
func spanOf(versions []string) string {
	if n := len(versions); n > 4 {
		return versions[0] + " to " + versions[n-1]
	}
	return strings.Join(versions, ", ")
}

// engineText is one engine's page.
func engineText(s engineSheet, all bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", s.Title)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "  versions\t%s\n", spanOf(s.Versions))
	if s.Version != "" {
		fmt.Fprintf(tw, "  shown for\t%s\n", s.Version)
	}
	fmt.Fprintf(tw, "  ready\tGET %s answers 200 (port %d by default)\n", s.Health, s.Port)
	fmt.Fprintf(tw, "  metrics\t%s\n", s.MetricsPath)
	tw.Flush()
	b.WriteString("\nParameters, by the names that studies use\n")
	var none []string
	for _, p := range s.Params {
		if len(p.Flags) == 0 && p.Doc == s.Title+" has no such setting." {
			none = append(none, p.Name)
			continue
		}
		p.text(&b)
	}
	if len(none) > 0 {
		line(&b, 2, fmt.Sprintf("%s has no setting for %s.", s.Title, strings.Join(none, ", ")))
	}
	which := "that bear on performance (all: --all)"
	if all {
		which = "of every kind"
	}
	flagsText(&b, fmt.Sprintf("Flags %s", which), s.Flags, s.Version)
	flagsText(&b, fmt.Sprintf("Keys of the configuration file %s", which), s.Keys, s.Version)
	b.WriteString("\nMetrics that telemetry reads, by their common names\n")
	tw = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(s.Metrics)) {
		fmt.Fprintf(tw, "  %s\t%s\n", name, strings.Join(s.Metrics[name], ", "))
	}
	tw.Flush()
	b.WriteString("\nFailures, as its log tells them\n")
	for _, f := range s.Failures {
		line(&b, 2, fmt.Sprintf("%-13s %s: %s", f.Class, f.Kind, f.Doc))
	}
	return b.String()
}

func (p paramSheet) text(b *strings.Builder) {
	how := strings.Join(slices.Concat(p.Flags, p.Off), ", ")
	line(b, 2, fmt.Sprintf("%-27s %s", p.Name, cmp.Or(how, "no flag of its own")))
	line(b, 6, facts(defaultText(p.Default, ""), tryText(p.Try)))
	line(b, 6, p.Doc)
}

// defaultText says what holds where no value is given.
func defaultText(value, note string) string {
	switch {
	case value != "" && note != "":
		return fmt.Sprintf("default %s (%s)", value, note)
	case value != "":
		return "default " + value
	case note != "":
		return "default: " + note
	}
	return ""
}

// flagsText lists flags under the headings of their groups.
func flagsText(b *strings.Builder, heading string, flags []engine.Flag, version string) {
	if len(flags) == 0 {
		return
	}
	groups := map[string][]engine.Flag{}
	for _, f := range flags {
		groups[f.Group] = append(groups[f.Group], f)
	}
	fmt.Fprintf(b, "\n%s\n", heading)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(b, "\n %s\n", group)
		for _, f := range groups[group] {
			flagText(b, f, version)
		}
	}
}

// facts joins those that there are.
func facts(each ...string) string {
	return strings.Join(slices.DeleteFunc(each, func(s string) bool { return s == "" }), "; ")
}

func tryText(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return "try " + strings.Join(values, " ")
}

// versionText says which of the known versions have the flag, where not all do.
func versionText(f engine.Flag) string {
	switch {
	case f.Since != "" && f.Until != "":
		return fmt.Sprintf("versions %s to %s", f.Since, f.Until)
	case f.Since != "":
		return "from version " + f.Since
	case f.Until != "":
		return "up to version " + f.Until
	}
	return ""
}

// flagText is one flag. What is said of its parameter is not said again.
func flagText(b *strings.Builder, f engine.Flag, version string) {
	head := strings.Join(slices.Concat([]string{f.Flag}, f.Aliases, f.Off), ", ")
	if f.Kind != engine.Bool {
		head += "  " + string(f.Kind)
	}
	since := versionText(f)
	if version != "" {
		since = ""
	}
	line(b, 2, head)
	if f.Param != "" {
		line(b, 6, facts("the parameter "+f.Param, since))
	} else {
		line(b, 6, f.Doc)
		line(b, 6, facts(defaultText(f.Default, f.Note), tryText(f.Try), since))
	}
	if len(f.Choices) > 0 && f.Kind == engine.Choice {
		line(b, 6, "one of "+strings.Join(f.Choices, " "))
	}
	for _, w := range f.With {
		line(b, 6, fmt.Sprintf("with %s: %s", w.Flag, w.Why))
	}
}

// line writes text at an indentation, broken at spaces where it is too wide.
func line(b *strings.Builder, indent int, text string) {
	pad := strings.Repeat(" ", indent)
	for text = strings.TrimRight(text, " "); text != ""; {
		cut := len(text)
		if room := sheetWidth - len(pad); cut > room {
			cut = strings.LastIndexByte(text[:room+1], ' ')
			if cut <= 0 { // one long word
				cut = len(text)
				if i := strings.IndexByte(text, ' '); i > 0 {
					cut = i
				}
			}
		}
		fmt.Fprintf(b, "%s%s\n", pad, strings.TrimRight(text[:cut], " "))
		text = strings.TrimLeft(text[cut:], " ")
		pad = strings.Repeat(" ", indent+2)
	}
}
