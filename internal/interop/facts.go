package interop

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/result"
)

// profile is a named load that a fence of YAML defines.
type profile struct {
	name string // of the heading above it
	keys map[string]string
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
		if k, v, ok := strings.Cut(l.Text, ":"); ok && !strings.ContainsAny(k, " -{") {
			p.keys[k] = strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	if p.keys["request_rate"] == "" && p.keys["total_requests"] == "" && p.keys["dataset_name"] == "" {
		return nil
	}
	return p
}

// engines are how texts and flags name the engines.
var engines = []struct {
	name  string
	texts []string // lower case
	flags []string
}{
	{"vllm", []string{"vllm"}, []string{"--max-model-len", "--max-num-batched-tokens", "--max-num-seqs", "--tensor-parallel-size", "--gpu-memory-utilization",
		"--speculative-config", "--enable-prefix-caching", "--enable-expert-parallel", "--performance-mode", "--max-cudagraph-capture-size", "--data-parallel-size",
		"--pipeline-parallel-size", "--async-scheduling", "--compilation-config", "--block-size", "--no-enable-prefix-caching", "--all2all-backend"}},
	{"sglang", []string{"sglang"}, []string{"--context-length", "--tp-size", "--mem-fraction-static", "--chunked-prefill-size", "--enable-dp-attention",
		"--max-running-requests", "--dp-size", "--ep-size", "--moe-a2a-backend", "--cuda-graph-max-bs", "--speculative-algorithm", "--speculative-algo",
		"--schedule-policy", "--schedule-conservativeness", "--max-prefill-tokens", "--moe-runner-backend", "--fp8-gemm-backend", "--disable-radix-cache"}},
	{"trtllm", []string{"tensorrt-llm", "tensorrt", "trtllm", "trt-llm"}, []string{"--max_seq_len", "--enable_chunked_prefill", "--max_batch_size", "--max_num_tokens"}},
	{"llamacpp", []string{"llama.cpp", "llama-server", "llamacpp"}, nil},
	{"mindie", []string{"mindie"}, nil},
	{"lmdeploy", []string{"lmdeploy"}, nil},
	{"tgi", []string{"text-generation-inference"}, nil},
}

// engineIn returns the engine that a text names; "" for none or several.
func engineIn(text string) string {
	low, found := strings.ToLower(text), ""
	for _, e := range engines {
		if slices.ContainsFunc(e.texts, func(t string) bool { return strings.Contains(low, t) }) {
			if found != "" {
				return ""
			}
			found = e.name
		}
	}
	return found
}

// engineOfFlags returns the engine that alone knows flags of these; "" for
// none or several.
func engineOfFlags(ws []string) string {
	found := ""
	for _, e := range engines {
		for _, w := range ws {
			name, _, _ := strings.Cut(w, "=")
			if slices.Contains(e.flags, name) {
				if found != "" && found != e.name {
					return ""
				}
				found = e.name
			}
		}
	}
	return found
}

// scope is what a section has said so far.
type scope struct {
	section Section
	serving []*Script // serving scripts and flags
	profile string
	nodes   string
	used    bool // a block stood in it
}

// facts goes through a document and gives its blocks what stands around them.
type facts struct {
	name     string
	scopes   []scope
	model    string // of the document
	hardware string
	versions map[string]string // by engine
	profiles []*profile
	benches  []*Script
	runs     []Run
	faults   []Fault
}

// maxBenches bounds the benchmark commands that are compared with each block.
const maxBenches = 200

// attribute turns the events of a scan into runs.
func attribute(s *scanner) *facts {
	f := &facts{name: s.name, scopes: []scope{{}}, versions: map[string]string{}, faults: s.faults}
	for _, e := range s.events { // what the document says as a whole
		switch {
		case e.section != nil:
			f.enter(*e.section)
		case e.prose != nil:
			f.setup(*e.prose)
		case e.profile != nil:
			f.profiles = append(f.profiles, e.profile)
		case e.script != nil && e.script.Kind == ScriptBenchmark && len(f.benches) < maxBenches:
			f.benches = append(f.benches, e.script)
		}
	}
	f.scopes = []scope{{}}
	for _, e := range s.events {
		switch {
		case e.section != nil:
			f.enter(*e.section)
		case e.script != nil && (e.script.Kind == ScriptServing || e.script.Kind == ScriptFlags):
			f.top().serving = append(f.top().serving, e.script)
		case e.prose != nil:
			f.prose(e.prose.Text)
		case e.tail != "":
			f.tail(e.tail)
		case e.block != nil:
			f.block(e.block)
		}
	}
	return f
}

func (f *facts) top() *scope { return &f.scopes[len(f.scopes)-1] }

// enter goes to a section. A section that held but scripts leaves them to the
// one around it: its neighbours may hold the results.
func (f *facts) enter(sec Section) {
	for len(f.scopes) > 1 && f.top().section.Level >= sec.Level {
		left := *f.top()
		f.scopes = f.scopes[:len(f.scopes)-1]
		if !left.used && left.section.Level >= 3 {
			f.top().serving = append(f.top().serving, left.serving...)
		}
	}
	f.scopes = append(f.scopes, scope{section: sec, nodes: nodesOf(sec.Title)})
}

// setup takes the facts of the whole document from a line of text.
func (f *facts) setup(t Text) {
	line := strings.TrimSpace(strings.TrimLeft(t.Text, "-*+ \t"))
	key, value, ok := strings.Cut(strings.ReplaceAll(line, "**", ""), ":")
	switch key = strings.ToLower(key); {
	case ok && key == "model" && f.model == "":
		f.model = strings.Trim(strings.TrimSpace(value), "`")
	case ok && key == "hardware" && f.hardware == "":
		f.hardware = strings.TrimSpace(value)
	}
	title := strings.ToLower(f.top().section.Title)
	switch {
	case title == "model" && f.model == "":
		f.model = strings.Trim(line, "`*")
	case strings.HasPrefix(title, "hardware") && f.hardware == "":
		f.hardware = line
	}
	if strings.Contains(title, "version") || strings.Contains(key, "version") {
		if e := engineIn(line); e != "" && f.versions[e] == "" {
			f.versions[e] = versionIn(line)
		}
	}
}

// versionIn returns the last word of a line that is a version; "" for none.
func versionIn(line string) string {
	found := ""
	for _, w := range strings.Fields(line) {
		w = strings.Trim(w, "`*,;()")
		digits := strings.TrimPrefix(w, "v")
		if digits != "" && digits[0] >= '0' && digits[0] <= '9' && strings.Contains(digits, ".") {
			found = w
		}
	}
	return found
}

// prose takes what a line says of the blocks that follow it.
func (f *facts) prose(line string) {
	line = strings.TrimLeft(line, "-*+ \t")
	if key, value, ok := strings.Cut(strings.ReplaceAll(line, "**", ""), ":"); ok && strings.EqualFold(strings.TrimSpace(key), "profile") {
		f.top().profile = strings.Trim(strings.TrimSpace(value), "`")
	}
	f.tail(line)
}

// tail tells from a line under a block that perflab printed it.
func (f *facts) tail(line string) {
	if len(f.runs) == 0 {
		return
	}
	r := &f.runs[len(f.runs)-1]
	compat := strings.HasPrefix(line, "figures by vllm bench serve's definitions")
	if !compat && !strings.HasPrefix(line, "Precision (95 % intervals") && !strings.HasPrefix(line, "Verdict: ") || r.Header.Imported.Client == clientSGLang {
		return
	}
	r.ours(compat)
}

// ours marks a run as perflab's own.
func (r *Run) ours(compat bool) {
	if r.Header.Imported.Client == clientPerflab && !compat {
		return
	}
	measured := r.Defs["max_concurrency"]
	r.Header.Imported.Client, r.Defs = clientPerflab, nil
	if compat {
		r.Defs = result.DefinitionsOf(result.VLLM)
	}
	if measured != "" {
		r.Defs = maps.Clone(r.Defs)
		if r.Defs == nil {
			r.Defs = map[string]result.Definition{}
		}
		r.Defs["max_concurrency"] = measured
	}
}

// block makes a run of a block.
func (f *facts) block(b *found) {
	for _, t := range b.faults {
		t.File, t.Section = f.name, b.section
		f.faults = append(f.faults, t)
	}
	if len(b.figures) == 0 {
		return
	}
	client, defs := b.client()
	r := Run{Place: Place{f.name, b.line, b.end, b.section}, Figures: b.figures, Other: b.other, Defs: defs, Sim: b.sim}
	r.Header.Simulated = b.sim
	labels := result.Labels{}
	r.Header.Imported = &result.Imported{
		Client: client, Format: FormatText, File: f.name[strings.LastIndexAny(f.name, `/\`)+1:],
		Line: b.line, End: b.end, Section: b.section, Labels: labels,
	}
	if b.sim {
		r.ours(false)
	}
	f.around(&r, b)
	for i := range f.scopes {
		f.scopes[i].used = true
	}
	maps.DeleteFunc(labels, func(_, v string) bool { return v == "" })
	f.runs = append(f.runs, r)
}

// around sets the facts that stand around a block.
func (f *facts) around(r *Run, b *found) {
	labels := r.Header.Imported.Labels
	script := f.serving(roleOf(b.caption))
	labels[result.LabelRole] = roleOf(b.caption)
	labels[result.LabelCase] = b.note
	labels["caption"] = b.caption
	for _, s := range f.scopes {
		if s.nodes != "" {
			labels[result.LabelNodes] = s.nodes
		}
	}
	labels[result.LabelHardware] = f.hardware
	labels[result.LabelGPUs] = gpusIn(f.hardware)
	var ws []string
	if script != nil {
		r.Header.Command = f.filled(script.Text, "", labels[result.LabelNodes])
		ws = words(r.Header.Command)
		if labels[result.LabelRole] == "" {
			labels[result.LabelRole] = roleOf(script.Caption)
		}
		if labels[result.LabelRole] == "" {
			labels[result.LabelRole] = roleOf(script.Note)
		}
	}
	f.load(r, b)
	r.Header.Model = f.modelFor(ws)
	labels[result.LabelEngine] = f.engineFor(r.Header.Command, ws, b)
	labels[result.LabelEngineVersion] = f.versions[labels[result.LabelEngine]]
}

// serving returns the script that the next block was served by: the nearest
// above in this section or those around it, of the same role where it has one.
func (f *facts) serving(role string) *Script {
	for _, s := range slices.Backward(f.scopes) {
		for _, c := range slices.Backward(s.serving[max(0, len(s.serving)-20):]) {
			if other := roleOf(c.Caption + " " + c.Note); role == "" || other == "" || other == role {
				return c
			}
		}
	}
	return nil
}

// roleOf returns the role that a caption gives; "" for none.
func roleOf(caption string) string {
	first := ""
	if f := strings.Fields(strings.ToLower(caption)); len(f) > 0 {
		first = strings.Trim(f[0], ":,.*`")
	}
	switch first {
	case "baseline":
		return "baseline"
	case "optimized", "optimised":
		return "optimized"
	}
	return ""
}

// modelFor returns the model of a block.
func (f *facts) modelFor(ws []string) string {
	if m := modelOf(ws); m != "" && !isPlaceholder(m) {
		return m
	}
	if m := f.sectionModel(); m != "" {
		return m
	}
	return f.model
}

// sectionModel returns the model that a heading above names.
func (f *facts) sectionModel() string {
	for _, s := range slices.Backward(f.scopes) {
		if isModelName(s.section.Title) {
			return s.section.Title
		}
	}
	return ""
}

// engineFor returns the engine of a block, by the command, its flags, or the
// headings above.
func (f *facts) engineFor(command string, ws []string, b *found) string {
	if _, e := kindOf(command); e != "" {
		return e
	}
	if e := engineOfFlags(ws); e != "" {
		return e
	}
	for _, t := range slices.Backward(b.section) {
		if e := engineIn(t); e != "" {
			return e
		}
	}
	return engineIn(b.note + " " + b.caption)
}

// isPlaceholder reports whether a word stands for a value: M, <model>, $MODEL.
func isPlaceholder(w string) bool {
	return len(w) == 1 && w[0] >= 'A' && w[0] <= 'Z' || strings.HasPrefix(w, "<") || strings.HasPrefix(w, "$") || strings.HasPrefix(w, "{")
}

// filled returns a command with its placeholders replaced: the model by that
// of the section, counts by what is known. The command in the quotes of a
// "docker exec ... -c" stands for the whole.
func (f *facts) filled(command, requests, nodes string) string {
	if _, rest, ok := strings.Cut(command, "“"); ok {
		if inner, _, ok := strings.Cut(rest, "”"); ok {
			command = inner
		}
	}
	ws := strings.Fields(command)
	for i, w := range ws {
		if i == 0 || !isPlaceholder(w) {
			continue
		}
		value := ""
		switch strings.ReplaceAll(ws[i-1], "_", "-") {
		case "serve", "trtllm-serve", "--model", "--model-path", "--processor", "-m":
			value = f.sectionModel()
		case "--num-prompts", "--max-requests", "--num-requests":
			value = requests
		case "-tp", "--tp", "--tp-size", "--tensor-parallel-size":
			value = nodes
		}
		if value != "" {
			ws[i] = value
		}
	}
	return strings.Join(ws, " ")
}

// gpusIn returns the number of devices that a text on hardware tells; "" for
// none: "8 x NVIDIA A100", "NVIDIA H200x8", "a single ...".
func gpusIn(text string) string {
	low := strings.NewReplacer("ã—", "x", "×", "x", "*", "x").Replace(strings.ToLower(text))
	ws := strings.Fields(low)
	for i, w := range ws {
		if digits := strings.TrimSuffix(w, "x"); digits != "" && strings.Trim(digits, "0123456789") == "" &&
			i+1 < len(ws) && (digits != w || ws[i+1] == "x") {
			return digits
		}
		if j := strings.LastIndexByte(w, 'x'); j > 0 && j+1 < len(w) && strings.Trim(w[j+1:], "0123456789") == "" && w[j-1] >= '0' && w[j-1] <= '9' {
			if !strings.Contains(w[:j], "rtx") {
				return w[j+1:]
			}
		}
		if w == "single" && i+1 < len(ws) && !strings.HasPrefix(ws[i+1], "node") {
			return "1"
		}
	}
	return ""
}

// load sets what is known of the load: its profile, its benchmark command, and
// the counts of the block.
func (f *facts) load(r *Run, b *found) {
	h, labels := &r.Header, r.Header.Imported.Labels
	if p := f.profileFor(b); p != nil {
		labels["profile"] = p.name
		for k, v := range p.keys {
			labels[k] = v
		}
		labels[result.LabelDataset] = strings.ToLower(p.keys["dataset_name"])
		h.Requests, _ = strconv.Atoi(p.keys["total_requests"])
		labels[result.LabelRate] = p.keys["request_rate"]
		if labels[result.LabelCase] == "" {
			labels[result.LabelCase] = p.name
		}
	}
	if c := f.benchFor(r); c != nil {
		ws := words(c.Text)
		if fig, ok := r.Figure("completed"); ok {
			labels[result.LabelBenchCommand] = f.filled(c.Text, fig.Text, labels[result.LabelNodes])
			ws = words(labels[result.LabelBenchCommand])
		}
		labels[result.LabelDataset] = strings.ToLower(flagOf(ws, "--dataset-name"))
		h.Requests, _ = strconv.Atoi(flagOf(ws, "--num-prompts", "--max-requests"))
		labels[result.LabelRate] = flagOf(ws, "--request-rate", "--rate")
		h.Limit, _ = strconv.Atoi(flagOf(ws, "--max-concurrency"))
	}
	if labels[result.LabelDataset] == "" {
		labels[result.LabelDataset] = datasetIn(labels[result.LabelCase])
	}
	if fig, ok := r.Figure("request_rate"); ok {
		labels[result.LabelRate] = fig.Text
	}
	for _, p := range r.Other {
		if squeeze(p.Label) == "traffic request rate" {
			labels[result.LabelRate] = p.Text
		}
	}
	if v, _, ok := number(labels[result.LabelRate]); ok {
		h.Rate = v
	}
	if fig, ok := r.Figure("max_concurrency"); ok && r.Definition("max_concurrency") == result.Ours && fig.Value >= 1 && fig.Value < 1e9 {
		h.Limit = int(fig.Value)
	}
}

// datasetIn returns the dataset that a case names.
func datasetIn(text string) string {
	low := strings.ToLower(text)
	for _, d := range []string{"sharegpt", "random", "sonnet", "burstgpt", "mooncake"} {
		if strings.Contains(low, d) {
			return d
		}
	}
	return ""
}

// profileFor returns the profile of a block: the one that a line above names,
// else one that a heading names, by name or as "Rate 8".
func (f *facts) profileFor(b *found) *profile {
	for _, s := range slices.Backward(f.scopes) {
		for _, p := range f.profiles {
			if s.profile != "" && strings.EqualFold(s.profile, p.name) {
				return p
			}
		}
	}
	for _, t := range slices.Backward(b.section) {
		if p := f.profileIn(strings.ToLower(t)); p != nil {
			return p
		}
	}
	return nil
}

// profileIn returns the profile with the longest name that a heading has, or
// the only one of its rate.
func (f *facts) profileIn(title string) *profile {
	var best *profile
	for _, p := range f.profiles {
		if n := strings.ToLower(p.name); n != "" && strings.Contains(title, n) && (best == nil || len(n) > len(best.name)) {
			best = p
		}
	}
	rate, ok := strings.CutPrefix(title, "rate ")
	if best != nil || !ok {
		return best
	}
	for _, p := range f.profiles {
		if p.keys["request_rate"] == rate {
			if best != nil {
				return nil
			}
			best = p
		}
	}
	return best
}

// benchFor returns the benchmark command that can be that of a block: its
// counts agree with the block's, and its dataset with the case.
func (f *facts) benchFor(r *Run) *Script {
	for _, c := range slices.Backward(f.benches) {
		if c.Line < r.Place.Line && fits(words(c.Text), r) {
			return c
		}
	}
	return nil
}

// fits reports whether a benchmark command can have made a run's counts.
func fits(ws []string, r *Run) bool {
	sum := 0.0
	for _, name := range []string{"completed", "failed"} {
		if fig, ok := r.Figure(name); ok {
			sum += fig.Value
		}
	}
	n := flagOf(ws, "--num-prompts", "--max-requests")
	if n == "" || !isPlaceholder(n) && n != strconv.FormatFloat(sum, 'f', -1, 64) {
		return false
	}
	dataset, of := flagOf(ws, "--dataset-name"), datasetIn(r.Header.Label(result.LabelCase))
	if of != "" && dataset != "" && of != strings.ToLower(dataset) {
		return false
	}
	return lengthFits(r, flagOf(ws, "--random-input-len", "--input-len"), "total_input_tokens", 0.95) &&
		lengthFits(r, flagOf(ws, "--random-output-len", "--output-len"), "total_output_tokens", 0)
}

// lengthFits reports whether a total is near a length of all requests: not
// above it by more than 5 %, and not below the share least.
func lengthFits(r *Run, length, total string, least float64) bool {
	l, _, ok := number(length)
	t, have := r.Figure(total)
	n, counted := r.Figure("completed")
	if !ok || !have || !counted {
		return true
	}
	want := l * n.Value
	return t.Value <= 1.05*want && t.Value >= least*want
}

// sorted returns the faults in the order of the file.
func (f *facts) sorted() []Fault {
	slices.SortStableFunc(f.faults, func(a, b Fault) int { return a.Line - b.Line })
	return f.faults
}
