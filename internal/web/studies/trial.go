package studies

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/redact"
	"perflab/internal/report/progress"
	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/tune"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/place"
	"perflab/internal/web/page"
)

// trialTable are the trials that have ended.
type trialTable struct {
	Metrics []result.Metric
	Rows    []trialRow
	Primary string // workload that the figures are of
}

// trialRow is a trial with its figures on the primary workload.
type trialRow struct {
	outcome.Trial
	Figures []string // by trialTable.Metrics
	Verdict result.Status
	Said    string // of the figures: why they are doubted
	Class   string // of its tag
	Role    string // baseline, recommended
	Runs    []trialRun
	Compare string // address; "": there is nothing to compare with
	Took    string
}

// trialRun is a run of a trial.
type trialRun struct {
	Workload string
	ID       string // "": the index does not have it
	Verdict  result.Status
}

// trials are those of a study.
func (s *screen) trials(r *http.Request, sub subject, now *scene) trialTable {
	f := now.study
	if f == nil {
		return trialTable{}
	}
	t := trialTable{Metrics: metrics(f), Primary: primary(f)}
	runs := s.parts(r, sub)
	base := primaryRun(f, f.Baseline, t.Primary, runs)
	alone := guard.From(r.Context()).Base != "" // a share link opens the study alone
	for _, x := range f.Trials {
		row := newTrialRow(x, t, f)
		for _, run := range x.Runs {
			e := runs[run.Dir]
			if alone {
				e.ID = ""
			}
			row.Runs = append(row.Runs, trialRun{run.Workload, e.ID, run.Summary.Verdict.Status})
			if run.Workload == t.Primary && e.ID != "" && base != "" && base != e.ID {
				row.Compare = "/compare?ids=" + url.QueryEscape(base+","+e.ID)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// newTrialRow is a trial with its figures.
func newTrialRow(x outcome.Trial, t trialTable, f *outcome.Study) trialRow {
	row := trialRow{Trial: x, Class: map[string]string{tune.Measured: "ok"}[x.Status], Figures: make([]string, len(t.Metrics))}
	row.Class = cmp.Or(row.Class, x.Status)
	if !x.Started.IsZero() && x.Ended.After(x.Started) {
		row.Took = progress.Brief(x.Ended.Sub(x.Started))
	}
	for _, p := range []struct {
		role string
		pick *outcome.Pick
	}{{"baseline", f.Baseline}, {leads(f), f.Recommended}} {
		if p.pick != nil && p.pick.Trial == x.ID {
			row.Role = strings.TrimPrefix(row.Role+", "+p.role, ", ")
		}
	}
	for i := range row.Figures {
		row.Figures[i] = page.None
	}
	for _, run := range x.Runs {
		if run.Workload != t.Primary || x.Status != tune.Measured {
			continue
		}
		row.Verdict, row.Said = run.Summary.Verdict.Status, doubts(run.Summary.Verdict)
		for i, m := range t.Metrics {
			if v, ok := run.Summary.Get(m.Name); ok && !math.IsNaN(v) {
				row.Figures[i] = strconv.FormatFloat(v, 'f', m.Decimals, 64)
			}
		}
	}
	return row
}

const leadsSoFar = "leads so far"

// leads is what the configuration is called that is singled out: of a study on its way no winner.
func leads(f *outcome.Study) string {
	if f.Partial {
		return leadsSoFar
	}
	return "recommended"
}

// doubts are the checks of a verdict that a reader must know.
func doubts(v result.Verdict) string {
	var out []string
	for _, c := range v.Checks {
		if c.Status == result.Noted || c.Status == result.Voided {
			out = append(out, c.Text)
		}
	}
	return strings.Join(out, "; ")
}

// primary is the workload that the search is judged by.
func primary(f *outcome.Study) string {
	for _, w := range f.Workloads {
		if w.Primary {
			return w.Name
		}
	}
	if len(f.Workloads) > 0 {
		return f.Workloads[0].Name
	}
	return ""
}

// primaryRun is the ID of the run that a configuration is judged by.
func primaryRun(f *outcome.Study, p *outcome.Pick, workload string, runs map[string]store.Entry) string {
	if p == nil {
		return ""
	}
	for _, t := range f.Trials {
		for _, run := range t.Runs {
			if t.ID == p.Trial && run.Workload == workload {
				return runs[run.Dir].ID
			}
		}
	}
	return ""
}

// trialView is what the page of a trial shows.
type trialView struct {
	Base, Key, Study string
	Number           int
	Row              *trialRow // nil: it has not ended
	Open             *openTrial
	Metrics          []result.Metric
	Figures          []runFigures
	Config           []fact
	Logs             []string
	Log              string
	LogName          string
	Before, After    int // trials; 0: none
	Simulated        bool
	Dir              string
}

// runFigures are the figures of one run of the trial.
type runFigures struct {
	trialRun
	Title  string
	Seed   uint64
	Values []string
	Said   string
}

// showTrial shows one trial.
func (s *screen) showTrial(w http.ResponseWriter, r *http.Request) error {
	sub, n, err := s.trialOf(r)
	if err != nil {
		return err
	}
	now := s.watchers.seen(sub.Dir)
	v := trialView{Base: guard.From(r.Context()).Base, Key: sub.Key, Number: n, Dir: relative(sub.Dir, trialDir(sub.Dir, n))}
	var head studyView
	head.heading(sub, now)
	v.Study, v.Simulated = head.Name, head.Simulated
	t := s.trials(r, sub, now)
	v.Metrics = t.Metrics
	for i := range t.Rows {
		switch row := &t.Rows[i]; {
		case row.ID == n:
			v.Row = row
		case row.ID == n-1:
			v.Before = n - 1
		case row.ID == n+1:
			v.After = n + 1
		}
	}
	for _, o := range openTrials(now) {
		if o.Number == n {
			v.Open = &o
		}
	}
	if v.Row == nil && v.Open == nil {
		return page.NotFound(fmt.Sprintf("the study %s has no trial %d", v.Study, n))
	}
	v.fill(now.study)
	if err := v.logs(sub.Dir); err != nil {
		return err
	}
	view := page.View{Title: fmt.Sprintf("Trial %d of %s", n, v.Study), Nav: "studies", Data: v}
	if v.Simulated {
		view.Banner = banner
	}
	return s.Pages.Show(w, r, s.trial, view)
}

// trialOf is the study and the trial that an address names.
func (s *screen) trialOf(r *http.Request) (subject, int, error) {
	sub, err := s.subject(r)
	if err != nil {
		return sub, 0, err
	}
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || n < 1 || sub.Dir == "" {
		return sub, 0, page.NotFound(fmt.Sprintf("there is no trial %q: they are numbered from 1", r.PathValue("n")))
	}
	return sub, n, nil
}

// fill adds the figures of its runs, and its settings.
func (v *trialView) fill(f *outcome.Study) {
	if v.Row == nil || f == nil {
		return
	}
	for i, run := range v.Row.Trial.Runs {
		x := runFigures{trialRun: v.Row.Runs[i], Title: run.Workload, Seed: run.Seed, Said: doubts(run.Summary.Verdict)}
		for _, w := range f.Workloads {
			if w.Name == run.Workload && w.Title != "" {
				x.Title = w.Title
			}
		}
		for _, m := range v.Metrics {
			text := page.None
			if value, ok := run.Summary.Get(m.Name); ok && !math.IsNaN(value) {
				text = strconv.FormatFloat(value, 'f', m.Decimals, 64)
			}
			x.Values = append(x.Values, text)
		}
		v.Figures = append(v.Figures, x)
	}
	for k, value := range v.Row.Config {
		v.Config = append(v.Config, fact{k, value})
	}
	slices.SortFunc(v.Config, func(a, b fact) int { return cmp.Compare(a.Name, b.Name) })
}

// logs adds the end of the log of the process that serves, and the names of all.
func (v *trialView) logs(dir string) error {
	v.Logs = logNames(trialDir(dir, v.Number))
	name := engineLog(trialDir(dir, v.Number))
	if name == "" {
		return nil
	}
	l := newReader(dir).log
	if err := l.follow(name, filepath.Join(trialDir(dir, v.Number), logsDir, name)); err != nil {
		return fmt.Errorf("read the engine's log: %w", err)
	}
	var b strings.Builder
	for _, x := range l.lines {
		b.WriteString(x.text + "\n")
	}
	v.Log, v.LogName = b.String(), name
	return nil
}

// sendLog sends a log of a trial as text, without secrets: the engine that writes it knows no better.
func (s *screen) sendLog(w http.ResponseWriter, r *http.Request) error {
	sub, n, err := s.trialOf(r)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if !slices.Contains(logNames(trialDir(sub.Dir, n)), name) {
		return page.NotFound(fmt.Sprintf("trial %d has no log %q", n, name))
	}
	p, err := place.Open(filepath.Join(trialDir(sub.Dir, n), logsDir))
	if err != nil {
		return err
	}
	defer p.Close()
	f, _, err := p.File(name)
	if err != nil {
		return err
	}
	defer f.Close()
	place.Harmless(w.Header(), name)
	return copyShown(redact.NewWriter(w, redact.ValuesOf(nil, os.Environ())), f)
}

// copyShown copies a text by lines: what is cut between two writes would not be known as a secret.
func copyShown(w io.Writer, r io.Reader) error {
	in := bufio.NewReaderSize(r, mostRead)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			if _, werr := w.Write([]byte(redact.Text(string(line)))); werr != nil {
				return nil // whoever asked has left
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a log: %w", err)
		}
	}
}

// sendFile sends the study file, as its directory keeps it: without secrets.
func (s *screen) sendFile(w http.ResponseWriter, r *http.Request) error {
	sub, err := s.subject(r)
	if err != nil {
		return err
	}
	if sub.Dir == "" {
		return page.NotFound("the study lies on another machine: its study.yaml is there")
	}
	p, err := place.Open(sub.Dir)
	if err != nil {
		return err
	}
	defer p.Close()
	p.Serve(w, r, sourceDoc)
	return nil
}
