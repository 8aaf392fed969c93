package workload

import (
	"errors"
	"fmt"
	"strings"

	"perflab/internal/datafile"
)

// hfKind is what is taken of the rows of a dataset, as vLLM 0.33 takes it. Its client
// applies the model's chat template to most; here the server does.
type hfKind struct {
	subset, split string // that are taken unless others are named; "": the only one, and train
	output        int    // tokens; 0: those of the answer
	special       bool   // the answer's special tokens count

	texts func(r datafile.Row) (asked, error)
	fault func(r row, fixed bool) string // why a row is left out; nil: none is
}

// asked is the texts of a row: only the length of the answer matters.
type asked struct{ system, prompt, answer string }

// hfKinds are the datasets that are read, by name.
func hfKinds() map[string]hfKind {
	conversations := hfKind{texts: firstTurns, special: true, fault: func(r row, fixed bool) string {
		if fixed {
			return ""
		}
		return lengthFault(r, false)
	}}
	problems := hfKind{texts: columns("", "problem", "solution"), special: true, fault: func(r row, fixed bool) string {
		if fixed {
			return ""
		}
		return lengthsFault(r, false, maxProblemTokens, maxSolvedTokens)
	}}
	mlperf := hfKind{texts: columns("system_prompt", "question", "output"), fault: func(r row, _ bool) string { return lengthFault(r, false) }}
	return map[string]hfKind{
		"Aeala/ShareGPT_Vicuna_unfiltered":     conversations,
		"AI-MO/aimo-validation-aime":           problems,
		"AI-MO/NuminaMath-1.5":                 problems,
		"AI-MO/NuminaMath-CoT":                 problems,
		"likaixin/InstructCoder":               {output: 200, texts: instruction},
		"mgoin/mlperf-inference-llama2-data":   mlperf,
		"mgoin/mlperf-inference-llama3.1-data": mlperf,
		"openai/gsm8k":                         {subset: "main", split: "test", output: 256, texts: columns("", "question", "")},
		"openai/openai_humaneval":              {split: "test", output: 256, texts: columns("", "prompt", "")},
		"philschmid/mt-bench":                  {output: 256, texts: firstTurn},
	}
}

// The lengths that vLLM takes of mathematical problems.
const (
	maxProblemTokens = 2048
	maxSolvedTokens  = 32000
)

// hfLeftOut are datasets that vLLM reads and this client does not, with the reason.
var hfLeftOut = map[string]string{
	"lmarena-ai/VisionArena-Chat":                       hasImages,
	"lmarena-ai/vision-arena-bench-v0.1":                hasImages,
	"lmms-lab/LLaVA-OneVision-Data":                     hasImages,
	"Lin-Chen/MMStar":                                   hasImages,
	"yale-nlp/MMVU":                                     "has videos, which are not sent",
	"openslr/librispeech_asr":                           hasSpeech,
	"facebook/voxpopuli":                                hasSpeech,
	"LIUM/tedlium":                                      hasSpeech,
	"edinburghcstr/ami":                                 hasSpeech,
	"speechcolab/gigaspeech":                            hasSpeech,
	"kensho/spgispeech":                                 hasSpeech,
	"ArtificialAnalysis/Earnings22-Cleaned-AA":          hasSpeech,
	"gorilla-llm/Berkeley-Function-Calling-Leaderboard": "has tools in a notation of its own, which is not translated",
	"zed-industries/zeta":                               hasTemplate,
	"vdaita/edit_5k_char":                               hasTemplate,
	"vdaita/edit_10k_char":                              hasTemplate,
}

const (
	hasImages   = "has images, which are not read of datasets"
	hasSpeech   = "has speech, which is not sent"
	hasTemplate = "needs a template around its rows, which only vLLM's client has"
)

// take is what a row is sent as.
func (k hfKind) take(r datafile.Row, s Spec, p promptBuilder) (t taken, err error) {
	a, err := k.texts(r)
	if errors.Is(err, errTooFewTurns) {
		return taken{reason: tooFewTurns}, nil
	} else if err != nil {
		return t, err
	}
	t.prompt, t.system = a.prompt, a.system
	if t.row.input, err = p.count(a.prompt, true); err != nil {
		return t, err
	}
	if a.system != "" {
		n, err := p.count(a.system, false)
		if err != nil {
			return t, err
		}
		t.row.input += n
	}
	fixed := s.HFOutputLen
	if fixed == 0 {
		fixed = k.output
	}
	if t.row.output, err = p.answerLength(a.answer, fixed, k.special); err != nil {
		return t, err
	}
	switch {
	case strings.TrimSpace(a.prompt) == "" || t.row.output == 0:
		t.reason = "with an empty question or answer"
	case k.fault != nil:
		t.reason = k.fault(t.row, fixed > 0)
	}
	return t, nil
}

// columns takes texts of columns; those without a name are empty.
func columns(system, prompt, answer string) func(datafile.Row) (asked, error) {
	return func(r datafile.Row) (a asked, err error) {
		for _, x := range []struct {
			column string
			to     *string
		}{{system, &a.system}, {prompt, &a.prompt}, {answer, &a.answer}} {
			if x.column == "" {
				continue
			}
			text, ok := r.Text(x.column)
			if !ok {
				return a, fmt.Errorf("a row has no text in the column %q", x.column)
			}
			*x.to = text
		}
		return a, nil
	}
}

var errTooFewTurns = errors.New("too few turns")

// firstTurns takes the first question and answer of a conversation.
func firstTurns(r datafile.Row) (a asked, err error) {
	list, ok := r["conversations"].([]any)
	if !ok {
		return a, errors.New(`a row has no list in the column "conversations"`)
	}
	if len(list) < 2 {
		return a, errTooFewTurns
	}
	for i, to := range []*string{&a.prompt, &a.answer} {
		turn, _ := list[i].(map[string]any)
		if *to, ok = datafile.Row(turn).Text("value"); !ok {
			return a, errors.New(`a turn of "conversations" has no "value"`)
		}
	}
	return a, nil
}

// firstTurn takes the first of the turns of MT-Bench.
func firstTurn(r datafile.Row) (a asked, err error) {
	list, _ := r["turns"].([]any)
	if len(list) == 0 {
		return a, errors.New(`a row has no list in the column "turns"`)
	}
	prompt, ok := datafile.Row{"turn": list[0]}.Text("turn")
	if !ok {
		return a, errors.New(`the first of "turns" is no text`)
	}
	return asked{prompt: prompt}, nil
}

// instruction is the prompt that vLLM makes of an instruction and the code that it is for.
func instruction(r datafile.Row) (asked, error) {
	code, err := columns("", "input", "instruction")(r)
	return asked{prompt: code.prompt + "\n\n" + code.answer + " Just output the code, do not include any explanation."}, err
}
