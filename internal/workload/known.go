package workload

import (
	"fmt"
	"slices"
)

// The totals of 1,000 ShareGPT prompts (ShareGPT_V3_unfiltered_cleaned_split.json)
// that published runs with Qwen3 models show.
const (
	knownPrompts     = 1000
	knownVLLMInput   = 217_393 // vllm bench serve, seed 0
	knownGuideInput  = 342_058 // guidellm by way of GPUStack's benchmark-runner
	knownGuideOutput = 281_412
)

// Known says whether the totals are the ones that published runs have, so that
// figures can be compared with theirs: "" where none are known, which is for
// any tokenizer but that of Qwen2, 2.5 and 3, and any dataset but 1,000
// ShareGPT prompts.
func (w *Workload) Known() string {
	s := w.spec
	if s.Dataset != "sharegpt" || w.Len() != knownPrompts || s.ShareGPTOutputLen != 0 || !isQwen(w.builder.tok) {
		return ""
	}
	t := w.Totals()
	t.Input -= w.nonce.tokens * t.Requests
	if s.ShareGPTFilter == "guidellm" {
		got := fmt.Sprintf("%d input and %d output tokens in 1000 prompts", t.Input, t.Output)
		switch framing := knownGuideInput - t.Input; {
		case t.Output != knownGuideOutput:
		case framing == 0:
			return got + ": the sample of guidellm as GPUStack's benchmark-runner feeds it, as published for Qwen3-32B"
		case framing > 0 && framing%knownPrompts == 0 && framing <= 20*knownPrompts:
			return fmt.Sprintf("%s: the sample of guidellm as GPUStack's benchmark-runner feeds it; the published %d count %d further tokens of each request's chat template",
				got, knownGuideInput, framing/knownPrompts)
		}
		return fmt.Sprintf("%s, where the published sample of guidellm has %d and %d: %s", got, knownGuideInput, knownGuideOutput, otherFile)
	}
	if s.Seed != 0 || s.DisableShuffle {
		return ""
	}
	got := fmt.Sprintf("%d input tokens in 1000 prompts", t.Input)
	if t.Input == knownVLLMInput {
		return got + ": the sample of vllm bench serve with seed 0, as published for Qwen3 models"
	}
	return fmt.Sprintf("%s, where the sample of vllm bench serve with seed 0 has %d: %s", got, knownVLLMInput, otherFile)
}

const otherFile = "the file is not ShareGPT_V3_unfiltered_cleaned_split.json, or not the published version of it"

// isQwen tells the vocabulary of Qwen2 to Qwen3 by ids that it alone gives: a
// file's name would say less, and a server's nothing.
func isQwen(tok Tokenizer) bool {
	if tok == nil {
		return false
	}
	ids, err := tok.Encode("Hello, world! 123", false)
	return err == nil && slices.Equal(ids, []int32{9707, 11, 1879, 0, 220, 16, 17, 18})
}
