package catalogue

// Reasons say of parameters, by engine, why what perflab does is not what the parsers of
// its last two releases say.
var Reasons = map[string]map[string]string{
	"vllm":   {"host_cache": "0 is perflab's word for no flag, and vLLM refuses it", "disaggregation": "no flag of one engine: perflab writes it into the commands of both pools", "chunked_prefill": "vLLM's configuration turns it on for models that generate: only off is a flag"},
	"sglang": {"disaggregation": "no flag of one engine: perflab writes it into the commands of both pools", "chunked_prefill": "on unless the size of a chunk is -1, by which it is turned off"},
}
