package logs

import (
	"strconv"
	"strings"
	"sync"
)

// FactKind is one quantity that engines print about themselves.
type FactKind struct {
	Name string
	Unit string // tokens, requests, GiB, s, share; "" for a plain number
	Doc  string
}

// FactKinds lists the quantities, in the order of reports.
func FactKinds() []FactKind {
	return []FactKind{
		{"kv_tokens", "tokens", "Tokens that the KV cache holds, on the rank with the fewest."},
		{"max_concurrency", "requests", "Requests of concurrency_len tokens that it holds."},
		{"concurrency_len", "tokens", "Length that max_concurrency is of."},
		{"kv_gib", "GiB", "Memory of the KV cache on a rank."},
		{"kv_bytes_per_token", "bytes", "KV cache of one token on a rank."},
		{"kv_cells", "tokens", "Cells of one stream of llama.cpp's cache."},
		{"model_gib", "GiB", "Memory of the weights on a rank."},
		{"peak_gib", "GiB", "Peak of a profiled step."},
		{"compute_gib", "GiB", "Working memory on a device."},
		{"graph_gib", "GiB", "Memory of captured graphs."},
		{"device_gib", "GiB", "Memory of the device."},
		{"start_gib", "GiB", "Memory of a device that was free before the weights came."},
		{"free_gib", "GiB", "Memory left when the engine was ready."},
		{"memory_share", "share", "Share of the device's memory, in the engine's own meaning."},
		{"comm_seconds", "s", "Time to set up communication."},
		{"weights_seconds", "s", "Time to read the weights."},
		{"load_seconds", "s", "Time to load the model, the weights among it."},
		{"compile_seconds", "s", "Time to compile."},
		{"dynamo_seconds", "s", "Time to trace the model, of compiling."},
		{"graph_seconds", "s", "Time to capture graphs."},
		{"graph_sizes", "", "Batch sizes that graphs were captured for."},
		{"init_seconds", "s", "Time to profile, lay out the cache and warm up."},
		{"max_num_seqs", "requests", "Resolved limit of running requests."},
		{"max_num_batched_tokens", "tokens", "Resolved limit of tokens in a step."},
		{"max_prefill_tokens", "tokens", "Resolved limit of tokens in a batch of prefills."},
		{"max_model_len", "tokens", "Resolved limit of a request's length."},
		{"sequence_blocks", "", "KV blocks of one sequence at most."},
		{"slots", "requests", "Slots of llama-server."},
		{"slot_context", "tokens", "Context of a slot."},
		{"context", "tokens", "Context of all slots together."},
		{"running_peak", "requests", "Most requests that a status line counted."},
		{"waiting_peak", "requests", "Most that it saw waiting."},
		{"kv_usage_peak", "share", "Largest share of the KV cache that it saw in use."},
		{"accept_length", "tokens", "Tokens that a verified guess yields, by the last status line."},
		{"retractions", "requests", "Requests that gave their KV cache up for lack of room."},
	}
}

// Facts is what an engine's log says about how it runs. What it does not say is
// missing: every engine and version prints a part of it.
type Facts struct {
	Ready   bool               `json:"ready,omitempty"`   // it said that it serves
	Version string             `json:"version,omitempty"` // of the engine
	Address string             `json:"address,omitempty"` // that it serves at
	Values  map[string]float64 `json:"values,omitempty"`  // by the name of a FactKind
}

// Value is one fact, if the log has it.
func (f Facts) Value(name string) (v float64, ok bool) {
	v, ok = f.Values[name]
	return v, ok
}

// FactRow is a fact as a report shows it.
type FactRow struct {
	FactKind
	Value float64
}

// Rows lists the facts that are there, in the order of FactKinds.
func (f Facts) Rows() []FactRow {
	var rows []FactRow
	for _, k := range FactKinds() {
		if v, ok := f.Values[k.Name]; ok {
			rows = append(rows, FactRow{k, v})
		}
	}
	return rows
}

// merge is how several lines, of ranks or of later times, become one value.
type merge int

const (
	largest merge = iota // of times and memory: ranks wait for the slowest
	least                // of capacity: the smallest rank bounds all
	last                 // what is printed again replaces what was
	sum
)

// factLine is a line with facts. Groups go by names, in order; "" is passed over,
// and names that occur twice are added up.
type factLine struct {
	expr  string
	keys  []string // as of a signature
	names []string
	merge merge
	scale float64 // of the engine's unit in the kind's; 0: the same
	text  func(f *Facts, groups []string)
	// after stands for expr in lines that an engine prints all the time: the number
	// after each of such a text, up to a given one, is the fact.
	after, until string
}

const mebi = 1.0 / 1024

func setVersion(f *Facts, groups []string) { f.Version = strings.TrimRight(groups[1], ".,;") }
func setAddress(f *Facts, groups []string) { f.Address = groups[1] }
func setReady(f *Facts, _ []string)        { f.Ready = true }

// setStreams makes a capacity of llama.cpp's cells: each stream has as many. Layers
// with a window have a smaller cache of their own, which does not bound what is held.
func setStreams(f *Facts, groups []string) {
	cells, _ := strconv.ParseFloat(groups[1], 64)
	streams, _ := strconv.ParseFloat(groups[2], 64)
	f.Values["kv_tokens"] = max(f.Values["kv_tokens"], cells*streams)
}

// factLines are the lines of each engine.
func factLines() map[string][]factLine {
	return map[string][]factLine{"vllm": vllmFacts(), "sglang": sglangFacts(), "trtllm": trtllmFacts(), "llamacpp": llamacppFacts()}
}

func vllmFacts() []factLine {
	return []factLine{
		{expr: `(Application startup complete)`, keys: []string{"Application startup complete"}, text: setReady},
		{expr: `vLLM (?:API )?server version v?([^\s,]+)`, keys: []string{"vLLM API server version ", "vLLM server version "}, text: setVersion},
		{expr: `LLM engine \(v([^)]+)\)`, text: setVersion},
		{expr: `Starting vLLM (?:API server \d+|server) on (\S+)`, text: setAddress},
		{expr: `Loading weights took ([\d.]+) seconds`, names: []string{"weights_seconds"}},
		{expr: `Model loading took ([\d.]+) GiB(?: memory)? and ([\d.]+) seconds`, names: []string{"model_gib", "load_seconds"}},
		{expr: `Available KV cache memory: (-?[\d.]+) GiB`, names: []string{"kv_gib"}, merge: least},
		{expr: ` KV cache size: ([\d,]+) tokens`, names: []string{"kv_tokens"}, merge: least}, // of a GPU, a CPU, an NPU
		{expr: `(?:Explicitly|Auto) set \(([\d.]+)/([\d.]+)\) GiB for KV cache on node`, keys: []string{") GiB for KV cache on node"}, names: []string{"kv_gib", "device_gib"}, merge: least},
		{expr: `Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x`, names: []string{"concurrency_len", "max_concurrency"}, merge: least},
		{expr: `Dynamo bytecode transform time: ([\d.]+) s`, names: []string{"dynamo_seconds"}},
		{expr: `torch\.compile takes ([\d.]+) s in total`, names: []string{"compile_seconds"}},
		{expr: `torch\.compile (?:and initial profiling(?:/warmup)? run (?:together )?)?took ([\d.]+) s in total`, keys: []string{"torch.compile and initial profiling", "torch.compile took"}, names: []string{"compile_seconds"}},
		{expr: `Compiling a graph for (?:dynamic shape|shape \S+|compile range .+?) takes ([\d.]+) s`, names: []string{"compile_seconds"}},
		{expr: `Directly load the compiled graph\(s\) for .+ from the cache, took ([\d.]+) s`, names: []string{"compile_seconds"}},
		{expr: `Graph capturing finished in (\d+) secs, took (-?[\d.]+) GiB`, names: []string{"graph_seconds", "graph_gib"}},
		{expr: `Estimated CUDA graph memory: ([\d.]+) GiB total`, names: []string{"graph_gib"}},
		{expr: `init engine \(profile, create kv cache, warmup model\) took ([\d.]+) s(?:econds)?(?: \(compilation: ([\d.]+) s)?`, names: []string{"init_seconds", "compile_seconds"}},
		{expr: `Chunked prefill is enabled with max_num_batched_tokens=(\d+)`, names: []string{"max_num_batched_tokens"}, merge: last},
		{after: "Running: ", until: " reqs", names: []string{"running_peak"}},
		{after: "Waiting: ", until: " reqs", names: []string{"waiting_peak"}},
		{after: " KV cache usage: ", until: "%", names: []string{"kv_usage_peak"}, scale: 0.01},
		{after: "Mean acceptance length: ", names: []string{"accept_length"}, merge: last},
	}
}

func sglangFacts() []factLine {
	return []factLine{
		{expr: `(The server is fired up and ready to roll!)`, keys: []string{"The server is fired up and ready to roll!"}, text: setReady},
		{expr: `max_total_num_tokens=(\d+), chunked_prefill_size=(-?\d+|None), max_prefill_tokens=(\d+), max_running_requests=(\d+), context_len=(\d+), available_(?:gpu|cpu)_mem=([\d.]+) GB`,
			names: []string{"kv_tokens", "max_num_batched_tokens", "max_prefill_tokens", "max_num_seqs", "max_model_len", "free_gib"}, merge: least},
		{expr: `Init (?:torch distributed|parallel) ends\.(?: elapsed=([\d.]+) s)?`, keys: []string{"Init torch distributed ends.", "Init parallel ends."}, names: []string{"comm_seconds"}},
		{expr: `Load weight begin\. avail mem=([\d.]+) GB`, names: []string{"start_gib"}, merge: least},
		{expr: `Load weight end\.(?: elapsed=([\d.]+) s,)? type=(\w+), .*avail mem=([\d.]+) GB, mem usage=([\d.]+) GB`, names: []string{"load_seconds", "", "", "model_gib"}},
		{expr: `#tokens: (\d+), K size: ([\d.]+) GB, V size: ([\d.]+) GB`, names: []string{"", "kv_gib", "kv_gib"}}, // of "KV Cache is allocated.", and from 0.5.22 on of other words
		{expr: `#tokens: (\d+), KV? size: `, keys: []string{"#tokens: "}, names: []string{"kv_tokens"}, merge: least},
		{expr: `#tokens: (\d+), KV size: ([\d.]+) GB`, names: []string{"", "kv_gib"}},
		{expr: `Memory pool end\. avail mem=([\d.]+) GB`, names: []string{"free_gib"}, merge: least},
		{expr: `Capture .* begin\. .*avail mem=([\d.]+) GB`, keys: []string{"graph begin. This can take", " begin. backend="}, names: []string{"free_gib"}, merge: least},
		{expr: `Capture (?:cuda|cpu|npu) graph end\. Time elapsed: ([\d.]+) s\. (?:mem usage=(-?[\d.]+) GB)?`, keys: []string{"graph end. Time elapsed"}, names: []string{"graph_seconds", "graph_gib"}},
		{expr: `Capture (?:target|draft)? ?(?:prefill|decode)?.* end\. elapsed=([\d.]+) s, mem usage=(-?[\d.]+) GB, avail mem=([\d.]+) GB`, names: []string{"graph_seconds", "graph_gib", ""}},
		{expr: `mem_fraction_static(?:=|': )([\d.]+)`, keys: []string{"mem_fraction_static"}, names: []string{"memory_share"}},
		{after: "#running-req: ", names: []string{"running_peak"}},
		{after: "#queue-req: ", names: []string{"waiting_peak"}},
		{after: "token usage: ", names: []string{"kv_usage_peak"}},
		{after: "accept len: ", names: []string{"accept_length"}, merge: last},
		{after: "#retracted_reqs: ", names: []string{"retractions"}, merge: sum},
	}
}

func trtllmFacts() []factLine {
	return []factLine{
		{expr: `(Application startup complete|Uvicorn running on|Server is ready to accept requests)`, keys: []string{"Application startup complete", "Uvicorn running on", "Server is ready to accept"}, text: setReady},
		{expr: `TensorRT[- ]LLM version: (\S+)`, keys: []string{"LLM version: "}, text: setVersion},
		{expr: `Uvicorn running on (\S+)`, text: setAddress},
		{expr: `Peak memory during memory usage profiling \(torch \+ non-torch\): ([\d.]+) GiB, available KV cache memory when calculating max tokens: ([\d.]+) GiB` +
			`(?:, fraction is set ([\d.]+))?(?:, kv size (?:per token )?is ([\d.]+))?`, names: []string{"peak_gib", "kv_gib", "memory_share", "kv_bytes_per_token"}, merge: last},
		{expr: `device total memory ([\d.]+) GiB`, names: []string{"device_gib"}},
		{expr: `Allocated ([\d.]+) GiB for max tokens in paged KV cache \((\d+)\)`, names: []string{"kv_gib", "kv_tokens"}, merge: last},
		{expr: `max_seq_len=(\d+), max_num_requests=(\d+), max_num_tokens=(\d+)`, names: []string{"max_model_len", "max_num_seqs", "max_num_batched_tokens"}, merge: last},
		{expr: `Max KV cache (?:pages|blocks) per sequence: (\d+)`, names: []string{"sequence_blocks"}, merge: last},
		{expr: `Running CUDA graph warmup/capture for (\d+) batch sizes`, names: []string{"graph_sizes"}},
		{after: "num_scheduled_requests: ", names: []string{"running_peak"}},
	}
}

func llamacppFacts() []factLine {
	return []factLine{
		{expr: `listening on (\S+)`, text: func(f *Facts, g []string) { f.Ready, f.Address = true, g[1] }},
		{expr: `(model loaded)\b`, keys: []string{"model loaded"}, text: setReady},
		{expr: `build(?:_info)?: b?(\d+)`, keys: []string{"build: ", "build_info: "}, text: setVersion},
		{expr: `initializing, n_slots = (\d+), n_ctx_slot = (\d+), kv_unified = '(?:true|false)'`, names: []string{"slots", "slot_context"}, merge: last},
		{expr: `n_ctx += (\d+)`, keys: []string{"n_ctx "}, names: []string{"context"}, merge: last},
		{expr: `n_ctx_seq += (\d+)`, keys: []string{"n_ctx_seq "}, names: []string{"slot_context"}, merge: last},
		{expr: `size = +([\d.]+) MiB \( *\d+ cells, +\d+ layers`, keys: []string{"size = "}, names: []string{"kv_gib"}, scale: mebi},
		{expr: `size = +[\d.]+ MiB \( *(\d+) cells, +\d+ layers`, keys: []string{"size = "}, names: []string{"kv_cells"}},
		{expr: `size = +[\d.]+ MiB \( *(\d+) cells, +\d+ layers, +\d+/ *(\d+) seqs\)`, keys: []string{"size = "}, text: setStreams},
		{expr: `compute buffer size = +([\d.]+) MiB`, names: []string{"compute_gib"}, scale: mebi},
	}
}

// facts are an engine's lines, ready to be looked for.
type facts struct {
	lines    []factLine
	patterns []pattern
	scanner  *scanner
}

var compiledFacts = sync.OnceValue(func() map[string]*facts {
	all := map[string]*facts{}
	for name, lines := range factLines() {
		c := &facts{lines: lines}
		for _, l := range lines {
			p := pattern{keys: []string{l.after}}
			if l.after == "" {
				p = compile(l.expr, l.keys)
			}
			c.patterns = append(c.patterns, p)
		}
		c.scanner = newScanner(c.patterns)
		all[name] = c
	}
	return all
})

// Read finds in an engine's log what it says of itself, in one pass over it.
func Read(engineName, log string) Facts {
	f := Facts{Values: map[string]float64{}}
	c := compiledFacts()[engineName]
	if c == nil {
		return f
	}
	c.scanner.scan(log, func(i, from, to int) {
		l := &c.lines[i]
		if l.after != "" {
			l.number(&f, log[to:])
			return
		}
		_, line := lineAt(log, from)
		switch groups := c.patterns[i].re.FindStringSubmatch(line); {
		case groups == nil:
		case l.text != nil:
			l.text(&f, groups)
		default:
			l.add(&f, groups[1:])
		}
	})
	return f
}

// add files the numbers of one line.
func (l *factLine) add(f *Facts, groups []string) {
	line := map[string]float64{}
	for i, name := range l.names {
		v, err := strconv.ParseFloat(strings.ReplaceAll(groups[i], ",", ""), 64)
		if name == "" || err != nil || name == "max_num_batched_tokens" && v < 0 { // SGLang's -1: not chunked
			continue
		}
		if l.scale != 0 {
			v *= l.scale
		}
		line[name] += v
	}
	for name, v := range line {
		l.put(f, name, v)
	}
}

func (l *factLine) put(f *Facts, name string, v float64) {
	have, ok := f.Values[name]
	switch {
	case !ok || l.merge == last:
	case l.merge == sum:
		v += have
	case l.merge == least:
		v = min(v, have)
	default:
		v = max(v, have)
	}
	f.Values[name] = v
}

// number files the number that text begins with.
func (l *factLine) number(f *Facts, text string) {
	n := 0
	for n < len(text) && (text[n] >= '0' && text[n] <= '9' || text[n] == '.') {
		n++
	}
	v, err := strconv.ParseFloat(strings.TrimRight(text[:n], "."), 64)
	if err != nil || !strings.HasPrefix(text[n:], l.until) {
		return
	}
	if l.scale != 0 {
		v *= l.scale
	}
	l.put(f, l.names[0], v)
}
