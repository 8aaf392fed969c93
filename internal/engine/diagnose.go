package engine

import (
	"cmp"
	"slices"
	"strings"
	"sync"
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

// FailureClasses lists every class that Diagnose tells apart.
func FailureClasses() []FailureClass {
	return []FailureClass{
		{oomStart, Refused, "The device ran out of memory while the engine loaded weights or warmed up.", "use more GPUs, a smaller format, a lower gpu_memory_utilization or fewer sequences"},
		{oomGraph, Refused, "The device ran out of memory while graphs were captured.", "use a lower gpu_memory_utilization or a smaller max_cudagraph_capture_size"},
		{oomLoad, Refused, "The device ran out of memory while it served requests.", "use a lower gpu_memory_utilization, which leaves room beside the KV cache"},
		{"kv-memory", Refused, "Weights and working memory leave too little for the KV cache.", "use a higher gpu_memory_utilization, a smaller max_model_len, more GPUs or a smaller format"},
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
		{"graph", Refused, "Graphs could not be captured as configured.", "use other graph sizes, or none"},
		{"architecture", Refused, "The engine, in this version, does not know the model's architecture.", "use a newer version or another engine"},
		{"start", Refused, "The engine says that it could not start and not why.", "read the log before this line"},
		{"request", Unclear, "A request is longer than the engine's limits.", "raise max_model_len, or shorten the workload"},
		{"busy-gpu", Infrastructure, "Another process holds memory of the device.", "end what else holds the device, or take one that is free"},
		{"port", Infrastructure, "A port is taken.", "end what holds the port, or use another"},
		{"comm", Infrastructure, "Processes or devices could not talk to each other.", "check the network, its interfaces and the collective library's log (NCCL_DEBUG=INFO)"},
		{"model", Infrastructure, "The model's files are missing, not found or not to be read.", "check the name, the path and the access rights"},
		{"disk", Infrastructure, "A disk is full.", "make room where the models and caches lie"},
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

// Failure is why an engine failed, by its log.
type Failure struct {
	Class  string `json:"class"`  // of FailureClasses
	Line   string `json:"line"`   // the engine's own, without colours and prefix
	Advice string `json:"advice"` // what to do
	Infra  bool   `json:"infra"`  // the configuration is not to blame
	// Repair is the changes of canonical parameters that follow from the line alone;
	// "" stands for the engine's default. RepairFor knows more.
	Repair map[string]string `json:"repair,omitempty"`

	sig    *signature
	groups []string
	share  string // of memory, as the log says it was resolved
}

// RepairFor is the changes of canonical parameters with which the command may run:
// what the line says, and steps from what the command has. Nil where none is known.
func (f Failure) RepairFor(c Command) map[string]string {
	if f.sig == nil || f.sig.change == nil {
		return f.Repair
	}
	return f.sig.change(&f, c)
}

// compiledSignature is a signature ready to be looked for.
type compiledSignature struct {
	signature
	pattern pattern
}

var compiledSignatures = sync.OnceValue(func() map[string][]compiledSignature {
	all := map[string][]compiledSignature{}
	for _, e := range All() {
		all[e.Name] = compileSignatures(e.signatures)
	}
	return all
})

func compileSignatures(list []signature) []compiledSignature {
	out := make([]compiledSignature, len(list))
	for i, s := range list {
		out[i] = compiledSignature{s, compile(s.expr, s.keys)}
	}
	return out
}

// finding is the first line of a signature in a log.
type finding struct {
	sig    *compiledSignature
	at     int
	line   string
	groups []string
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
	}
	return 2
}

// first finds the earliest line of a signature. Source lines of a traceback, which
// show a message before its numbers are in it, do not count.
func (s *compiledSignature) first(log string) (finding, bool) {
	best := finding{sig: s, at: -1}
	s.pattern.each(log, func(at int, line string, groups []string) bool {
		text := bare(line)
		if source.MatchString(text) {
			return true
		}
		if best.at < 0 || at < best.at {
			best.at, best.line, best.groups = at, text, groups
		}
		return false
	})
	return best, best.at >= 0
}

// findings are the first lines of all signatures, the most certain and earliest
// first. A log may be long: it is gone through once for each text that signatures
// look for, not line by line.
func findings(log string, list []compiledSignature) []finding {
	var all []finding
	for i := range list {
		if f, ok := list[i].first(log); ok {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b finding) int {
		return cmp.Or(cmp.Compare(b.certainty(), a.certainty()), cmp.Compare(a.at, b.at))
	})
	return all
}

// Diagnose finds in a log why the engine failed: the first line that states a cause,
// else one that follows from a cause, else one that only tells of the failure.
func (e *Engine) Diagnose(log string) (Failure, bool) {
	all := findings(log, compiledSignatures()[e.Name])
	if len(all) == 0 {
		return Failure{}, false
	}
	return failure(all[0], log, e), true
}

func failure(found finding, log string, e *Engine) Failure {
	class := found.sig.class
	if class == oomStart {
		class = e.oomPhase(log, found.at)
	}
	c := classes()[class]
	f := Failure{Class: class, Line: found.line, Advice: c.Advice, Infra: c.Kind == Infrastructure, sig: &found.sig.signature, groups: found.groups, share: resolvedShare(log)}
	if found.sig.advice != "" {
		f.Advice = fillIn(found.sig.advice, found.groups)
	}
	if found.sig.set != nil {
		f.Repair = found.sig.set(found.groups)
	}
	return f
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

// oomPhase is the class of a lack of memory by what was printed before it.
func (e *Engine) oomPhase(log string, at int) string {
	before := log[:at]
	if e.ready(before) {
		return oomLoad
	}
	begun := max(strings.LastIndex(before, "Capturing CUDA graph"), strings.LastIndex(before, "Capture cuda graph begin"), lastCapture(before))
	if begun < 0 {
		return oomStart
	}
	if ended := max(strings.LastIndex(before, "Graph capturing finished"), strings.LastIndex(before, "graph end")); ended > begun {
		return oomStart
	}
	return oomGraph
}

// lastCapture finds the begin line of newer SGLang's captures: "Capture target decode ... begin".
func lastCapture(log string) int {
	i := strings.LastIndex(log, "Capture ")
	if i < 0 {
		return -1
	}
	line, _, _ := strings.Cut(log[i:], "\n")
	if !strings.Contains(line, " begin") {
		return -1
	}
	return i
}

// Refusal finds in a log the first sign that the engine could not start with its
// configuration, and returns that line without colours and prefix. A line that
// only reports a failure further up counts when there is no other. That another process
// holds a device, or a file is missing, says nothing about the configuration.
func (e *Engine) Refusal(log string) (reason string, ok bool) {
	for _, f := range findings(log, compiledSignatures()[e.Name]) {
		switch classes()[f.sig.class].Kind {
		case Infrastructure:
			return "", false
		case Refused:
			return f.line, true
		}
	}
	return "", false
}
