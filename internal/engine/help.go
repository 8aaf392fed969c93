package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"perflab/internal/redact"
)

// Help is what an installed engine says of itself.
type Help struct {
	Engine  string   `json:"engine"`
	Version string   `json:"version,omitempty"` // by its own account; "" where it was not asked
	Flags   []string `json:"flags"`             // every spelling that its help lists, sorted
}

// HelpArgv is the command that prints all flags of an installed engine.
func (e *Engine) HelpArgv() []string {
	switch e.Name {
	case "vllm":
		return append(slices.Clone(e.launch), "--help=all") // the plain --help lists groups only
	case "trtllm":
		return append(slices.Clone(e.launch), "serve", "--help")
	}
	return append(slices.Clone(e.launch), "--help")
}

// VersionArgv is the command that prints the version of an installed engine, without
// loading more than it must.
func (e *Engine) VersionArgv() []string {
	switch e.Name {
	case "vllm":
		return []string{"vllm", "--version"}
	case "sglang":
		return []string{"python3", "-c", "import importlib.metadata as m; print(m.version('sglang'))"}
	case "trtllm":
		return []string{"python3", "-c", "import importlib.metadata as m; print(m.version('tensorrt_llm'))"}
	case "llamacpp": // which prints it as an error
		return []string{"sh", "-c", "exec " + strings.Join(e.launch, " ") + " --version 2>&1"}
	}
	return append(slices.Clone(e.launch), "--version")
}

var (
	buildLine   = regexp.MustCompile(`(?m)^version: (\d+) \(`)                                            // llama-server before its numbered releases
	versionLine = regexp.MustCompile(`(?m)^(?:\S+ +)?(?:version:? +)?v?(\d+(?:\.\w+)+(?:[-+][\w.]+)*)\b`) // the rest, and other lines around it
)

// ParseVersion finds the version in what VersionArgv prints. Lines that libraries print
// around it do no harm.
func (e *Engine) ParseVersion(text string) (version string, ok bool) {
	text = redact.Plain(text)
	if m := buildLine.FindStringSubmatch(text); m != nil {
		return "b" + m[1], true
	}
	for _, m := range versionLine.FindAllStringSubmatch(text, -1) {
		if _, ok := release(m[1]); ok {
			return m[1], true
		}
	}
	return "", false
}

// option is a spelling at the head of a line of help: -t, or --threads-batch.
var option = regexp.MustCompile(`^--?[A-Za-z][\w.-]*`)

// deepest is the indentation up to which a line may begin with an option; explanations
// stand further right.
const deepest = 8

// ParseHelp reads the flags out of an engine's own help, as argparse, click and
// llama-server lay it out, in colour or not. A text that is no help of the engine's serving command
// is an error.
func ParseHelp(e *Engine, text string) (Help, error) {
	h := Help{Engine: e.Name}
	for line := range strings.Lines(redact.Plain(text)) {
		head := strings.TrimLeft(line, " ")
		if len(line)-len(head) > deepest {
			continue
		}
		head = strings.TrimRight(head, " \r\n")
		for name := option.FindString(head); name != ""; name = option.FindString(head) {
			h.Flags = append(h.Flags, name)
			head = another(head[len(name):])
		}
	}
	h.Flags = append(h.Flags, h.hidden()...)
	slices.Sort(h.Flags)
	h.Flags = slices.Compact(h.Flags)
	if !h.lists(e, e.portFlag) {
		return Help{}, fmt.Errorf("read the flags of %s: this is not what %s prints, which lists %s", e.Title, strings.Join(e.HelpArgv(), " "), e.portFlag)
	}
	return h, nil
}

// hidden are the spellings that vLLM takes and from 0.33 on does not list: where one line
// has --enable-x and --disable-x, or the other way about, --no- before the first.
func (h Help) hidden() (names []string) {
	var first string
	for _, name := range h.Flags {
		on, yes := strings.CutPrefix(first, "--enable-")
		off, no := strings.CutPrefix(first, "--disable-")
		if h.Engine == "vllm" && (yes && name == "--disable-"+on || no && name == "--enable-"+off) {
			names = append(names, "--no-"+first[2:])
		}
		if strings.HasPrefix(name, "--") { // -ep stands between two of them
			first = name
		}
	}
	return names
}

// another is a further spelling in what follows one: behind a comma, or behind the slash
// of click's switches. Two spaces end the head, but those that only align the next
// spelling.
func another(rest string) string {
	for i := range len(rest) {
		switch {
		case rest[i] == ',':
			if next := strings.TrimLeft(rest[i+1:], " "); rest[i+1:] != next && strings.HasPrefix(next, "-") {
				return next
			}
		case strings.HasPrefix(rest[i:], " / -"):
			return rest[i+3:]
		case strings.HasPrefix(rest[i:], "  "):
			return ""
		}
	}
	return ""
}

// lists reports whether the help has the spelling as it stands.
func (h *Help) lists(e *Engine, name string) bool {
	_, found := slices.BinarySearch(h.Flags, e.cli.normal(name))
	return found
}

// match is what the engine's parser takes a spelling for: the flag itself, or, where there
// is none, every flag that begins so. argparse takes the beginning of a single one for it;
// click and llama.cpp take no beginnings.
func (h *Help) match(e *Engine, name string) (could []string) {
	name = e.cli.normal(name)
	i, found := slices.BinarySearch(h.Flags, name)
	if found {
		return []string{name}
	}
	for i < len(h.Flags) && strings.HasPrefix(h.Flags[i], name) && !e.cli.click && !e.cli.plain {
		could = append(could, h.Flags[i])
		i++
	}
	return could
}

// listed is the flags that a version is not known to lack, as its help would have them.
func (e *Engine) listed(version string) *Help {
	h := &Help{Engine: e.Name, Version: version}
	for _, f := range e.list().Flags {
		if !f.lacks(version) {
			h.Flags = slices.Concat(h.Flags, []string{f.Flag}, f.Aliases, f.Off)
		}
	}
	slices.Sort(h.Flags)
	return h
}

// Spellings are those of every flag of every known version.
func (e *Engine) Spellings() []string { return e.listed("").Flags }
