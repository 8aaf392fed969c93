package sim

import (
	"strings"

	"perflab/internal/stat"
	"perflab/internal/token"
)

// Question is a question that a server knows, with a right answer and a wrong
// one. Whether it answers right is declared and not simulated: the engine has no
// model that could know.
type Question struct{ Text, Right, Wrong string }

// quiz finds questions in prompts. A prompt of a load has none of them, and is
// looked through at the cost of its length.
type quiz struct {
	questions []Question
	pairs     [1 << 16]bool            // first two bytes of a question
	heads     map[[quizHead]byte][]int // its first bytes -> questions
	short     []int                    // questions that have fewer
}

const quizHead = 16

func newQuiz(questions []Question) *quiz {
	if len(questions) == 0 {
		return nil
	}
	q := &quiz{questions: questions, heads: map[[quizHead]byte][]int{}}
	for i, k := range questions {
		if len(k.Text) < quizHead {
			q.short = append(q.short, i)
			continue
		}
		head := [quizHead]byte([]byte(k.Text[:quizHead]))
		q.heads[head] = append(q.heads[head], i)
		q.pairs[pairOf(k.Text)] = true
	}
	return q
}

func pairOf(s string) uint16 { return uint16(s[0])<<8 | uint16(s[1]) }

// find returns the longest question that stands in a prompt.
func (q *quiz) find(prompt string) (best Question, ok bool) {
	if q == nil {
		return best, false
	}
	take := func(k Question) {
		if k.Text != "" && (!ok || len(k.Text) > len(best.Text)) {
			best, ok = k, true
		}
	}
	for _, i := range q.short {
		if strings.Contains(prompt, q.questions[i].Text) {
			take(q.questions[i])
		}
	}
	for at := 0; at+quizHead <= len(prompt); at++ {
		if !q.pairs[pairOf(prompt[at:])] {
			continue
		}
		for _, i := range q.heads[[quizHead]byte([]byte(prompt[at:at+quizHead]))] {
			if k := q.questions[i]; strings.HasPrefix(prompt[at:], k.Text) {
				take(k)
			}
		}
	}
	return best, ok
}

// Solutions have so many words before their last line.
const leastWords, mostWords = 16, 48

// declare makes an answer what the server's options say of it: the solution of a
// question that the prompt holds, or a text that leaves the common one where
// that is declared.
func (s *Server) declare(a *answer, prompt string) {
	if s.quiz == nil && s.declared.Numerics == "" {
		return
	}
	if q, ok := s.quiz.find(prompt); ok {
		text := q.Wrong
		if s.declared.Right(q.Text) {
			text = q.Right
		}
		words := leastWords + stat.Stream(0, "length of "+q.Text).IntN(mostWords-leastWords)
		a.solve(words, text)
	}
	// The tail of a solution is its own affair: it is right or wrong by Right.
	a.common = s.declared.Common(prompt, a.output)
	a.own = mix(stat.Stream(0, s.declared.Numerics).Uint64())
}

// solve makes the answer so many words and a last line, as far as its length
// allows.
func (a *answer) solve(words int, text string) {
	tail := append([]string{"\n", "####"}, pieces(" "+text)...)
	if want := words + len(tail); want <= a.output {
		a.output, a.finish = want, "stop"
	}
	a.tail = tail[:min(len(tail), max(0, a.output-words))]
}

// pieces cuts a text into what package token takes for one token each.
func pieces(text string) []string {
	var out []string
	for text != "" {
		end := len(text)
		for token.Count(text[:end]) > 1 {
			end--
		}
		out, text = append(out, text[:end]), text[end:]
	}
	return out
}
