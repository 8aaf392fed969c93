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
	slices.Sort(h.Flags)
	h.Flags = slices.Compact(h.Flags)
	if !h.has(e, e.portFlag) {
		return Help{}, fmt.Errorf("read the flags of %s: this is not what %s prints, which lists %s", e.Title, strings.Join(e.HelpArgv(), " "), e.portFlag)
	}
	return h, nil
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

// has reports whether the help lists the spelling, or for argparse one that begins with it.
func (h Help) has(e *Engine, name string) bool {
	if e.cli.underscores && strings.HasPrefix(name, "--") {
		name = strings.ReplaceAll(name, "_", "-")
	}
	i, found := slices.BinarySearch(h.Flags, name)
	if found || !e.cli.underscores || !strings.HasPrefix(name, "--") {
		return found
	}
	return i < len(h.Flags) && strings.HasPrefix(h.Flags[i], name)
}

// Unknown says by a *Rejection which flag of a command the installed engine does not have.
func (h Help) Unknown(c Command) *Rejection {
	e, err := ByName(c.Engine)
	if err != nil || c.Engine != h.Engine {
		return nil
	}
	var rej *Rejection
	c.spelled(e, func(name string, ref flagRef) {
		if rej != nil || h.has(e, name) {
			return
		}
		rej = &Rejection{Rule: "version", Reason: h.sentence(e, name, ref), Log: e.cli.unknown(name).Error()}
	})
	return rej
}

// sentence says that a flag is missing, and what helps: another spelling of it that is
// there, or the versions that have it.
func (h Help) sentence(e *Engine, name string, ref flagRef) string {
	who := "this " + e.Title
	if h.Version != "" {
		who += fmt.Sprintf(" (%s by its own account)", h.Version)
	}
	s := fmt.Sprintf("%s has no flag %s", who, name)
	spellings := append([]string{ref.def.Flag}, ref.def.Aliases...)
	if ref.off {
		spellings = ref.def.Off
	}
	for _, other := range spellings {
		if h.has(e, other) {
			return s + ": write " + other
		}
	}
	if p := ref.def.presence(); p != "" {
		s += ": " + p
	}
	return s
}
