package logs

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"perflab/internal/engine"
)

// FailureKind says what a failure is the fault of.
type FailureKind string

// Kinds of failures.
const (
	Refused        FailureKind = "refused"        // the engine cannot run this configuration: a finding about it
	Infrastructure FailureKind = "infrastructure" // machine, network or files: the same configuration may run next time
	Unclear        FailureKind = "unclear"        // the log leaves it open
)

// FailureClass is one way to fail.
type FailureClass struct {
	Name   string
	Kind   FailureKind
	Doc    string
	Advice string // what to do, where the line itself says no more
}

// Classes that depend on when a line is printed.
const (
	oomStart = "oom-start"
	oomGraph = "oom-graph"
	oomLoad  = "oom-load"
)

// offline is the class of files that are not there while the hub cannot be reached. What could not be
// reached stands before it in a log.
const offline = "offline"

// FailureClasses lists every class that Diagnose tells apart.
func FailureClasses() []FailureClass {
	return []FailureClass{
		{oomStart, Refused, "The device ran out of memory while the engine loaded weights or warmed up.", "use more GPUs, a smaller format, a lower gpu_memory_utilization or fewer sequences"},
		{oomGraph, Refused, "The device ran out of memory while graphs were captured.", "use a lower gpu_memory_utilization or a smaller max_cudagraph_capture_size"},
		{oomLoad, Refused, "The device ran out of memory while it served requests.", "use a lower gpu_memory_utilization, which leaves room beside the KV cache"},
		{"kv-memory", Refused, "Weights and working memory leave too little for the KV cache.", "use a higher gpu_memory_utilization, a smaller max_model_len, more GPUs or a smaller format"},
		{"node-memory", Refused, "The host's memory has less free than the engine asks for, of an engine on a CPU.", "use a lower gpu_memory_utilization, which on a CPU is the share of the host's memory, or a smaller KV cache"},
		{"host-cache", Refused, "The host's memory has no room for the KV cache that is to lie there.", "use a smaller host_cache"},
		{"gpus", Refused, "The configuration takes more devices than there are.", "use a smaller tp, pp or dp"},
		{"heads", Refused, "Tensor parallelism does not divide the attention heads.", "use a tp that divides them"},
		{"divide", Refused, "Something else that is split does not come out whole.", "use a smaller tp"},
		{"fp8-block", Refused, "A rank's part of a weight is not whole blocks of FP8 scales.", "use expert_parallel or a smaller tp"},
		{"experts", Refused, "Experts do not go with the expert-parallel ranks.", "use expert_parallel true or false, which give all ranks or none"},
		{"limits", Refused, "Limits of sequences, tokens and lengths contradict each other.", "use limits that fit each other"},
		{"length", Refused, "The length asked for is more than the model was made for.", "use a smaller max_model_len"},
		{"flag", Refused, "The engine does not know a flag.", "check the engine's version: this one lacks the flag"},
		{"value", Refused, "The engine does not take the value of a flag.", "check the value against the engine's own --help"},
		{"file", Refused, "The engine does not know a key of its configuration file.", "check the key, named in the line before, against the engine's version"},
		{"kernel", Refused, "The engine has no kernel for this on the device.", "use another checkpoint format, engine or device"},
		{"quantization", Refused, "The quantisation asked for does not go with the checkpoint.", "leave quantization unset, or name a checkpoint of that format"},
		{"speculative", Refused, "Speculation does not go with the model or another setting.", "leave speculation off, or use another method"},
		{"conflict", Refused, "Two settings do not go together.", "leave one of them off"},
		{"graph", Refused, "Graphs could not be captured as configured.", "use other graph sizes, or none"},
		{"architecture", Refused, "The engine, in this version, does not know the model's architecture.", "use a newer version or another engine"},
		{"start", Refused, "The engine says that it could not start and not why.", "read the log before this line"},
		{"request", Unclear, "A request is longer than the engine's limits.", "raise max_model_len, or shorten the workload"},
		{"busy-gpu", Infrastructure, "Another process holds memory of the device.", "end what else holds the device, or take one that is free"},
		{"port", Infrastructure, "A port is taken.", "end what holds the port, or use another"},
		{"comm", Infrastructure, "Processes or devices could not talk to each other.", "check the network, its interfaces and the collective library's log (NCCL_DEBUG=INFO)"},
		{"model", Infrastructure, "The model's files are missing, not found or not to be read.", "check the name, the path and the access rights"},
		{"disk", Infrastructure, "A disk is full.", "make room where the models and caches lie"},
		{offline, Infrastructure, "The model's files are not in the cache, and cannot be downloaded.", "download them beforehand, or let the engine reach the hub, without HF_HUB_OFFLINE"},
		{"download", Infrastructure, "Files could not be downloaded.", "check the network, or put the files there beforehand"},
		{"driver", Infrastructure, "The device or its driver is not in order.", "check the driver, the container's access to it, and the device"},
		{"host-memory", Infrastructure, "The machine ran out of main memory.", "use a machine with more memory, or fewer processes on it"},
		{"hang", Unclear, "The engine noticed that it, or a part of it, hangs.", "start it once more; should it hang again, look for the rank that is behind"},
		{"crash", Unclear, "The engine crashed without a reason of its own.", "start it once more; should it crash again, another kernel backend may help"},
	}
}

var classes = sync.OnceValue(func() map[string]FailureClass {
	all := map[string]FailureClass{}
	for _, c := range FailureClasses() {
		all[c.Name] = c
	}
	return all
})

// again reports whether the same configuration may run next time.
func (c FailureClass) again() bool {
	return c.Kind == Infrastructure || c.Name == "hang" || c.Name == "crash"
}

// lasting reports whether every launch of the configuration fails so until somebody puts files
// where they are missing.
func (c FailureClass) lasting() bool { return c.Name == "model" || c.Name == offline }

// Failure is why an engine failed, by its log.
type Failure struct {
	Class  string `json:"class"`  // of FailureClasses
	Line   string `json:"line"`   // the engine's own, without colours and prefix
	Advice string `json:"advice"` // what to do
	Infra  bool   `json:"infra"`  // the configuration is not to blame, or not known to be: the same may run next time
	// Lasting says that another launch would fail in the same way, until somebody mends it.
	Lasting bool `json:"lasting,omitempty"`
	// Repair is the changes of canonical parameters that follow from the line alone;
	// "" stands for the engine's default. RepairFor knows more.
	Repair map[string]string `json:"repair,omitempty"`

	sig    *signature
	groups []string
	share  string // of memory, as the log says it was resolved
}

// RepairFor is the changes of canonical parameters with which the command may run:
// what the line says, and steps from what the command has. Nil where none is known.
func (f Failure) RepairFor(c engine.Command) map[string]string {
	if f.sig == nil || f.sig.change == nil {
		return f.Repair
	}
	return f.sig.change(&f, c)
}

// signatures are ready to be looked for.
type signatures struct {
	list     []signature
	patterns []pattern
	scanner  *scanner
}

var compiledSignatures = sync.OnceValue(func() map[string]*signatures {
	all := map[string]*signatures{}
	for name, list := range signaturesByEngine() {
		all[name] = compileSignatures(list)
	}
	return all
})

func compileSignatures(list []signature) *signatures {
	s := &signatures{list: list, patterns: make([]pattern, len(list))}
	for i, sig := range list {
		s.patterns[i] = compile(sig.expr, sig.keys)
	}
	for _, m := range progressMarks {
		s.patterns = append(s.patterns, compile(m.expr, m.keys))
	}
	s.scanner = newScanner(s.patterns)
	return s
}

// progress is how far an engine has come when it prints a line.
type progress struct {
	ready     bool   // it serves
	capturing bool   // graphs
	share     string // of memory, as SGLang prints it among its arguments
}

// progressMarks are the lines that tell it.
var progressMarks = []struct {
	expr  string
	keys  []string
	reach func(p *progress, groups []string)
}{
	{`Application startup complete|fired up and ready to roll|is ready to accept requests|server is listening on`,
		[]string{"Application startup complete", "fired up and ready to roll", "is ready to accept requests", "server is listening on"}, func(p *progress, _ []string) { p.ready = true }},
	{`Capturing CUDA graph`, nil, func(p *progress, _ []string) { p.capturing = true }},
	{`Graph capturing finished`, nil, func(p *progress, _ []string) { p.capturing = false }},
	{`Capture .*\b(begin|end)\b`, []string{"Capture "}, func(p *progress, groups []string) { p.capturing = groups[1] == "begin" }},
	{`mem_fraction_static(?:=|': )([\d.]+)`, []string{"mem_fraction_static"}, func(p *progress, groups []string) { p.share = groups[1] }},
}

// finding is the first line of a signature in a log.
type finding struct {
	sig    *signature
	at     int
	line   string
	groups []string
	when   progress
}

// certainty ranks findings: a stated cause before what often follows from another
// cause or is survived (a lost connection, a second port), and last what only tells
// that something failed.
func (f finding) certainty() int {
	switch {
	case f.sig.weak:
		return 0
	case classes()[f.sig.class].Kind == Unclear || slices.Contains([]string{"port", "comm", "download", "driver", "host-memory"}, f.sig.class):
		return 1
	case f.sig.class == offline:
		return 2
	}
	return 3
}

// find gives the first lines of the signatures in a log, the most certain and earliest
// first. Source lines of a traceback, which show a message before its numbers are in
// it, do not count.
func (s *signatures) find(log string) []finding {
	all := make([]*finding, len(s.list))
	var p progress
	s.scanner.scan(log, func(i, from, _ int) {
		if i < len(all) && all[i] != nil {
			return
		}
		at, line := lineAt(log, from)
		groups := s.patterns[i].re.FindStringSubmatch(line)
		if groups == nil {
			return
		}
		if i >= len(all) {
			progressMarks[i-len(all)].reach(&p, groups)
		} else if text := bare(line); !source.MatchString(text) {
			all[i] = &finding{&s.list[i], at, text, groups, p}
		}
	})
	var found []finding
	for _, f := range all {
		if f != nil {
			found = append(found, *f)
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(b.certainty(), a.certainty()), cmp.Compare(a.at, b.at))
	})
	return found
}

// Diagnose finds in an engine's log why it failed: the first line that states a cause,
// else one that follows from a cause, else one that only tells of the failure.
func Diagnose(engineName, log string) (Failure, bool) {
	s := compiledSignatures()[engineName]
	if s == nil {
		return Failure{}, false
	}
	all := s.find(log)
	if len(all) == 0 {
		return Failure{}, false
	}
	return all[0].failure(), true
}

// failure says what a finding means.
func (found finding) failure() Failure {
	c := classes()[found.sig.class]
	if c.Name == oomStart {
		c = classes()[found.when.oom()]
	}
	f := Failure{Class: c.Name, Line: found.line, Advice: c.Advice, Infra: c.again(), Lasting: c.lasting(), sig: found.sig, groups: found.groups, share: found.when.share}
	if found.sig.advice != "" {
		f.Advice = fillIn(found.sig.advice, found.groups)
	}
	if found.sig.set != nil {
		f.Repair = found.sig.set(found.groups)
	}
	return f
}

// oom is the class of a lack of memory.
func (p progress) oom() string {
	switch {
	case p.ready:
		return oomLoad
	case p.capturing:
		return oomGraph
	}
	return oomStart
}

// fillIn puts what an expression captured in the places of $1 to $9.
func fillIn(text string, groups []string) string {
	for i, g := range groups {
		if i > 0 {
			text = strings.ReplaceAll(text, "$"+string(rune('0'+i)), g)
		}
	}
	return text
}
