package draft

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"perflab/internal/doctor"
	"perflab/internal/engine"
	"perflab/internal/field"
)

// question is one of Ask.
type question struct {
	text  string
	usual func(Answers) string
	set   func(*Answers, string) error
}

// questions are those that a user is asked, but for what the answers have.
func (a Answers) questions() []question {
	var out []question
	add := func(open bool, text string, usual func(Answers) string, set func(*Answers, string) error) {
		if open {
			out = append(out, question{text, usual, set})
		}
	}
	var engines []string
	for _, e := range engine.All() {
		engines = append(engines, e.Name)
	}
	add(a.Engine == "", "Engine: "+strings.Join(engines, ", "), func(a Answers) string { return a.Engine }, text(func(a *Answers, s string) { a.Engine = s }))
	add(a.Model == "", "Model, a repository id or a GGUF file", func(a Answers) string { return a.Model }, func(a *Answers, s string) error {
		if s == "" {
			return errors.New("name a model")
		}
		a.Model = s
		return nil
	})
	add(a.GPU == "", "Accelerator, by a name of perflab sim --list, or cpu", func(a Answers) string { return a.GPU }, text(func(a *Answers, s string) { a.GPU = s }))
	add(a.GPUs == 0, "How many of them", func(a Answers) string { return strconv.Itoa(a.GPUs) }, func(a *Answers, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number of devices", s)
		}
		a.GPUs = n
		return nil
	})
	add(a.Objective == "", "What to improve: "+ObjectiveNames(), func(a Answers) string { return a.Objective }, text(func(a *Answers, s string) { a.Objective = s }))
	add(len(a.SLOs) == 0, "What must hold besides, such as p99_ttft_ms <= 500; several by commas", func(Answers) string { return "" }, func(a *Answers, s string) error {
		a.SLOs = nil
		for slo := range strings.SplitSeq(s, ",") {
			if slo = strings.TrimSpace(slo); slo != "" {
				a.SLOs = append(a.SLOs, slo)
			}
		}
		return nil
	})
	add(a.Workload == "", "Load: "+WorkloadNames()+", or tokens IN/OUT; several by commas", func(a Answers) string { return a.Workload }, text(func(a *Answers, s string) { a.Workload = s }))
	return out
}

// priceQuestion follows where the objective needs it.
var priceQuestion = question{"What the hardware costs an hour, such as 32 USD", func(Answers) string { return "" }, text(func(a *Answers, s string) { a.Price = s })}

func text(set func(*Answers, string)) func(*Answers, string) error {
	return func(a *Answers, s string) error { set(a, s); return nil }
}

// errEnded says that the input ended before the questions.
var errEnded = errors.New("the input ended before all questions were answered: give the answers as flags, or --yes for the usual ones")

// Ask asks for what the answers leave open, each with what an empty line stands for. An answer that
// cannot be is said to be wrong, and asked for again.
func (a *Answers) Ask(in io.Reader, out io.Writer, r doctor.Report) error {
	lines := bufio.NewScanner(in)
	for _, q := range a.questions() {
		if err := q.ask(lines, out, a, r); err != nil {
			return err
		}
	}
	if a.needsPrice() {
		return priceQuestion.ask(lines, out, a, r)
	}
	return nil
}

func (q question) ask(lines *bufio.Scanner, out io.Writer, a *Answers, r doctor.Report) error {
	for {
		usual := q.usual(a.Fill(r))
		prompt := q.text
		if usual != "" {
			prompt += " [" + usual + "]"
		}
		fmt.Fprint(out, prompt+": ")
		if !lines.Scan() {
			fmt.Fprintln(out)
			return errors.Join(lines.Err(), errEnded)
		}
		next, said := *a, strings.TrimSpace(lines.Text())
		if said == "" {
			said = usual
		}
		err := q.set(&next, said)
		if err == nil {
			err = next.answerable(r)
		}
		if err == nil {
			*a = next
			return nil
		}
		fmt.Fprintf(out, "  %s\n", wrong(err))
	}
}

// answerable is Check of what was answered so far: a price is asked for last.
func (a Answers) answerable(r doctor.Report) error {
	if a.needsPrice() {
		a.Price = "1"
	}
	if err := a.Check(); err != nil {
		return err
	}
	if a.Model == "" {
		return nil
	}
	return a.Fill(r).modelError(r)
}

// wrong is what is wrong with an answer, which needs no name.
func wrong(err error) string {
	if e, ok := errors.AsType[*field.Error](err); ok {
		return e.Reason
	}
	return err.Error()
}
