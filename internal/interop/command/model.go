package command

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// modelBase is a model's name without its owner or directory, in lower case.
func modelBase(model string) string {
	if model == "" {
		return ""
	}
	return strings.ToLower(path.Base(model))
}

// modelFormats are parts of a model's name that say how it is stored or tuned.
var modelFormats = []string{"fp8", "fp4", "nvfp4", "mxfp4", "awq", "gptq", "int4", "int8", "w8a8", "w4a16", "bf16", "gguf", "dynamic", "static",
	"instruct", "it", "chat", "base", "thinking", "hf", "block", "quantized"}

// ModelCore is a model's name without owner, format, tuning and date.
func ModelCore(name string) string {
	var kept []string
	for _, part := range strings.FieldsFunc(modelBase(name), func(r rune) bool { return r == '-' || r == '_' || r == ' ' }) {
		date, err := strconv.Atoi(part)
		if err == nil && len(part) == 4 && date > 2000 || slices.Contains(modelFormats, part) || len(part) == 4 && err == nil {
			continue
		}
		kept = append(kept, part)
	}
	return strings.Join(kept, "-")
}

// isSize reports whether a part of a model's name is its size: 235b, a22b, 9b.
func isSize(part string) bool {
	digits, ok := strings.CutSuffix(strings.TrimPrefix(part, "a"), "b")
	_, err := strconv.ParseFloat(digits, 64)
	return ok && err == nil && strings.Trim(digits, "0123456789.") == "" && digits[0] != '.' && digits[len(digits)-1] != '.'
}

// ModelSizes are the sizes in a model's name.
func ModelSizes(core string) []string {
	var out []string
	for part := range strings.SplitSeq(core, "-") {
		if isSize(part) {
			out = append(out, part)
		}
	}
	return out
}
