package catalogue

// Reasons say of parameters, by engine, why what perflab does differs from what the
// parsers of its last two releases say.
var Reasons = map[string]map[string]string{
	"vllm":   {},
	"sglang": {},
}
