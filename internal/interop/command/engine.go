package command

import (
	"slices"
	"strings"
)

// Engines as commands and headings name them.
const (
	VLLM   = "vllm"
	SGLang = "sglang"
	TRTLLM = "trtllm"
	MindIE = "mindie"
)

// engineNames are the spellings of engines in prose; the key is ours.
var engineNames = []struct{ engine, spelling string }{
	{VLLM, "vllm"}, {SGLang, "sglang"},
	{TRTLLM, "tensorrt"}, {TRTLLM, "trt-llm"}, {TRTLLM, "trtllm"},
	{MindIE, "mindie"}, {"lmdeploy", "lmdeploy"}, {"tgi", "text-generation-inference"},
	{"llamacpp", "llama.cpp"}, {"llamacpp", "llama-server"}, {"llamacpp", "llamacpp"},
}

// EnginesNamed returns the engines that a text names, each once.
func EnginesNamed(text string) []string {
	var out []string
	lower := strings.ToLower(text)
	for _, e := range engineNames {
		if _, after, ok := strings.Cut(lower, e.spelling); ok && !isPart(after) && !slices.Contains(out, e.engine) {
			out = append(out, e.engine)
		}
	}
	return out
}

// enginePart are words behind an engine's name where it names a part of it that
// another engine uses.
var enginePart = []string{"all-reduce", "allreduce", "attention", "moe", "mha", "mla", "kernel", "kernels", "gemm"}

// isPart reports whether what stands behind an engine's name makes it the name of
// a part: "the trtllm all-reduce backend".
func isPart(after string) bool {
	next := strings.FieldsFunc(after, func(r rune) bool { return r == ' ' || r == '_' || r == ',' })
	return len(next) > 0 && (after[0] == ' ' || after[0] == '_') && slices.Contains(enginePart, next[0])
}

// EngineTitle is an engine's name as its makers write it.
func EngineTitle(engine string) string {
	titles := map[string]string{VLLM: "vLLM", SGLang: "SGLang", TRTLLM: "TensorRT-LLM", MindIE: "MindIE"}
	if t, ok := titles[engine]; ok {
		return t
	}
	return engine
}
