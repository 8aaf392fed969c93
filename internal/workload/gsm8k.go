package workload

import (
	"errors"
	"io"
	"os"
	"strings"
)

// gsm8k is questions with answers, a pair a line, as the files of GSM8K have them.
func gsm8k() dataset {
	return dataset{
		name: "gsm8k", group: groupFile,
		params: []param{
			keepOrder, noRepeats,
			{key: "output_len", help: "output tokens instead of the answer's length"},
		},
		read:  func(f *os.File, s Spec, p promptBuilder) (source, error) { return readQuestions(f, s, p) },
		hint:  `: a file with one {"question": "...", "answer": "..."} per line, such as test.jsonl of openai/grade-school-math on GitHub`,
		title: func(s Spec) string { return ofFile("Questions and answers", s) },
	}
}

// questionRow is a line of such a file. Other keys are ignored: what else a file
// has of a question is not sent.
type questionRow struct {
	Question *string `json:"question"`
	Answer   *string `json:"answer"`
}

// readQuestions samples questions in the order of readCustom. The answer is no part
// of the request: only its length is taken, as it stands in the file.
func readQuestions(f io.Reader, s Spec, p promptBuilder) (source, error) {
	return sampleLines[questionRow](f, s, p)
}

func (r questionRow) check(s Spec) error {
	if r.Question == nil || r.Answer == nil && s.OutputLen == 0 {
		return errors.New(`needs a "question" and, unless the output length is given, an "answer" (each a string)`)
	}
	return nil
}

// take is what the row is sent as.
func (r questionRow) take(s Spec, p promptBuilder) (t taken, err error) {
	t.prompt = *r.Question
	if t.row.input, err = p.count(t.prompt, true); err != nil {
		return t, err
	}
	answer := ""
	if r.Answer != nil {
		answer = *r.Answer
	}
	t.row.output, err = p.answerLength(answer, s.OutputLen, false)
	if strings.TrimSpace(t.prompt) == "" || t.row.output == 0 {
		t.reason = "with an empty question or answer"
	}
	return t, err
}
