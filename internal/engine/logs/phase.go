package logs

import (
	"regexp"
	"strings"
	"sync"
)

// phaseLine is a line by which an engine tells what takes its time while it starts.
type phaseLine struct {
	phase string // "": the line tells nothing, whatever words it has
	expr  string // without regard to case
}

// Phases of a start that may take minutes.
const (
	downloading = "downloading the model"
	loading     = "loading weights"
	compiling   = "compiling"
	capturing   = "capturing graphs"
	warming     = "warming up"
)

// phaseLines are the lines of each engine. Those of all engines together are under "": bars
// of progress and what libraries print.
func phaseLines() map[string][]phaseLine {
	return map[string][]phaseLine{
		"": {
			{downloading, `Fetching \d+ files|Downloading (?:shards|model|weights|data|\S+\.(?:safetensors|bin|gguf|json))|(?:^|[\s/])\S+\.(?:safetensors|bin|gguf): +\d+%`},
			{loading, `Loading (?:safetensors|pt|pth|bin|gguf)? ?(?:checkpoint|model) shards|Multi-thread loading shards`},
		},
		"vllm": {
			{downloading, `Time spent downloading weights`},
			{loading, `Starting to load model|Loading model from scratch|Loading weights took|Model loading took|Loading drafter model`},
			{compiling, `torch\.compile (?:takes|took|and initial)|vLLM's torch\.compile|Dynamo bytecode transform|Compiling a graph|Directly load the compiled graph|Cache the graph|Warming up model for the compilation|DeepGEMM warmup|autotun`},
			{capturing, `Capturing CUDA graph|Graph capturing finished|Profiling CUDA graph memory`},
			{warming, `Warming up|Available KV cache memory`},
		},
		"sglang": {
			{"", `server_args=`}, // the names of all arguments, warmups and autotune among them
			{loading, `Load weight (?:begin|end)`},
			{compiling, `DeepGEMM|torch\.compile|Compiling|JIT|autotun`},
			{capturing, `Capture .*graph.* (?:begin|end)|Capturing (?:batches|num tokens|prefill shape)`},
			{warming, `warmup|warming up`},
		},
		"trtllm": {
			{loading, `Loading weights|Loading \S+ weights|Prefetching .*(?:GB|checkpoint)`},
			{compiling, `torch\.compile|Building|Compiling|autotun`},
			{capturing, `CUDA graph warmup|CUDA graph capture`},
			{warming, `warmup`},
		},
		"llamacpp": {
			{downloading, `common_download|Downloading`},
			{loading, `loading model|load_tensors|llama_model_loader|^\.{3,}$`},
			{warming, `warming up`},
		},
	}
}

// phasePattern is a phaseLine that is ready to be looked for.
type phasePattern struct {
	phase string
	re    *regexp.Regexp
}

var phasePatterns = sync.OnceValue(func() map[string][]phasePattern {
	all := map[string][]phasePattern{}
	for name, lines := range phaseLines() {
		for _, l := range lines {
			all[name] = append(all[name], phasePattern{l.phase, regexp.MustCompile("(?i)" + l.expr)})
		}
	}
	return all
})

// Phase is what an engine does by a line that it prints while it starts, such as "loading
// weights"; false where the line does not tell.
func Phase(engineName, line string) (phase string, ok bool) {
	line = strings.TrimSpace(line)
	for _, name := range []string{engineName, ""} {
		for _, p := range phasePatterns()[name] {
			if p.re.MatchString(line) {
				return p.phase, p.phase != ""
			}
		}
	}
	return "", false
}
