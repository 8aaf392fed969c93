// Package command reads the command lines that documents show: into words as a
// shell splits them, and into the engine or load that they ask for.
//
//	s := command.Read("vllm serve acme/Model-7B -tp 4") // s.Engine is "vllm", s.Flags["tp"] is "4"
//
// Invariants: no text makes a reader fail. Spellings of one flag have one name,
// and a size of parallelism of 1 is left out, so that two setups that say the
// same are equal.
//
// Deliberately absent: which flags an engine knows (package engine), and what
// is wrong with a command (package audit/document).
package command

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Setup is what a serving command says: the words of it, compared by meaning
// as far as every engine spells it alike.
type Setup struct {
	Engine  string            // "" where only flags are shown
	Model   string            // as written; "" where only flags are shown
	Flags   map[string]string // by normal name; "" for a flag without a value
	written map[string]string // the names as written, by normal name
	Case    string            // a caption that tells the run apart without naming a flag
}

// Words are the flags of a command as they were written, each with its value; the variables of its
// environment by their names.
func (s Setup) Words() map[string]string {
	out := map[string]string{}
	for name, value := range s.Flags {
		if written := s.written[name]; written != "" {
			name = "--" + written
		}
		out[name] = value
	}
	return out
}

// flagAliases are names of one thing; the value is the normal name.
var flagAliases = map[string]string{
	"tensor-parallel-size": "tp", "tp-size": "tp", "pipeline-parallel-size": "pp", "pp-size": "pp",
	"data-parallel-size": "dp", "dp-size": "dp", "ep-size": "ep", "expert-parallel-size": "ep",
	"decode-context-parallel-size": "dcp", "enable-expert-parallel": "ep",
	"max-seq-len": "max-model-len", "context-length": "max-model-len",
	"model-path": "model", "speculative-draft-model-path": "speculative-draft-model",
	"max-num-tokens": "max-num-batched-tokens",
}

// quietFlags change neither the work nor the speed of an engine.
var quietFlags = []string{"host", "port", "served-model-name", "trust-remote-code", "download-dir", "api-key", "uvicorn-log-level",
	"disable-log-requests", "disable-log-stats", "log-level"}

// FlagName returns the normal name of a flag as written.
func FlagName(word string) string {
	name := strings.ReplaceAll(strings.ToLower(strings.TrimLeft(word, "-–—")), "_", "-")
	if a, ok := flagAliases[name]; ok {
		return a
	}
	return name
}

// IsFlag reports whether a word is a flag and not a value such as -1.
func IsFlag(word string) bool {
	name := strings.TrimLeft(word, "-–—")
	return len(name) < len(word) && name != "" && (name[0] < '0' || name[0] > '9') && name[0] != '.'
}

// assignment splits NAME=value, which sets a variable of the environment.
func assignment(word string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(word, "=")
	return name, value, ok && name != "" && name[0] >= 'A' && name[0] <= 'Z' && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == ""
}

// IsAssignment reports whether a word sets a variable: NAME=value.
func IsAssignment(word string) bool {
	_, _, ok := assignment(word)
	return ok
}

// commandStart finds the words that start an engine: the engine, and where its
// arguments begin; -1 where there is none.
func commandStart(words []string) (engine string, args int) {
	for i, w := range words {
		base := path.Base(w)
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch {
		case next == "serve" && (base == "vllm" || base == "sglang" || base == "mindie"):
			return base, i + 2
		case base == "trtllm-serve":
			if next == "serve" {
				return TRTLLM, i + 2
			}
			return TRTLLM, i + 1
		case strings.HasSuffix(w, "sglang.launch_server") || strings.HasSuffix(w, "sglang_router.launch_server"):
			return SGLang, i + 1
		case strings.Contains(w, "vllm.entrypoints"), strings.Contains(w, "vllm/vllm-openai") && (next == "" || IsFlag(next) || strings.Contains(next, "/")):
			return VLLM, i + 1 // the image starts the server
		}
	}
	return "", -1
}

// Read reads a serving command or the flags of one.
func Read(text string) Setup {
	words := Words(text)
	s := Setup{Flags: map[string]string{}, written: map[string]string{}}
	engine, args := commandStart(words)
	s.Engine = engine
	for _, w := range words[:max(args, 0)] { // where it runs and what it is loaded from is no part of how it serves
		if name, value, ok := assignment(w); ok && !strings.HasSuffix(name, "_VISIBLE_DEVICES") && !strings.HasPrefix(name, "HF_") {
			s.Flags[name] = value
		}
	}
	words = words[max(args, 0):]
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !IsFlag(w) {
			if s.Model == "" && engine != "" {
				s.Model = w
			}
			continue
		}
		name, value, given := strings.Cut(w, "=")
		if !given && i+1 < len(words) && !IsFlag(words[i+1]) {
			value = words[i+1]
			i++
		}
		s.set(FlagName(name), value)
		s.written[FlagName(name)] = strings.TrimLeft(name, "-–—")
	}
	return s
}

// maxFlags bounds the flags that are read of one command.
const maxFlags = 256

// set records one flag.
func (s *Setup) set(name, value string) {
	switch {
	case len(s.Flags) == maxFlags:
	case name == "model":
		s.Model = value
	case slices.Contains(quietFlags, name):
	case name == "tp" || name == "pp" || name == "dp":
		if value != "1" {
			s.Flags[name] = value
		}
	default:
		s.Flags[name] = strings.NewReplacer(`"`, "", "'", "", " ", "").Replace(value)
	}
}

// Key is equal for two setups that say the same, spelling apart.
func (s Setup) Key() string {
	var b strings.Builder
	b.WriteString(s.Engine + "\x00" + modelBase(s.Model) + "\x00" + s.Case)
	for _, name := range slices.Sorted(maps.Keys(s.Flags)) {
		b.WriteString("\x00" + name + "=" + s.Flags[name])
	}
	return b.String()
}

// Known reports whether a command names a model or any flag.
func (s Setup) Known() bool { return s.Model != "" || len(s.Flags) > 0 }

// GPUs is the number of GPUs that the command starts an engine on, 0 where it
// does not say. SGLang's data parallelism for attention shares the GPUs of the
// tensor parallelism.
func (s Setup) GPUs() int {
	n := 1
	for _, name := range []string{"tp", "pp", "dp"} {
		text, ok := s.Flags[name]
		if _, attention := s.Flags["enable-dp-attention"]; !ok || name == "dp" && attention {
			continue
		}
		v, err := strconv.Atoi(text)
		if err != nil || v < 1 || v > 1<<12 {
			return 0
		}
		n *= v
	}
	return n
}

// CaptionFlags are the flags that a caption or comment names, "" for none.
func CaptionFlags(caption string) map[string]string {
	if !strings.Contains(caption, "--") {
		return nil
	}
	_, rest, _ := strings.Cut(" "+caption, " --")
	s := Read("--" + rest)
	return s.Flags
}

// Layout are the sizes of a command's parallelism; an expert parallelism of
// -1 is on with a size that is not known here.
func Layout(w Setup) map[string]int {
	have := map[string]int{"tp": 1, "pp": 1, "dp": 1, "dcp": 1, "ep": 1}
	for name := range maps.Clone(have) {
		text, ok := w.Flags[name]
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			have[name] = n
		} else if ok && text != "" {
			have[name] = -1
		}
	}
	if text, ok := w.Flags["ep"]; ok && text == "" {
		have["ep"] = have["tp"] * have["dp"]
	}
	if _, ok := w.Flags["enable-ep-moe"]; ok {
		have["ep"] = have["tp"]
	}
	if b := w.Flags["moe-a2a-backend"]; b != "" && b != "none" {
		have["ep"] = -1
	}
	return have
}
