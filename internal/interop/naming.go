package interop

import (
	"slices"
	"strings"
	"unicode"

	"perflab/internal/interop/command"
)

// flagsOf are flags that one engine alone knows.
var flagsOf = map[string][]string{
	command.VLLM: {"--max-model-len", "--max-num-batched-tokens", "--max-num-seqs", "--tensor-parallel-size", "--gpu-memory-utilization",
		"--speculative-config", "--enable-prefix-caching", "--enable-expert-parallel", "--performance-mode", "--max-cudagraph-capture-size", "--data-parallel-size",
		"--pipeline-parallel-size", "--async-scheduling", "--compilation-config", "--block-size", "--no-enable-prefix-caching", "--all2all-backend"},
	command.SGLang: {"--context-length", "--tp-size", "--mem-fraction-static", "--chunked-prefill-size", "--enable-dp-attention",
		"--max-running-requests", "--dp-size", "--ep-size", "--moe-a2a-backend", "--cuda-graph-max-bs", "--cuda-graph-max-bs-decode", "--speculative-algorithm", "--speculative-algo",
		"--schedule-policy", "--schedule-conservativeness", "--max-prefill-tokens", "--moe-runner-backend", "--fp8-gemm-backend", "--disable-radix-cache"},
	command.TRTLLM: {"--max_seq_len", "--enable_chunked_prefill", "--max_batch_size", "--max_num_tokens"},
}

// engineIn returns the engine that a text names; "" for none or several.
func engineIn(text string) string {
	if named := command.EnginesNamed(text); len(named) == 1 {
		return named[0]
	}
	return ""
}

// engineOfFlags returns the engine that alone knows flags of these; "" for
// none or several.
func engineOfFlags(ws []string) string {
	found := ""
	for engine, flags := range flagsOf {
		if slices.ContainsFunc(ws, func(w string) bool { name, _, _ := strings.Cut(w, "="); return slices.Contains(flags, name) }) {
			if found != "" {
				return ""
			}
			found = engine
		}
	}
	return found
}

// versionIn returns the last word of a line that is a version; "" for none.
func versionIn(line string) string {
	found := ""
	for w := range strings.FieldsSeq(line) {
		w = strings.Trim(w, "`*,;()")
		digits := strings.TrimPrefix(w, "v")
		if digits != "" && digits[0] >= '0' && digits[0] <= '9' && strings.Contains(digits, ".") {
			found = w
		}
	}
	return found
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

// isPlaceholder reports whether a word stands for a value: M, <model>, $MODEL.
func isPlaceholder(w string) bool {
	return len(w) == 1 && w[0] >= 'A' && w[0] <= 'Z' || strings.HasPrefix(w, "<") || strings.HasPrefix(w, "$") || strings.HasPrefix(w, "{")
}

// versionAround returns the version of an engine that a heading above a block,
// its caption or its comment names: "vLLM v0.9.1"; "" for none.
func versionAround(engine string, b *found) string {
	for _, t := range append([]string{b.note, b.caption}, b.section...) {
		if engine == "" || engineIn(t) != engine {
			continue
		}
		if v := versionIn(t); strings.HasPrefix(v, "v") {
			return v
		}
	}
	return ""
}

// imageTag returns the version that the tag of an engine's container image is;
// "" for none.
func imageTag(ws []string) string {
	for _, w := range ws {
		image, tag, ok := strings.Cut(w, ":")
		if ok && strings.Contains(image, "/") && !strings.HasPrefix(tag, "/") && engineIn(image) != "" && versionIn(tag) == tag {
			return tag
		}
	}
	return ""
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

// isModelName reports whether a line is the name of a model: owner/Name, or
// words joined by hyphens with a size among them, as GPT-OSS-120B.
func isModelName(line string) bool {
	if strings.ContainsFunc(line, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._/", r)
	}) {
		return false
	}
	owner, name, ok := strings.Cut(line, "/")
	if ok {
		return owner != "" && len(name) > 2 && !strings.Contains(name, "/") && strings.ContainsAny(name, "-0123456789") && !strings.Contains(owner, ".")
	}
	for part := range strings.SplitSeq(line, "-") {
		digits := strings.TrimRight(part, "bB")
		if digits != part && digits != "" && strings.Trim(digits, "0123456789.AEx") == "" {
			return strings.Contains(line, "-")
		}
	}
	return false
}

// nodesOf returns the number of "4 nodes (tp)"; "" for none.
func nodesOf(line string) string {
	f := strings.Fields(strings.ToLower(line))
	for i := 1; i < len(f); i++ {
		if w := strings.Trim(f[i], ".,;:()"); w == "node" || w == "nodes" || w == "node(s" {
			if strings.Trim(f[i-1], "0123456789") == "" {
				return f[i-1]
			}
			if f[i-1] == "single" {
				return "1"
			}
		}
	}
	return ""
}
