package catalogue

// Reasons say of parameters, by engine, why what perflab does is not what the parsers of
// its last two releases say.
var Reasons = map[string]map[string]string{
	"vllm":   {"chunked_prefill": "vLLM's configuration turns it on for models that generate: only off is a flag"},
	"sglang": {"chunked_prefill": "on unless the size of a chunk is -1, by which it is turned off"},
}
