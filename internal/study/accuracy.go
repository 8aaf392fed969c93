package study

import (
	"cmp"
	"strings"

	"perflab/internal/tune"
)

// Accuracy says by what questions a study guards the answers of its model. They
// are asked greedily after the measured runs of a launch, so that no figure of a
// run has anything of them.
type Accuracy struct {
	Questions   string        `yaml:"questions" json:"questions" jsonschema:"required,description=JSONL file of question and answer (as GSM8K: the answer after ####) or prompt and answer"`
	Limit       int           `yaml:"limit,omitempty" json:"limit,omitempty" jsonschema:"minimum=0,description=Questions to ask\\, drawn by the study's seed and the same in every trial (default 200)"`
	MaxTokens   int           `yaml:"max_tokens,omitempty" json:"max_tokens,omitempty" jsonschema:"minimum=0,description=Of an answer (default 512); a model that reasons needs more"`
	Concurrency int           `yaml:"max_concurrency,omitempty" json:"max_concurrency,omitempty" jsonschema:"minimum=0,description=Questions in flight (default 16)"`
	Prompt      string        `yaml:"prompt,omitempty" json:"prompt,omitempty" jsonschema:"description=What is sent\\, with {question} in it (default: asks for a solution that ends with '#### <number>'; rows with a prompt are sent as they are)"`
	Agreement   float64       `yaml:"agreement,omitempty" json:"agreement,omitempty" jsonschema:"minimum=0,maximum=1,description=Least share of the baseline's greedy continuations that a change of numerics must repeat to stay in an early rung: 0.3 (default: none)"`
	Declared    *Declarations `yaml:"declared,omitempty" json:"declared,omitempty" jsonschema:"description=Runtime simulated and predicted\\, and no other: what changes of numerics do to the answers\\, since a simulated engine has no model that could know"`
}

const (
	askedQuestions   = 200
	askedTokens      = 512
	askedConcurrency = 16
	questionMark     = "{question}"
	askedPrompt      = questionMark + "\n\nSolve this step by step. End with '" + answerMark + " <number>', which is the answer alone."
)

// Guard is what a search holds answers against; of a study without questions
// the margin alone.
func (a *Accuracy) Guard(margin float64) *tune.Guard {
	g := &tune.Guard{Margin: margin}
	if a == nil {
		return g
	}
	g.Agreement = a.Agreement
	if set, err := ReadQuestions(a.Questions); err == nil {
		g.Questions = min(len(set), cmp.Or(a.Limit, askedQuestions))
	}
	return g
}

// PromptOf is what is sent to ask a question.
func (a *Accuracy) PromptOf(q Question) string {
	template := a.Prompt
	if template == "" && q.Whole {
		return q.Text
	}
	return strings.ReplaceAll(cmp.Or(template, askedPrompt), questionMark, q.Text)
}

// Chosen are the questions that every trial of the study is asked: as many as it
// asks for, drawn by its seed, in the order of the file.
func (s *Study) Chosen() ([]Question, error) {
	set, err := ReadQuestions(s.Accuracy.Questions)
	if err != nil {
		return nil, err
	}
	return chosen(set, cmp.Or(s.Accuracy.Limit, askedQuestions), s.Seed), nil
}

// AnswerTokens is how many an answer may have.
func (a *Accuracy) AnswerTokens() int { return cmp.Or(a.MaxTokens, askedTokens) }

// InFlight is how many questions are asked at a time.
func (a *Accuracy) InFlight() int { return cmp.Or(a.Concurrency, askedConcurrency) }
