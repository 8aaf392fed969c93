package interop

import (
	"cmp"
	"slices"
	"strings"

	"perflab/internal/interop/command"
	"perflab/internal/interop/markdown"
)

// commandWords are found in command lines, benchmarks first: "vllm bench
// serve" has no word of a server's, but "docker exec server vllm bench" may.
var commandWords = []struct{ words, kind, engine string }{
	{"vllm bench", ScriptBenchmark, ""},
	{"vllm-bench", ScriptBenchmark, ""},
	{"benchmark_serving", ScriptBenchmark, ""},
	{"guidellm", ScriptBenchmark, ""},
	{"sglang.bench", ScriptBenchmark, ""},
	{"genai-bench", ScriptBenchmark, ""},
	{"genai-perf", ScriptBenchmark, ""},
	{"aiperf", ScriptBenchmark, ""},
	{"inference-perf", ScriptBenchmark, ""},
	{"benchmark-runner", ScriptBenchmark, ""},
	{"evalscope", ScriptBenchmark, ""},
	{"perflab bench", ScriptBenchmark, ""},
	{"vllm serve", ScriptServing, "vllm"},
	{"vllm.entrypoints", ScriptServing, "vllm"},
	{"sglang.launch_server", ScriptServing, "sglang"},
	{"sglang serve", ScriptServing, "sglang"},
	{"trtllm-serve", ScriptServing, "trtllm"},
	{"llama-server", ScriptServing, "llamacpp"},
	{"mindie serve", ScriptServing, "mindie"},
	{"lmdeploy serve", ScriptServing, "lmdeploy"},
	{"text-generation-launcher", ScriptServing, "tgi"},
	{"vllm/vllm-openai", ScriptServing, "vllm"},
	{"lmsysorg/sglang", ScriptServing, "sglang"},
}

// kindOf returns what a command starts, and which engine if it is one.
func kindOf(command string) (kind, engine string) {
	low := squeeze(command)
	for _, c := range commandWords {
		if strings.Contains(low, c.words) {
			return c.kind, c.engine
		}
	}
	return ScriptOther, ""
}

// starters are the first words of the lines that are taken for commands
// outside fences.
var starters = []string{"vllm", "python", "python3", "docker", "podman", "sudo", "sglang", "trtllm-serve", "llama-server", "guidellm",
	"genai-bench", "genai-perf", "aiperf", "perflab", "mindie", "lmdeploy", "nerdctl", "srun", "ray", "mpirun"}

// isCommand reports whether a line of text is a command, and no sentence about
// one.
func isCommand(line string) bool {
	f := strings.Fields(line)
	i := 0
	for i < len(f) && command.IsAssignment(f[i]) {
		i++
	}
	if i >= len(f) || !slices.Contains(starters, f[i]) || len(f) < 3 {
		return false
	}
	kind, _ := kindOf(line)
	return kind != ScriptOther && slices.ContainsFunc(f[i:], command.IsFlag)
}

// commandOf takes a script apart.
func commandOf(s *Script) *shownCommand {
	c := &shownCommand{text: strings.Join(strings.Fields(s.Text), " "), role: cmp.Or(roleOf(s.Caption), roleOf(s.Note))}
	if _, rest, ok := strings.Cut(c.text, "“"); ok {
		if inner, _, ok := strings.Cut(rest, "”"); ok {
			c.text = inner
		}
	}
	ws := command.Words(c.text)
	c.template = len(c.text) < maxTemplate && slices.ContainsFunc(ws, isPlaceholder)
	_, c.engine = kindOf(c.text)
	c.engine = cmp.Or(c.engine, engineOfFlags(ws))
	c.version = imageTag(ws)
	if m := modelOf(c.text); !isPlaceholder(m) {
		c.model = m
	}
	return c
}

// command reads a command line in the text, with its continuation lines, and
// returns how many lines it has; 0 for none.
func (s *scanner) command(lines []string, line string) int {
	line = strings.Trim(strings.TrimPrefix(strings.TrimLeft(line, "-*• \t"), "$ "), "`")
	if !isCommand(line) {
		return 0
	}
	took, parts := 1, []string{line}
	for strings.HasSuffix(parts[took-1], `\`) && took < len(lines) && strings.TrimSpace(lines[took]) != "" {
		parts[took-1] = strings.TrimSpace(strings.TrimSuffix(parts[took-1], `\`))
		parts = append(parts, strings.TrimSpace(markdown.Unquote(lines[took])))
		took++
	}
	line = strings.Join(parts, " ")
	kind, _ := kindOf(line)
	c := Script{Place: Place{s.name, s.n, s.n + took - 1, s.section()}, Kind: kind, Caption: s.caption, Text: line}
	s.doc.Scripts = append(s.doc.Scripts, c)
	s.events = append(s.events, event{line: c.Line, script: &c})
	return took
}

// scripts returns the commands of a fence, without their sections.
func (f *fence) scripts() []Script {
	switch f.info {
	case "", "bash", "sh", "shell", "console", "zsh", "shell-session", "shellsession", "text", "txt", "cmd", "powershell":
	default:
		return nil
	}
	var all []Script
	var note []string
	var parts []string
	begin, joined := 0, false
	end := func(last int) {
		if len(parts) > 0 {
			c := Script{Place: Place{Line: begin, End: last}, Caption: f.caption, Text: strings.Join(parts, " "), Note: strings.Join(note, "; ")}
			if f.classify(&c) {
				all = append(all, c)
			}
			note = nil
		}
		parts, joined = nil, false
	}
	last := f.line
	for _, l := range f.lines {
		line := strings.TrimPrefix(l.Text, "$ ")
		switch {
		case line == "":
			end(last)
			continue
		case strings.HasPrefix(line, "#") && !joined:
			end(last)
			note = append(note, strings.TrimSpace(strings.TrimLeft(line, "#")))
			continue
		case !joined && !strings.HasPrefix(line, "-"):
			end(last)
		}
		if len(parts) == 0 {
			begin = l.Line
		}
		rest, more := strings.CutSuffix(line, `\`)
		parts = append(parts, strings.TrimSpace(rest))
		joined, last = more, l.Line
	}
	end(last)
	return all
}

// classify sets the kind of a script, and reports whether it is one: of other
// commands only those are that stand in a fence for commands.
func (f *fence) classify(c *Script) bool {
	if c.Text == "" {
		return false
	}
	if strings.HasPrefix(c.Text, "-") {
		c.Kind = ScriptFlags
		return len(c.Text) > 2 && (c.Text[1] == '-' || !strings.Contains(c.Text, ": ")) && strings.Trim(c.Text, "-") != ""
	}
	c.Kind, _ = kindOf(c.Text)
	if c.Kind != ScriptOther {
		first, _, _ := strings.Cut(c.Text, " ")
		return !strings.HasSuffix(first, ":") && !strings.HasPrefix(first, "\"")
	}
	first, _, _ := strings.Cut(c.Text, " ")
	return f.info != "" && f.info != "text" && f.info != "txt" && !f.block && !strings.ContainsAny(first, ":{}[]\"") && first != ""
}

// modelOf returns the model that a serving command names; "" for none.
func modelOf(text string) string {
	s := command.Read(text)
	if s.Model == "" && strings.Contains(text, "llama-server") {
		return s.Flag("m", "hf")
	}
	return s.Model
}

// profile returns the profile that a fence defines; nil for none.
func (f *fence) profile() *profile {
	if f.info != "yaml" && f.info != "yml" {
		return nil
	}
	p := &profile{keys: map[string]string{}}
	for _, l := range f.lines {
		if len(l.Section) > 0 {
			p.name = l.Section[len(l.Section)-1]
		}
		if k, v, ok := strings.Cut(l.Text, ":"); ok && !strings.ContainsAny(k, " -{") && len(p.keys) < maxProfileKeys {
			p.keys[k] = strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	if p.keys["request_rate"] == "" && p.keys["total_requests"] == "" && p.keys["dataset_name"] == "" {
		return nil
	}
	return p
}
