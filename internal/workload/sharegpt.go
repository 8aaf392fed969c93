package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"perflab/internal/stat"
	"perflab/internal/workload/jsonarray"
)

// shareGPT is the first question and answer of recorded conversations.
func shareGPT() dataset {
	return dataset{
		name: "sharegpt", group: groupFile,
		params: []param{
			keepOrder, noRepeats,
			{key: "sharegpt_output_len", help: "output tokens instead of the answer's length"},
			{key: "sharegpt_filter", help: "vllm takes the sample of vllm bench serve, guidellm that of GPUStack's benchmark-runner (default vllm)"},
		},
		fill: func(s *Spec) {
			s.NumPrompts = cmp.Or(s.NumPrompts, 1000)
			s.ShareGPTFilter = cmp.Or(s.ShareGPTFilter, filterVLLM)
		},
		check: func(s, d Spec, f *faults) {
			f.oneOf("sharegpt_filter", d.ShareGPTFilter, filterVLLM, filterGuideLLM)
			if d.ShareGPTFilter == filterGuideLLM && s.DisableShuffle {
				f.add("disable_shuffle", "applies to [sharegpt_filter] vllm: guidellm keeps the file's order anyway")
			}
		},
		read: func(f *os.File, s Spec, p promptBuilder) (source, error) { return readShareGPT(f, s, p) },
		hint: ": download ShareGPT_V3_unfiltered_cleaned_split.json of the Hugging Face dataset" +
			" anon8231489123/ShareGPT_Vicuna_unfiltered, or choose [dataset_name] random, which needs no file",
		title: func(s Spec) string {
			if s.ShareGPTFilter == filterGuideLLM {
				return ofFile("ShareGPT dataset", s, "as guidellm takes it")
			}
			return ofFile("ShareGPT dataset", s)
		},
		known: knownTotals,
	}
}

// Whose sample of the file is taken.
const (
	filterVLLM     = "vllm"
	filterGuideLLM = "guidellm"
)

// The filter of `vllm bench serve` on ShareGPT conversations, in tokens.
const (
	minTurnTokens   = 4
	maxPromptTokens = 1024
	maxTotalTokens  = 2048
)

// readShareGPT samples conversations of a JSON array: turn 0 is the prompt,
// the length of turn 1 the output. Filter, order and repetition are those of
// `vllm bench serve` (Python), from the same seed: conversations of two turns
// or more are shuffled, and the first ones of a fitting length taken; missing
// ones are drawn from those. The filter of guidellm, as GPUStack's
// benchmark-runner feeds it, takes the first ones in the file's order.
//
// The published file has 640 MB, so one pass finds where each conversation
// lies, and only those that the order comes to are decoded until there are
// enough.
func readShareGPT(f io.ReaderAt, s Spec, p promptBuilder) (source, error) {
	spans, err := jsonarray.Spans(io.NewSectionReader(f, 0, 1<<62))
	if err != nil {
		return source{}, err
	}
	src := source{drops: dropCounts{}}
	order := readingOrder(s, spans, &src)
	return sampleAsVLLM(s, src, listed(order), func(at int) (taken, error) {
		b := make([]byte, spans[at].Length)
		if _, err := f.ReadAt(b, spans[at].Offset); err != nil {
			return taken{}, atRow(at, err)
		}
		t, err := decodeShareGPT(b, s, p)
		return t, atRow(at, err)
	})
}

const tooFewTurns = "with fewer than two turns"

// readingOrder returns the order in which to look at the elements of the
// file; those left out for good are counted in src.
func readingOrder(s Spec, spans []jsonarray.Span, src *source) []int {
	var order []int
	for i, at := range spans {
		if at.Turns < 2 && s.ShareGPTFilter == filterVLLM {
			src.read++
			src.drops[tooFewTurns]++
			continue
		}
		order = append(order, i)
	}
	if s.ShareGPTFilter == filterVLLM && !s.DisableShuffle {
		stat.NewPython(s.Seed).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return order
}

// shareGPTTurn is one of a ShareGPT conversation.
type shareGPTTurn struct {
	From  string `json:"from"`
	Value string `json:"value"`
}

// decodeShareGPT decodes one ShareGPT row and says why it is left out, if it is.
func decodeShareGPT(b []byte, s Spec, p promptBuilder) (t taken, err error) {
	var c struct {
		Conversations []shareGPTTurn `json:"conversations"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return t, err
	}
	if len(c.Conversations) < 2 {
		return taken{reason: tooFewTurns}, nil
	}
	ask, answer := c.Conversations[0], c.Conversations[1]
	t.prompt = ask.Value
	guide := s.ShareGPTFilter == filterGuideLLM
	if guide {
		if t.reason = guideFault(ask, answer); t.reason != "" {
			return t, nil
		}
	}
	if t.row.input, err = p.count(ask.Value, true); err != nil {
		return t, err
	}
	if t.row.output, err = p.answerLength(answer.Value, s.ShareGPTOutputLen, !guide); err != nil {
		return t, err
	}
	switch {
	case !guide:
		t.reason = lengthFault(t.row, s.ShareGPTOutputLen > 0)
	case t.row.input == 0 || t.row.output == 0:
		t.reason = "with an empty question or answer"
	}
	return t, nil
}

// guideFault is the filter of benchmark-runner: a question of a human and the
// answer to it, neither empty.
func guideFault(ask, answer shareGPTTurn) string {
	switch {
	case ask.From != "human" && ask.From != "user", answer.From != "gpt" && answer.From != "assistant":
		return "that do not begin with a question and its answer"
	case ask.Value == "" || answer.Value == "":
		return "with an empty question or answer"
	}
	return ""
}

// lengthFault is vLLM's filter; an output of fixed length is not held against
// the answer's minimum.
func lengthFault(r row, fixed bool) string {
	return lengthsFault(r, fixed, maxPromptTokens, maxTotalTokens)
}

// lengthsFault is that filter with other limits, in tokens.
func lengthsFault(r row, fixed bool, maxPrompt, maxTotal int) string {
	switch {
	case r.input < minTurnTokens:
		return fmt.Sprintf("with a prompt under %d tokens", minTurnTokens)
	case r.input > maxPrompt:
		return fmt.Sprintf("with a prompt over %d tokens", maxPrompt)
	case !fixed && r.output < minTurnTokens:
		return fmt.Sprintf("with an answer under %d tokens", minTurnTokens)
	case r.input+r.output > maxTotal:
		return fmt.Sprintf("with prompt and answer over %d tokens", maxTotal)
	}
	return ""
}

// The totals of 1,000 ShareGPT prompts (ShareGPT_V3_unfiltered_cleaned_split.json)
// that published runs with Qwen3 models show.
const (
	knownPrompts     = 1000
	knownVLLMInput   = 217_393 // vllm bench serve, seed 0
	knownGuideInput  = 342_058 // guidellm by way of GPUStack's benchmark-runner
	knownGuideOutput = 281_412
)

// knownTotals is Workload.Known of ShareGPT's dataset: published are those of
// 1,000 prompts by the tokenizer of Qwen2, 2.5 and 3.
func knownTotals(s Spec, t Totals, tok Tokenizer) string {
	if t.Requests != knownPrompts || s.ShareGPTOutputLen != 0 || !isQwen(tok) {
		return ""
	}
	if s.ShareGPTFilter == filterGuideLLM {
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
