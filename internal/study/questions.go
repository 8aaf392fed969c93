package study

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/input"
	"perflab/internal/stat"
)

// Question is one of a set whose right answers are known.
type Question struct {
	Text  string
	Gold  string // the right answer alone
	Whole bool   // Text is all of the prompt
}

// questionRow is a line of a set: question and answer as GSM8K has them, the answer with
// its solution before "####", or prompt and answer. Sets bring more, which is left alone.
type questionRow struct {
	Question *string         `json:"question"`
	Prompt   *string         `json:"prompt"`
	Answer   json.RawMessage `json:"answer"`
}

// ReadQuestions reads a set of questions, one JSON object a line.
func ReadQuestions(path string) ([]Question, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the questions: %w", err)
	}
	defer f.Close()
	set, err := readQuestions(f)
	if err != nil {
		return nil, fmt.Errorf("read the questions of %s: %w", path, err)
	}
	return set, nil
}

func readQuestions(r io.Reader) ([]Question, error) {
	var set []Question
	in := bufio.NewReaderSize(input.Lines(r, "the file", mostConfig), 1<<16)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			q, err := parseQuestion(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			set = append(set, q)
		}
		if err != nil {
			break
		}
	}
	if len(set) == 0 {
		return nil, errors.New("there is no question in it")
	}
	return set, nil
}

func parseQuestion(line []byte) (Question, error) {
	var row questionRow
	if err := json.Unmarshal(line, &row); err != nil {
		return Question{}, fmt.Errorf("%s: a line is a JSON object with question and answer, or prompt and answer", strings.TrimPrefix(err.Error(), "json: "))
	}
	var q Question
	switch {
	case row.Question != nil && row.Prompt != nil:
		return q, errors.New("it has a question and a prompt: keep the one that is to be sent")
	case row.Question != nil:
		q.Text = *row.Question
	case row.Prompt != nil:
		q.Text, q.Whole = *row.Prompt, true
	}
	if strings.TrimSpace(q.Text) == "" {
		return q, errors.New("it has no question (keys: question and answer, or prompt and answer)")
	}
	var answer string
	if json.Unmarshal(row.Answer, &answer) != nil {
		if answer = string(row.Answer); !isNumber(answer) { // 18 in place of "18"
			return q, errors.New("it has no answer, which is a text or a number")
		}
	}
	if q.Gold = strings.TrimSpace(finalAnswer(answer)); plainText(q.Gold) == "" {
		return q, errors.New("its answer is empty")
	}
	return q, nil
}

// answerMark stands before the answer of a solution.
const answerMark = "####"

// finalAnswer is what follows the last mark of a text, or all of it.
func finalAnswer(text string) string {
	if i := strings.LastIndex(text, answerMark); i >= 0 {
		return text[i+len(answerMark):]
	}
	return text
}

// Right reports whether a text answers the question. Where the right answer is a
// number, it is the first after the last mark, or without a mark the last of the
// text, that must equal it; else the text after the mark, or all of it, but for
// case and the signs around it.
func (q Question) Right(text string) bool {
	gold, ok := numberOf(q.Gold)
	if !ok {
		if i := strings.LastIndex(text, "</think>"); i >= 0 {
			text = text[i+len("</think>"):]
		}
		return strings.EqualFold(plainText(finalAnswer(text)), plainText(q.Gold))
	}
	var found []float64
	if rest := finalAnswer(text); len(rest) < len(text) {
		found = numbers(rest)
		found = found[:min(1, len(found))]
	} else {
		found = numbers(text)
	}
	return len(found) > 0 && found[len(found)-1] == gold
}

// Wrong is an answer that is not right.
func (q Question) Wrong() string {
	n := 1 + stat.Stream(0, "wrong answer to "+q.Text).IntN(9)
	if gold, ok := numberOf(q.Gold); ok {
		if wrong := strconv.FormatFloat(gold+float64(n), 'f', -1, 64); !q.Right(wrong) {
			return wrong
		}
		return "0"
	}
	return "not " + q.Gold
}

// digits is a number as people write it: 70,000 or 1.5 or .5.
var digits = regexp.MustCompile(`\d{1,3}(?:,\d{3})+(?:\.\d+)?\b|\d+(?:\.\d+)?|\.\d+`)

// numbers are those of a text in their order, without $, commas and the like. A
// minus counts where it follows no number or word, of which it would be a dash.
func numbers(text string) []float64 {
	var out []float64
	for _, at := range digits.FindAllStringIndex(text, -1) {
		v, err := strconv.ParseFloat(strings.ReplaceAll(text[at[0]:at[1]], ",", ""), 64)
		if err != nil {
			continue // more digits than a number has
		}
		before := strings.TrimSuffix(text[:at[0]], "$")
		for _, minus := range []string{"-", "\u2212"} {
			rest, ok := strings.CutSuffix(before, minus)
			if ok && strings.TrimRightFunc(rest, wordRune) == rest {
				v = -v
				break
			}
		}
		out = append(out, v)
	}
	return out
}

func wordRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == ')' || r >= 0x80
}

// numberOf is the number that a right answer is: nothing but it, its unit of
// money or its percent sign.
func numberOf(gold string) (float64, bool) {
	text := strings.TrimLeft(strings.TrimRight(gold, " $%.*\t\r\n"), " $%*\t\r\n") // .5 is a half
	found := numbers(text)
	at := digits.FindString(text)
	if len(found) != 1 || strings.Trim(strings.TrimSuffix(text, at), "-\u2212$+ ") != "" {
		return 0, false
	}
	return found[0], true
}

func isNumber(text string) bool { _, ok := numberOf(text); return ok }

// plainText is an answer as texts are compared: one space between words, and
// nothing around it that only sets it off.
func plainText(text string) string {
	return strings.Trim(strings.Join(strings.Fields(text), " "), " .*\"'`")
}

// drawQuestions are the questions of a study: as many as it asks for, drawn by its seed,
// in the order of the file.
func drawQuestions(set []Question, limit int, seed uint64) []Question {
	if limit >= len(set) {
		return set
	}
	rows := stat.Stream(seed, "accuracy questions").Perm(len(set))[:limit]
	slices.Sort(rows)
	out := make([]Question, len(rows))
	for i, row := range rows {
		out[i] = set[row]
	}
	return out
}
