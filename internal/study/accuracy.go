package study

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/stat"
	"perflab/internal/tune/answers"
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

// Declarations are what simulated engines are said to do to the answers. They
// are SIMULATED through and through: by them a guard can be seen to reject.
type Declarations struct {
	Base    float64  `yaml:"base" json:"base" jsonschema:"required,minimum=0,maximum=1,description=Share of the questions that is answered right: 0.82"`
	Effects []Effect `yaml:"effects,omitempty" json:"effects,omitempty" jsonschema:"description=Those that apply add up"`
}

// Effect is what one choice does to the answers.
type Effect struct {
	When   Values `yaml:"when" json:"when" jsonschema:"required,description=Where all of these are so: model\\, engine or parameters with their values"`
	Change string `yaml:"change,omitempty" json:"change,omitempty" jsonschema:"description=Of the share of right answers: -6pt"`
	Flips  string `yaml:"flips,omitempty" json:"flips,omitempty" jsonschema:"description=Share of the questions answered otherwise besides\\, half of them each way: 2pt"`

	Agreement float64 `yaml:"agreement,omitempty" json:"agreement,omitempty" jsonschema:"minimum=0,maximum=1,description=Share of a greedy continuation that is as without it: 0.7 (default: all of it)"`
}

const (
	defaultQuestions    = 200
	defaultAnswerTokens = 512
	defaultInFlight     = 16
	questionMark        = "{question}"
	defaultPrompt       = questionMark + "\n\nSolve this step by step. End with '" + answerMark + " <number>', which is the answer alone."
)

// Guard is what a search holds answers against; of a study without questions
// the margin alone.
func (a *Accuracy) Guard(margin float64) *answers.Guard {
	g := &answers.Guard{Margin: margin}
	if a == nil {
		return g
	}
	g.Agreement = a.Agreement
	if set, err := ReadQuestions(a.Questions); err == nil {
		g.Questions = min(len(set), cmp.Or(a.Limit, defaultQuestions))
	}
	return g
}

// PromptOf is what is sent to ask a question.
func (a *Accuracy) PromptOf(q Question) string {
	template := a.Prompt
	if template == "" && q.Whole {
		return q.Text
	}
	return strings.ReplaceAll(cmp.Or(template, defaultPrompt), questionMark, q.Text)
}

// AnswerTokens is how many an answer may have.
func (a *Accuracy) AnswerTokens() int { return cmp.Or(a.MaxTokens, defaultAnswerTokens) }

// InFlight is how many questions are asked at a time.
func (a *Accuracy) InFlight() int { return cmp.Or(a.Concurrency, defaultInFlight) }

// Of is what is declared of a command.
func (d *Declarations) Of(cmd engine.Command) stat.Declared {
	out := stat.Declared{Agreement: 1}
	if d == nil {
		return out // the checker asks for declarations
	}
	out.Accuracy = d.Base
	var names []string
	for _, e := range d.Effects {
		if !e.applies(cmd) {
			continue
		}
		change, _ := parsePoints(e.Change) // checked when the study was parsed
		flips, _ := parsePoints(e.Flips)
		out.Accuracy += change
		out.Flips += flips
		if e.Agreement > 0 {
			out.Agreement *= e.Agreement
		}
		for _, name := range slices.Sorted(maps.Keys(e.When)) {
			names = append(names, name+"="+e.When[name])
		}
	}
	out.Accuracy = min(max(out.Accuracy, 0), 1)
	out.Flips = min(out.Flips, 1)
	out.Numerics = strings.Join(names, " ")
	return out
}

// applies reports whether a command is what the effect is of.
func (e Effect) applies(cmd engine.Command) bool {
	for name, value := range e.When {
		has := cmd.Params[name]
		switch name {
		case "engine":
			has = cmd.Engine
		case "model":
			has = cmd.Model
		}
		if has != value {
			return false
		}
	}
	return true
}

// SimulatorFlags tell a simulated engine what is declared of it.
func (a *Accuracy) SimulatorFlags(cmd engine.Command) []string {
	if a == nil || a.Declared == nil {
		return nil
	}
	d := a.Declared.Of(cmd)
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	return []string{
		"--questions", a.Questions, "--accuracy", number(d.Accuracy), "--flips", number(d.Flips),
		"--agreement", number(d.Agreement), "--numerics", d.Numerics,
	}
}
