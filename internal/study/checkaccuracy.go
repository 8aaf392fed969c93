package study

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/openai"
	"perflab/internal/tune"
)

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
	share(c, "accuracy.agreement", a.Agreement)
	c.questions()
	c.declared()
}

// questions reads the file now, and not after the first measured runs.
func (c *checker) questions() {
	path := c.s.Accuracy.Questions
	if path == "" {
		c.add("accuracy.questions", "questions is missing: the path of a JSONL file of question and answer")
		return
	}
	_, err := ReadQuestions(path)
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = fmt.Errorf("questions %s: %w", path, e.Err)
	}
	if err != nil {
		c.add("accuracy.questions", "%v%s", err, whereLooked(path))
	}
}

// declared checks what simulated engines are said to do to the answers.
func (c *checker) declared() {
	d, kind := c.s.Accuracy.Declared, c.s.Runtime.Kind
	simulated := kind == Simulated || kind == Predicted
	switch {
	case d == nil && simulated:
		c.add("accuracy.declared", "declared is missing: a simulated engine has no model that could answer, so say what its accuracy is to be")
		return
	case d == nil:
		return
	case !simulated:
		c.add("accuracy.declared", "declared does not apply to runtime kind %s, whose engines answer for themselves", kind)
		return
	case d.Base == 0:
		c.add("accuracy.declared.base", "base is missing: the share of the questions that is answered right, such as 0.82")
	}
	share(c, "accuracy.declared.base", d.Base)
	for i, e := range d.Effects {
		at := field.Index("accuracy.declared.effects", i)
		if len(e.When) == 0 {
			c.add(at+".when", "when is missing: the model, engine or parameters that have this effect")
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
		share(c, at+".agreement", e.Agreement)
	}
}

// share checks a share of a whole.
func share(c *checker, at string, v float64) {
	if !(v >= 0 && v <= 1) {
		c.add(at, "%v is no share: write it as 0.82", v)
	}
}
