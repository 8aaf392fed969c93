package audit

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/interop"
)

// Engines as commands and headings name them.
const (
	engineVLLM   = "vllm"
	engineSGLang = "sglang"
	engineTRTLLM = "trtllm"
	engineMindIE = "mindie"
)

// engineNames are the spellings of engines in prose; the key is ours.
var engineNames = []struct{ engine, spelling string }{
	{engineVLLM, "vllm"}, {engineSGLang, "sglang"},
	{engineTRTLLM, "tensorrt-llm"}, {engineTRTLLM, "tensorrt llm"}, {engineTRTLLM, "trt-llm"}, {engineTRTLLM, "trtllm"},
	{engineMindIE, "mindie"}, {"lmdeploy", "lmdeploy"}, {"tgi", "text-generation-inference"}, {"llamacpp", "llama.cpp"},
}

// enginesNamed returns the engines that a text names, each once.
func enginesNamed(text string) []string {
	var out []string
	lower := strings.ToLower(text)
	for _, e := range engineNames {
		if strings.Contains(lower, e.spelling) && !slices.Contains(out, e.engine) {
			out = append(out, e.engine)
		}
	}
	return out
}

// engineTitle is an engine's name as its makers write it.
func engineTitle(engine string) string {
	titles := map[string]string{engineVLLM: "vLLM", engineSGLang: "SGLang", engineTRTLLM: "TensorRT-LLM", engineMindIE: "MindIE"}
	if t, ok := titles[engine]; ok {
		return t
	}
	return engine
}

// served is what a serving command says: the words of it, compared by meaning
// as far as every engine spells it alike.
type served struct {
	engine string            // "" where only flags are shown
	model  string            // as written; "" where only flags are shown
	flags  map[string]string // by normal name; "" for a flag without a value
	as     map[string]string // the names as written, by normal name
	vague  string            // a caption that tells the run apart without naming a flag
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

// apiFlags shape answers, and are no step of a tuning.
var apiFlags = []string{"chat-template", "reasoning-parser", "tool-call-parser", "enable-auto-tool-choice", "tokenizer-mode"}

// flagName returns the normal name of a flag as written.
func flagName(word string) string {
	name := strings.ReplaceAll(strings.ToLower(strings.TrimLeft(word, "-–—")), "_", "-")
	if a, ok := flagAliases[name]; ok {
		return a
	}
	return name
}

// isFlag reports whether a word is a flag and not a value such as -1.
func isFlag(word string) bool {
	name := strings.TrimLeft(word, "-–—")
	return len(name) < len(word) && name != "" && (name[0] < '0' || name[0] > '9') && name[0] != '.'
}

// envName matches an assignment before a command.
var envName = lazily(`^([A-Z][A-Z0-9_]*)=(.*)$`)

// typographic turns quotes of print into spaces, for reading what they hold.
var typographic = strings.NewReplacer("“", " ", "”", " ", "„", " ", "‘", " ", "’", " ")

// commandWords splits a command into words without quotes. A command inside
// another's argument, as in bash -c "vllm serve ...", is split too.
func commandWords(text string) []string {
	var out []string
	for _, w := range shellWords(typographic.Replace(text)) {
		t := w.text()
		if strings.ContainsRune(t, ' ') && (strings.Contains(t, " serve ") || strings.Contains(t, "launch_server") || strings.Contains(t, "trtllm-serve ")) {
			out = append(out, strings.Fields(t)...)
			continue
		}
		out = append(out, t)
	}
	return out
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
				return engineTRTLLM, i + 2
			}
			return engineTRTLLM, i + 1
		case strings.HasSuffix(w, "sglang.launch_server") || strings.HasSuffix(w, "sglang_router.launch_server"):
			return engineSGLang, i + 1
		case strings.Contains(w, "vllm.entrypoints"):
			return engineVLLM, i + 1
		}
	}
	return "", -1
}

// readSetup reads a serving command or the flags of one.
func readSetup(text string) served {
	words := commandWords(text)
	s := served{flags: map[string]string{}, as: map[string]string{}}
	engine, args := commandStart(words)
	s.engine = engine
	for _, w := range words[:max(args, 0)] {
		if m := envName().FindStringSubmatch(w); m != nil {
			s.flags[m[1]] = m[2]
		}
	}
	words = words[max(args, 0):]
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !isFlag(w) {
			if s.model == "" && engine != "" {
				s.model = w
			}
			continue
		}
		name, value, given := strings.Cut(w, "=")
		if !given && i+1 < len(words) && !isFlag(words[i+1]) {
			value = words[i+1]
			i++
		}
		s.set(flagName(name), value)
		s.as[flagName(name)] = strings.TrimLeft(name, "-–—")
	}
	return s
}

// maxFlags bounds the flags that are read of one command.
const maxFlags = 256

// set records one flag.
func (s *served) set(name, value string) {
	switch {
	case len(s.flags) == maxFlags:
	case name == "model":
		s.model = value
	case slices.Contains(quietFlags, name):
	case name == "tp" || name == "pp" || name == "dp":
		if value != "1" {
			s.flags[name] = value
		}
	default:
		s.flags[name] = strings.NewReplacer(`"`, "", "'", "", " ", "").Replace(value)
	}
}

// modelBase is a model's name without its owner or directory, in lower case.
func modelBase(model string) string {
	if model == "" {
		return ""
	}
	return strings.ToLower(path.Base(model))
}

// key is equal for two setups that say the same, spelling apart.
func (s served) key() string {
	var b strings.Builder
	b.WriteString(s.engine + "\x00" + modelBase(s.model) + "\x00" + s.vague)
	for _, name := range slices.Sorted(maps.Keys(s.flags)) {
		b.WriteString("\x00" + name + "=" + s.flags[name])
	}
	return b.String()
}

// layoutFlags spread the work over devices, and are changed together.
var layoutFlags = []string{"tp", "pp", "dp", "dcp", "nnodes", "enable-dp-attention"}

// feature returns what a flag belongs to: flags of one feature are one change.
func feature(flag string) string {
	switch {
	case slices.Contains(layoutFlags, flag):
		return "layout"
	case flag == "ep":
		return "expert parallelism"
	case strings.HasPrefix(flag, "speculative-") || flag == "num-speculative-tokens":
		return "speculative decoding"
	case strings.Contains(flag, "attention-backend") || strings.HasPrefix(flag, "nsa-") || strings.HasSuffix(flag, "ATTENTION_BACKEND"):
		return "attention backend"
	case strings.ToUpper(flag) == flag:
		return flag // a variable of the environment
	}
	return "--" + flag
}

// describe writes the flags of a feature, "tp 4", by their normal names and as
// they were written; "" for none.
func (s served) describe(want string) (normal, written string) {
	var all, as []string
	for _, name := range slices.Sorted(maps.Keys(s.flags)) {
		if feature(name) == want {
			all = append(all, strings.TrimSpace(name+" "+s.flags[name]))
			as = append(as, strings.TrimSpace(cmp.Or(s.as[name], name)+" "+s.flags[name]))
		}
	}
	return strings.Join(all, " "), strings.Join(as, " ")
}

// diff is one difference between two setups.
type diff struct{ feature, text string }

// option is what was changed, as it was written, without its value.
func (d diff) option() string {
	if d.feature == "model" {
		_, to, _ := strings.Cut(d.text, " -> ")
		return "model " + to
	}
	if strings.HasPrefix(d.feature, "--") {
		name, _, _ := strings.Cut(d.text, " ")
		return name
	}
	return d.feature
}

// texts are the differences in words.
func texts(diffs []diff) []string {
	var out []string
	for _, d := range diffs {
		out = append(out, d.text)
	}
	return out
}

// changes lists what differs from a to b, one entry a feature; flags of the
// answers' shape only where all is asked for.
func changes(a, b served, all bool) []diff {
	var out []diff
	if a.engine != "" && b.engine != "" && a.engine != b.engine {
		out = append(out, diff{"engine", "engine " + engineTitle(a.engine) + " -> " + engineTitle(b.engine)})
	}
	if a.model != "" && b.model != "" && modelBase(a.model) != modelBase(b.model) {
		out = append(out, diff{"model", "model " + a.model + " -> " + b.model})
	}
	for _, f := range differing(a, b, all) {
		was, wasAs := a.describe(f)
		if is, isAs := b.describe(f); was != is {
			out = append(out, diff{f, change(f, wasAs, isAs)})
		}
	}
	if a.vague != b.vague {
		out = append(out, diff{"case", change("case", a.vague, b.vague)})
	}
	return out
}

// differing are the features that two setups have different flags of, in
// order.
func differing(a, b served, all bool) []string {
	var out []string
	for _, pair := range [][2]served{{a, b}, {b, a}} {
		for name, value := range pair[0].flags {
			if other, ok := pair[1].flags[name]; ok && other == value || !all && slices.Contains(apiFlags, name) {
				continue
			}
			if f := feature(name); !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	slices.Sort(out)
	return out
}

// differs names the flags in which two commands differ, flag by flag where
// changes goes by features; those that only shape answers do not count.
func (s served) differs(o served) []string {
	if s.engine != o.engine && s.engine != "" && o.engine != "" {
		return []string{"the engine"} // their flags do not compare
	}
	var out []string
	if modelBase(s.model) != modelBase(o.model) && s.model != "" && o.model != "" {
		out = append(out, "the model ("+path.Base(o.model)+", "+path.Base(s.model)+")")
	}
	all := maps.Clone(o.flags)
	maps.Copy(all, s.flags)
	for _, name := range sortedKeys(all) {
		a, inS := s.flags[name]
		b, inO := o.flags[name]
		if slices.Contains(apiFlags, name) || inS == inO && a == b {
			continue
		}
		if written := cmp.Or(s.as[name], o.as[name]); written != "" {
			name = "--" + written // else it is of the environment
		}
		out = append(out, name)
	}
	return out
}

// shares counts the flags that two commands have in common.
func (s served) shares(o served) int {
	n := 0
	for name, value := range s.flags {
		if v, ok := o.flags[name]; ok && v == value {
			n++
		}
	}
	return n
}

// says reports whether a command names a model or any flag.
func (s served) says() bool { return s.model != "" || len(s.flags) > 0 }

// gpus is the number of GPUs that the command starts an engine on, 0 where it
// does not say. SGLang's data parallelism for attention shares the GPUs of the
// tensor parallelism.
func (s served) gpus() int {
	n := 1
	for _, name := range []string{"tp", "pp", "dp"} {
		text, ok := s.flags[name]
		if _, attention := s.flags["enable-dp-attention"]; !ok || name == "dp" && attention {
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

// change writes one difference.
func change(feature, was, is string) string {
	flag := strings.HasPrefix(feature, "--")
	switch {
	case was == "" && flag:
		return "--" + is + " added"
	case is == "" && flag:
		return "--" + was + " dropped"
	case flag:
		_, value, _ := strings.Cut(is, " ")
		return "--" + was + " -> " + value
	case was == "":
		return feature + " added (" + is + ")"
	case is == "":
		return feature + " dropped (" + was + ")"
	}
	return feature + " " + was + " -> " + is
}

// captionFlags are the flags that a caption or comment names, "" for none.
func captionFlags(caption string) map[string]string {
	if !strings.Contains(caption, "--") {
		return nil
	}
	_, rest, _ := strings.Cut(" "+caption, " --")
	s := readSetup("--" + rest)
	return s.flags
}

// exported are the assignments that stand directly above a script's line.
func exported(doc *interop.Document, line int) map[string]string {
	var out map[string]string
	for i := line - 2; i >= 0 && i < len(doc.Lines) && line-i < 16; i-- {
		l := strings.TrimSpace(doc.Lines[i])
		rest, ok := strings.CutPrefix(l, "export ")
		if !ok && !strings.HasPrefix(l, "# ") {
			break
		}
		if name, value, found := strings.Cut(rest, "="); ok && found {
			if out == nil {
				out = map[string]string{}
			}
			out[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return out
}
