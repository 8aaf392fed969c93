package lab

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/engine/logs"
	"perflab/internal/outcome"
	"perflab/internal/redact"
	"perflab/internal/tune"
)

// trialRecord is a trial as kept on disk: its facts and what it cost.
type trialRecord struct {
	outcome.Trial
	Launches   int     `json:"launches"`
	LoadS      float64 `json:"load_s"`
	GPUSeconds float64 `json:"gpu_s"`
	ReadyS     float64 `json:"ready_s,omitempty"` // from its last launch until every replica answered

	Devices []string `json:"devices,omitempty"` // that engines were dealt from, where not the machine's first

	Within map[string]float64 `json:"within,omitempty"` // workload -> standard error of the objective's figure, as a share of it
	Moves  []tune.Change      `json:"moves,omitempty"`  // what its end asks for next

	Answers       string             `json:"answers,omitempty"` // to the study's questions: 1 right, 0 wrong
	AnswerFigures map[string]float64 `json:"asked,omitempty"`   // figures of what was asked after the runs

	engine map[string]float64 // of its primary workload, where a prediction told
	failed *refusal           // why the engine refused
}

func (t *trialRecord) observation() tune.Observation {
	o := tune.Observation{Trial: t.ID, Status: t.Status, Reason: t.Reason, Seconds: t.GPUSeconds / float64(t.GPUs), Within: t.Within, Moves: t.Moves}
	for i, r := range t.Runs {
		if status, _ := outcome.JudgeRun(r.Workload, r.Summary); i > 0 && status != tune.Measured {
			continue // its trial stands, but these are no figures to decide by
		}
		if o.Figures == nil {
			o.Figures = map[string]map[string]float64{}
		}
		o.Figures[r.Workload] = r.Summary.Judged()
	}
	o.Answers = t.Answers
	t.addAnswerFigures(o.Figures)
	return o
}

// measuredRun is a run with what a search asks of it beside its figures.
type measuredRun struct {
	outcome.Run
	within float64            // standard error of the objective's figure, as a share of it; 0: not known
	engine map[string]float64 // what the engine's metrics would show, of a prediction
}

// refusal is why an engine refused a command.
type refusal struct {
	logs.Failure
	command engine.Command
}

// broken reports whether the calls of a run failed as those of a dead engine do.
func (r *measuredRun) broken() bool {
	status, _ := outcome.JudgeRun(r.Workload, r.Summary)
	return status == tune.Failed
}

// conceal replaces the secrets in what engines and machines said, before it is
// kept or told.
func (t *trialRecord) conceal(secrets redact.Values) {
	t.Reason, t.Advice = secrets.Text(t.Reason), secrets.Text(t.Advice)
	for i, note := range t.Notes {
		t.Notes[i] = secrets.Text(note)
	}
}

// note adds what a reader of the trial must know.
func (t *trialRecord) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// take adds a run and reports whether the trial goes on. The first workload
// decides what the trial is worth; one of the others that cannot be served or
// believed is said beside it, and costs the trial nothing else.
func (t *trialRecord) take(run *measuredRun) bool {
	t.Runs = append(t.Runs, run.Run)
	if len(t.Runs) == 1 {
		t.engine = run.engine
	}
	if run.within > 0 {
		if t.Within == nil {
			t.Within = map[string]float64{}
		}
		t.Within[run.Workload] = run.within
	}
	t.LoadS += run.LoadSeconds()
	if run.Search != nil {
		if note := run.Search.Note(run.Workload); note != "" {
			t.Notes = append(t.Notes, note)
		}
	}
	status, reason := outcome.JudgeRun(run.Workload, run.Summary)
	switch {
	case status == tune.Measured:
		return true
	case len(t.Runs) > 1:
		t.note("Workload %s (%s)", reason, status)
		return true
	}
	t.Status, t.Reason = status, reason
	return false
}

// reject ends a trial by a rule of ours, before anything is launched.
func (t *trialRecord) reject(e *engine.Engine, r *engine.Rejection, cmd engine.Command) {
	t.Status, t.Reason = tune.Refused, r.Reason
	if f, ok := logs.Diagnose(e.Name, r.Log); ok {
		t.Class, t.failed = f.Class, &refusal{f, cmd}
	}
}

// refuse ends a trial by what the engine said.
func (t *trialRecord) refuse(reason string, f logs.Failure, cmd engine.Command) {
	t.Status, t.Reason, t.Class, t.Advice = tune.Refused, reason, f.Class, f.Advice
	t.failed = &refusal{f, cmd}
	if repair := f.RepairFor(cmd); len(repair) > 0 {
		var steps []string
		for _, name := range slices.Sorted(maps.Keys(repair)) {
			if repair[name] == "" {
				steps = append(steps, "leave "+name+" unset")
				continue
			}
			steps = append(steps, name+"="+repair[name])
		}
		t.Advice = strings.TrimRight(t.Advice, ".") + "; try " + strings.Join(steps, " ")
	}
}

// readLogs adds to a trial what the logs of a deployment that is ready tell.
func (t *trialRecord) readLogs(e *engine.Engine, spec deploy.Spec) {
	t.Facts = nil
	for _, row := range logs.Read(e.Name, readLog(spec.Dir, "replica-0")).Rows() {
		t.Facts = append(t.Facts, factOf(row))
	}
	for i, rep := range spec.Replicas {
		if len(rep.Peers) == 0 {
			continue
		}
		logs := map[string]string{fmt.Sprintf("replica-%d", i): cmp.Or(rep.Node, "the first machine")}
		for _, p := range rep.Peers {
			logs[fmt.Sprintf("replica-%d.%s", i, p.Name)] = cmp.Or(p.Node, p.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(logs)) {
			if f, ok := deploy.Network(logs[name], readLog(spec.Dir, name)); ok && !f.OK && !slices.Contains(t.Notes, f.Text+".") {
				t.Notes = append(t.Notes, f.Text+".")
			}
		}
	}
}

// readLog is a process's log of its last launch: launches of a directory follow each other
// in it, each behind a line with the time and the command. One that cannot be read tells
// nothing.
func readLog(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name+".log"))
	if err != nil {
		return ""
	}
	if heads := launchHead.FindAllIndex(b, -1); len(heads) > 0 {
		b = b[heads[len(heads)-1][0]:]
	}
	return string(b)
}

var launchHead = regexp.MustCompile(`(?m)^# \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ `)

func factOf(row logs.FactRow) outcome.EngineFact {
	return outcome.EngineFact{Name: row.Name, Unit: row.Unit, Value: row.Value, Doc: row.Doc}
}

// addAnswerFigures adds to the figures of a trial's primary workload those of what it was asked.
func (t *trialRecord) addAnswerFigures(figures map[string]map[string]float64) {
	if len(t.Runs) == 0 || len(t.AnswerFigures) == 0 {
		return
	}
	first := t.Runs[0].Workload
	both := maps.Clone(figures[first]) // the run's own stay without
	if both == nil {
		both = map[string]float64{}
	}
	maps.Copy(both, t.AnswerFigures)
	figures[first] = both
}
