package cli

import (
	"github.com/spf13/pflag"

	"perflab/internal/workload"
)

// addDatasetFlags are the workload flags of single datasets and of tokens;
// their defaults are the workload's own.
func addDatasetFlags(fs *pflag.FlagSet, w *workload.Spec) {
	fs.StringVar(&w.Tokenizer, "tokenizer", "", "measure lengths by the model's tokenizer: a tokenizer.json, its directory, or server (default: an approximation)")
	fs.StringVar(&w.Nonce, "nonce", "", "begin every prompt with a few words made from this text, so that no prompt repeats one of another run")
	fs.StringVar(&w.RandomRNG, "random-rng", "", "random: vllm sends the prompts that vllm bench serve makes from the same seed (needs --tokenizer)")
	fs.BoolVar(&w.RandomIDs, "random-ids", false, "random: send token ids in place of text, for /v1/completions (needs --tokenizer)")
	fs.StringVar(&w.Scenario, "scenario", "", "random: lengths as D(100,100), N(480,240)/(300,150), U(50,100)/(200,250), E(1024) to embed or R(1024,100) to rank documents against a query")
	fs.IntVar(&w.RandomBatchSize, "random-batch-size", 0, "random: texts of each request of --scenario E, documents of each of R (default 1)")
	fs.StringVar(&w.ShareGPTFilter, "sharegpt-filter", "", "sharegpt: vllm takes the sample of vllm bench serve, guidellm that of GPUStack's benchmark-runner (default vllm)")
	fs.IntVar(&w.SonnetInputLen, "sonnet-input-len", 0, "sonnet: prompt tokens at most (default 550)")
	fs.IntVar(&w.SonnetOutputLen, "sonnet-output-len", 0, "sonnet: output tokens (default 150)")
	fs.IntVar(&w.SonnetPrefixLen, "sonnet-prefix-len", 0, "sonnet: tokens of the prompt that all share (default 200)")
	fs.IntVar(&w.PrefixRepetitionPrefixLen, "prefix-repetition-prefix-len", 0, "prefix_repetition: tokens of a shared prefix (default 256)")
	fs.IntVar(&w.PrefixRepetitionSuffixLen, "prefix-repetition-suffix-len", 0, "prefix_repetition: tokens of a prompt behind its prefix (default 256)")
	fs.IntVar(&w.PrefixRepetitionNumPrefixes, "prefix-repetition-num-prefixes", 0, "prefix_repetition: different prefixes, each for as many prompts (default 10)")
	fs.IntVar(&w.PrefixRepetitionOutputLen, "prefix-repetition-output-len", 0, "prefix_repetition: output tokens (default 128)")
	fs.IntVar(&w.GSPNumGroups, "gsp-num-groups", 0, "shared-prefix: groups of prompts that share a prefix (default 64)")
	fs.IntVar(&w.GSPPromptsPerGroup, "gsp-prompts-per-group", 0, "shared-prefix: prompts of a group (default 16)")
	fs.IntVar(&w.GSPSystemPromptLen, "gsp-system-prompt-len", 0, "shared-prefix: tokens that a group shares (default 2048)")
	fs.IntVar(&w.GSPQuestionLen, "gsp-question-len", 0, "shared-prefix: tokens of a prompt alone (default 128)")
	fs.IntVar(&w.GSPOutputLen, "gsp-output-len", 0, "shared-prefix: output tokens (default 256)")
	fs.Float64Var(&w.GSPZipfAlpha, "gsp-zipf-alpha", 0, "shared-prefix: prompts go to group g, counted from 1, in proportion to g^-alpha (default: to all alike)")
	fs.StringVar(&w.BurstGPTModel, "burstgpt-model", "", "burstgpt: rows of this model only, such as GPT-4, which are those that vLLM takes (default: all)")
}

// datasetLengths are the flags of addDatasetFlags that cannot be 0, which in a
// spec means the default.
func datasetLengths() []string {
	return []string{
		"random-batch-size", "sonnet-input-len", "sonnet-output-len", "sonnet-prefix-len",
		"prefix-repetition-prefix-len", "prefix-repetition-suffix-len", "prefix-repetition-num-prefixes", "prefix-repetition-output-len",
		"gsp-num-groups", "gsp-prompts-per-group", "gsp-system-prompt-len", "gsp-question-len", "gsp-output-len", "gsp-zipf-alpha",
	}
}
