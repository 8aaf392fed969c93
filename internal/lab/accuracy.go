package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/workload"
)

const (
	// Continuations are fewer and shorter: they are for early rungs, which end candidates
	// whose numerics are broken.
	continuations      = 16
	continuationTokens = 64

	// mostUnanswered is the share of failed calls up to which they count as wrong
	// answers; with more the engine was asked nothing.
	mostUnanswered = 0.05
)

// Names beside the runs of a trial, and in the study's directory.
const (
	answersFile       = "answers.jsonl"
	continuationsFile = "continuations.json"
	questionsFile     = "questions.jsonl"
)

// askQuestions asks what the proposal wants to know of the model's answers, after the
// runs of its launch; d is nil for a prediction. What goes wrong with it costs the
// trial its answers and nothing else: no data passes no guard.
func (ev *evaluation) askQuestions(ctx context.Context, d deploy.Deployment) error {
	ev.t.Answers, ev.t.AnswerFigures = "", nil
	compare := ev.p.Compare || ev.p.Stage == tune.BaselineStage // which others are held beside
	if ev.Accuracy == nil || ev.t.Status != tune.Measured || !ev.p.Questions && !compare {
		return nil
	}
	set, err := ev.questions()
	if err != nil {
		return err
	}
	ev.watch.change(func(s *Status) { s.Workload, s.Phase, s.Progress = "", "asking questions", nil })
	a := accuracyProbe{ev, d}
	if ev.p.Questions {
		err = a.answer(ctx, set)
	}
	if err == nil && compare {
		err = a.compareContinuations(ctx, set[:min(len(set), continuations)])
	}
	if died, ok := errors.AsType[*engineDied](err); ok {
		return died.end(ev.t, "the questions", ev.config.Command)
	}
	if err != nil && ctx.Err() == nil && !isDiskError(err) {
		ev.t.note("The questions could not be asked: %v.", err)
		return nil
	}
	return err
}

// questions are those that every trial of the study is asked. A copy in its
// directory holds later launches to them: answers to other questions are no pairs.
func (l *session) questions() ([]study.Question, error) {
	set, err := l.Chosen()
	if err != nil {
		return nil, err
	}
	var lines []byte
	for _, q := range set {
		lines = appendLine(lines, struct {
			Prompt string `json:"prompt"`
			Answer string `json:"answer"`
		}{l.Accuracy.PromptOf(q), q.Gold})
	}
	path := filepath.Join(l.studyDir.path, questionsFile)
	switch stored, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
		return set, rundir.WriteFile(path, lines)
	case err != nil:
		return nil, fmt.Errorf("read the study's questions: %w", err)
	case string(stored) != string(lines):
		return nil, fmt.Errorf("the questions of %s are not those that earlier trials were asked (%s): restore the file, or start another study", l.Accuracy.Questions, path)
	}
	return set, nil
}

// accuracyProbe asks a launch, or of a prediction what is declared of it.
type accuracyProbe struct {
	*evaluation
	d deploy.Deployment // nil: a prediction
}

// record keeps a figure of the launch.
func (a accuracyProbe) record(name string, value float64) {
	if a.t.AnswerFigures == nil {
		a.t.AnswerFigures = map[string]float64{}
	}
	a.t.AnswerFigures[name] = value
}

// answerRow is a line of answers.jsonl.
type answerRow struct {
	Index     int    `json:"index"`
	Right     bool   `json:"right"`
	Gold      string `json:"gold"`
	Question  string `json:"question"`
	Text      string `json:"text,omitempty"` // none of a prediction
	Finish    string `json:"finish,omitempty"`
	Error     string `json:"error,omitempty"`
	Simulated bool   `json:"simulated,omitempty"`
}

// answer asks every question and keeps what came.
func (a accuracyProbe) answer(ctx context.Context, set []study.Question) error {
	rows := make([]answerRow, len(set))
	for i, q := range set {
		rows[i] = answerRow{Index: i, Gold: q.Gold, Question: q.Text}
	}
	failed, cut := 0, 0
	if a.d == nil {
		declared := a.Accuracy.Declared.Of(a.config.Command)
		for i, q := range set {
			rows[i].Right, rows[i].Simulated = declared.Right(q.Text), true
		}
	} else {
		calls, err := a.send(ctx, set, a.Accuracy.AnswerTokens())
		if err != nil {
			return err
		}
		for i, c := range calls {
			rows[i].Text, rows[i].Finish, rows[i].Error, rows[i].Simulated = c.Text, c.Finish, c.Error, c.Sim
			rows[i].Right = c.OK() && set[i].Right(c.Text)
			if !c.OK() {
				failed++
				rows[i].Error = cmp.Or(c.Error, string(c.Class))
			} else if c.Finish == "length" && !rows[i].Right {
				cut++
			}
		}
	}
	return a.store(rows, failed, cut)
}

// store writes the answers down, and tells of them what is to be told.
func (a accuracyProbe) store(rows []answerRow, failed, cut int) error {
	var lines []byte
	var answers strings.Builder
	right := 0
	for _, row := range rows {
		lines = appendLine(lines, row)
		if row.Right {
			right++
			answers.WriteByte('1')
		} else {
			answers.WriteByte('0')
		}
	}
	if err := rundir.WriteFile(filepath.Join(a.dir, answersFile), lines); err != nil {
		return err
	}
	if rows[0].Simulated {
		a.t.note("SIMULATED: which answers are right is declared by the study and says nothing of a model.")
	}
	if cut > 0 {
		a.t.note("%d of %d answers were cut off at max_tokens before they were right: more tokens may change the accuracy.", cut, len(rows))
	}
	if float64(failed) > mostUnanswered*float64(len(rows)) {
		a.t.note("%d of %d questions were not answered, so the answers count for nothing: %s.", failed, len(rows), firstError(rows))
		return nil
	}
	if failed > 0 {
		a.t.note("%d of %d questions were not answered and count as wrong: %s.", failed, len(rows), firstError(rows))
	}
	a.t.Answers = answers.String()
	a.record(tune.AccuracyFigure, float64(right)/float64(len(rows)))
	return nil
}

func firstError(rows []answerRow) string {
	i := slices.IndexFunc(rows, func(row answerRow) bool { return row.Error != "" })
	return strings.TrimSuffix(rows[i].Error, ".")
}

// launchContinuations are the greedy continuations of a launch, kept for those that are held beside
// them.
type launchContinuations struct {
	Simulated bool     `json:"simulated,omitempty"`
	Texts     []string `json:"texts,omitempty"`    // "" where the call failed
	Numerics  string   `json:"numerics,omitempty"` // of a prediction, which has no texts:
	Common    []int    `json:"common,omitempty"`   // tokens that a text has in common with one of no numerics
}

// compareContinuations keeps the launch's continuations and holds them beside the baseline's.
func (a accuracyProbe) compareContinuations(ctx context.Context, set []study.Question) error {
	var own launchContinuations
	failed := 0
	if a.d == nil {
		declared := a.Accuracy.Declared.Of(a.config.Command)
		own = launchContinuations{Simulated: true, Numerics: declared.Numerics}
		for _, q := range set {
			own.Common = append(own.Common, declared.Common(a.Accuracy.PromptOf(q), continuationTokens))
		}
	} else {
		calls, err := a.send(ctx, set, continuationTokens)
		if err != nil {
			return err
		}
		for _, c := range calls {
			own.Simulated = own.Simulated || c.Sim
			own.Texts = append(own.Texts, c.Text)
			if !c.OK() {
				failed++
				own.Texts[len(own.Texts)-1] = ""
			}
		}
	}
	if float64(failed) > mostUnanswered*float64(len(set)) {
		a.t.note("%d of %d continuations failed, so there is no %s.", failed, len(set), tune.AgreementFigure)
		return nil
	}
	if err := rundir.WriteJSON(filepath.Join(a.dir, continuationsFile), own); err != nil {
		return err
	}
	base, err := a.baselineContinuations()
	if err != nil {
		return err
	}
	if share, ok := own.agreement(base); ok {
		a.record(tune.AgreementFigure, share)
	}
	return nil
}

// baselineContinuations are the continuations of the baseline's first launch before a
// trial that has any; nil where there is none. A trial's own directory keeps
// them, so that what never ended leaves none.
func (a accuracyProbe) baselineContinuations() (*launchContinuations, error) {
	trials, err := a.studyDir.trials()
	if err != nil {
		return nil, err
	}
	for _, t := range trials {
		if t.ID >= a.p.Trial || t.Stage != tune.BaselineStage || t.Status != tune.Measured {
			continue
		}
		var g launchContinuations
		switch err := rundir.ReadJSON(filepath.Join(a.studyDir.trial(t.ID), continuationsFile), &g); {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		return &g, nil
	}
	return nil, nil
}

// agreement is the mean share of the base's continuations, in words, with which
// ours begin; false where there is nothing to hold them beside.
func (g launchContinuations) agreement(base *launchContinuations) (float64, bool) {
	if base == nil {
		return 0, false
	}
	sum, n := 0.0, 0
	for i, common := range base.Common {
		if i < len(g.Common) {
			same := min(common, g.Common[i])
			if g.Numerics == base.Numerics {
				same = continuationTokens
			}
			sum += float64(same) / continuationTokens
			n++
		}
	}
	for i, text := range base.Texts {
		want := strings.Fields(text)
		if len(want) == 0 || i >= len(g.Texts) {
			continue
		}
		got, same := strings.Fields(g.Texts[i]), 0
		for same < min(len(want), len(got)) && want[same] == got[same] {
			same++
		}
		sum += float64(same) / float64(len(want))
		n++
	}
	return sum / float64(max(n, 1)), n > 0
}

// send asks questions greedily of all replicas, by the API of the study's load,
// and returns the calls in the order of the questions.
func (a accuracyProbe) send(ctx context.Context, set []study.Question, tokens int) ([]result.Call, error) {
	limit := a.Accuracy.InFlight()
	var clients []*openai.Client
	defer func() {
		for _, c := range clients {
			c.Close()
		}
	}()
	for _, target := range a.d.Targets() {
		c, err := openai.New(openai.Config{
			BaseURL: target, Backend: a.Bench.Backend, Model: a.servedName(), APIKey: a.APIKey,
			Sampling: openai.Sampling{Temperature: new(0.0)}, KeepText: true, Concurrency: limit,
		})
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	calls := make([]result.Call, len(set))
	_, err := load.Run(ctx, a.requests(set, tokens), bench.Senders(clients), load.Options{MaxConcurrency: limit, Closed: true}, func(c result.Call) {
		calls[c.Index] = c
	})
	if err != nil {
		return nil, err
	}
	failed := 0
	for i := range calls {
		if !calls[i].OK() {
			failed++
		}
	}
	if ctx.Err() != nil || float64(failed) > mostUnanswered*float64(len(set)) {
		return calls, a.awaitEngineDeath(ctx, nil) // that the engine died, we may learn in a moment
	}
	return calls, nil
}

func (a accuracyProbe) requests(set []study.Question, tokens int) iter.Seq[workload.Request] {
	return func(yield func(workload.Request) bool) {
		for i, q := range set {
			if !yield(workload.Request{Index: i, Prompt: a.Accuracy.PromptOf(q), Output: tokens, EOS: true}) {
				return
			}
		}
	}
}

// appendLine appends a value as a line of JSON.
func appendLine(b []byte, v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		panic("lab: " + err.Error()) // strings, numbers and truths
	}
	return append(append(b, line...), '\n')
}
