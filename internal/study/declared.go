package study

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/openai"
	"perflab/internal/stat"
	"perflab/internal/tune"
)

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

// parsePoints parses points of a share, "-6pt"; "" is 0.
func parsePoints(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "pt")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(math.Abs(v) <= 100) { // nor NaN
		return 0, fmt.Errorf("%q is no number of points: write it as 2pt", text)
	}
	return v / 100, nil
}

// accuracy checks the questions of a study, and that they and the bound that they
// are asked for stand together.
func (c *checker) accuracy() {
	bound := slices.IndexFunc(c.s.Objective.SLOs, func(text string) bool {
		name, _, ok := strings.Cut(text, ">")
		return ok && strings.TrimSpace(name) == tune.AccuracyFigure
	})
	a := c.s.Accuracy
	switch {
	case a == nil && bound >= 0:
		c.add(field.Index("objective.slos", bound), "a bound on accuracy needs questions: add accuracy with a file of them")
		return
	case a == nil:
		return
	case bound < 0:
		c.add("accuracy", "nothing is held against these questions: add accuracy >= baseline - 2pt to objective.slos")
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"limit", a.Limit}, {"max_tokens", a.MaxTokens}, {"max_concurrency", a.Concurrency}} {
		if n.value < 0 {
			c.add("accuracy."+n.name, "%s is %d: it cannot be negative", n.name, n.value)
		}
	}
	if a.Prompt != "" && !strings.Contains(a.Prompt, questionMark) {
		c.add("accuracy.prompt", "prompt has no %s: every question would be the same", questionMark)
	}
	if !slices.Contains([]string{openai.BackendChat, openai.BackendCompletions, openai.BackendVLLM, "openai-responses", "anthropic", "sglang"}, c.s.Bench.Backend) {
		c.add("bench.backend", "backend %s gives no answers to questions: accuracy needs an API that generates text", c.s.Bench.Backend)
	}
	c.share("accuracy.agreement", a.Agreement)
	c.questions()
	c.declared()
}

func (c *checker) share(at string, v float64) {
	if !(v >= 0 && v <= 1) {
		c.add(at, "%v is no share: write it as 0.82", v)
	}
}

// questions reads the file now, and not after the first measured runs.
func (c *checker) questions() {
	path := c.s.Accuracy.Questions
	if path == "" {
		c.add("accuracy", "questions is missing: the path of a JSONL file of question and answer")
		return
	}
	_, err := ReadQuestions(path)
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = fmt.Errorf("questions %s: %w", path, e.Err)
	}
	if err != nil {
		c.add("accuracy.questions", "%v", err)
	}
}

// declared checks what simulated engines are said to do to the answers.
func (c *checker) declared() {
	d, kind := c.s.Accuracy.Declared, c.s.Runtime.Kind
	simulated := kind == Simulated || kind == Predicted
	switch {
	case d == nil && simulated:
		c.add("accuracy", "declared is missing: a simulated engine has no model that could answer, so say what its accuracy is to be")
		return
	case d == nil:
		return
	case !simulated:
		c.add("accuracy.declared", "declared does not apply to runtime kind %s, whose engines answer for themselves", kind)
		return
	case d.Base == 0:
		c.add("accuracy.declared", "base is missing: the share of the questions that is answered right, such as 0.82")
	}
	c.share("accuracy.declared.base", d.Base)
	for i, e := range d.Effects {
		at := field.Index("accuracy.declared.effects", i)
		if len(e.When) == 0 {
			c.add(at, "when is missing: the model, engine or parameters that have this effect")
		}
		for _, name := range slices.Sorted(maps.Keys(e.When)) {
			if name == "engine" || name == "model" {
				continue
			}
			if err := engine.KnownParam(name); err != nil {
				c.add(at+".when."+name, "%v", err)
			}
		}
		if _, err := parsePoints(e.Change); err != nil {
			c.add(at+".change", "%v", err)
		}
		if v, err := parsePoints(e.Flips); err != nil || v < 0 {
			c.add(at+".flips", "%v", cmp.Or(err, errors.New("flips cannot be negative: they go both ways")))
		}
		c.share(at+".agreement", e.Agreement)
	}
}
