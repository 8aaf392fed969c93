package start

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"perflab/internal/lab"
	"perflab/internal/redact"
	"perflab/internal/replay"
	"perflab/internal/report/finding"
	"perflab/internal/report/progress"
	"perflab/internal/source"
	"perflab/internal/study"
	"perflab/internal/web/guard"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
)

// rankingView is what a study would do, known before it is launched.
type rankingView struct {
	Strategy  string
	Remarks   []string
	Machine   []string // what there is of the hardware
	Place     string   // what it uses alone
	Earlier   []string
	Ranked    bool // a race, whose configurations are below
	Predicted bool
	Rows      []rankRow
	Refused   []refusedRow
	Skipped   int
	Doubts    []string
	Cost      []string // launches and hours, a sentence each
	Took      string
	Cut       string // why there is no ranking, though there could be; "": there is
}

type rankRow struct{ Ratio, Label, Remark string }

type refusedRow struct{ Label, Why string }

// Bounds of a ranking: a check that takes longer is of a large space, and is better made at a terminal.
const (
	rankFor     = 45 * time.Second
	shownRanks  = 100
	shownRefuse = 100
)

// roleOfChecks is the role of who may have texts checked: files that a study names are opened for it.
const roleOfChecks = guard.Launch

var (
	errSlow  = fmt.Errorf("the ranking takes longer than %v: perflab tune FILE --check makes it without a limit, and the study can be started without", rankFor)
	errTaken = &page.Problem{Status: http.StatusServiceUnavailable, Text: "another check is being ranked on this server, which takes all of its processors: try again in a moment"}
)

// rank says what a right study would do. It takes all processors, so one is made at a time.
func (s *screen) rank(ctx context.Context, text string) (*rankingView, error) {
	select {
	case s.ranking <- struct{}{}:
		defer func() { <-s.ranking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(rankFor):
		return nil, errTaken
	}
	ctx, cancel := context.WithTimeoutCause(ctx, rankFor, errSlow)
	defer cancel()
	st, err := s.Queue.Study(launch.StudyRequest{Text: text})
	if err != nil {
		return nil, problem(err)
	}
	v := &rankingView{Strategy: st.Strategy}
	if l, err := s.Queue.Check(launch.Request{Study: &launch.StudyRequest{Text: text}}); err == nil {
		v.Place = l.Place.Text()
	}
	if err := v.fill(ctx, st); err != nil {
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), errSlow) {
			return nil, err
		}
		v.Cut = errSlow.Error()
	}
	v.shown()
	return v, nil
}

func (v *rankingView) fill(ctx context.Context, st *study.Study) error {
	if err := st.Unasked(); err != nil {
		return &page.Problem{Status: http.StatusUnprocessableEntity, Text: err.Error()}
	}
	learned, err := source.Learn(st)
	if err != nil {
		return err
	}
	v.Remarks, v.Machine = st.Remarks(), lab.LookHere(ctx, st)
	for _, e := range learned {
		v.Earlier = append(v.Earlier, finding.Earlier(e))
	}
	var ranked atomic.Int64 // what is told, so that a check that is cut says how far it came
	p, ok, err := lab.Rank(ctx, st, replay.Predictor{}, func(x lab.Status) { ranked.Store(int64(x.Ranked)) })
	if err != nil {
		return fmt.Errorf("%w (%d configurations were predicted)", err, ranked.Load())
	}
	v.Doubts, v.Ranked = p.Doubts, ok
	v.Took = progress.Brief(p.Took)
	if ok {
		v.rows(p)
	}
	v.costs(st, p, ok)
	return nil
}

func (v *rankingView) rows(p lab.Preview) {
	for _, c := range p.Candidates {
		ratio := page.None
		if c.Predicted != nil {
			ratio, v.Predicted = fmt.Sprintf("%.2f", *c.Predicted), true
		}
		v.Rows = append(v.Rows, rankRow{ratio, c.Label, strings.Trim(c.Remark(), "()")})
	}
	for _, c := range p.Refused {
		v.Refused = append(v.Refused, refusedRow{c.Label, c.Refused})
	}
	v.Skipped = p.Skipped
}

// costs says what the study may take: launches, and the hours that its budget has.
func (v *rankingView) costs(st *study.Study, p lab.Preview, ranked bool) {
	switch {
	case p.Unlaunched:
		v.Cost = append(v.Cost, "Nothing is launched: the search goes on from these by prediction, and says how far predictions are off.")
	case ranked:
		v.Cost = append(v.Cost, fmt.Sprintf("At most %s: %d for the search with its baseline, and %d kept to confirm the winner and to leave out what it does not need.",
			launches(p.Plan.Launches), p.Plan.Launches-p.Plan.Reserved, p.Plan.Reserved))
	case st.Limits.Trials > 0:
		v.Cost = append(v.Cost, fmt.Sprintf("At most %s.", page.Plural(st.Limits.Trials, "trial")))
	}
	switch {
	case st.Limits.Time > 0:
		v.Cost = append(v.Cost, fmt.Sprintf("It ends within %s, by budget.time.", progress.Brief(st.Limits.Time)))
	case st.Runtime.Kind != study.Predicted:
		v.Cost = append(v.Cost, "Nothing bounds its time: give budget.time where the machine is needed later.")
	}
	if n := st.Hardware.GPUs; st.Limits.Time > 0 && st.Runtime.StartsEngines() && !st.Runtime.Modelled() && !st.OnCPU() {
		v.Cost = append(v.Cost, fmt.Sprintf("That is up to %.1f GPU hours on %d devices.", float64(n)*st.Limits.Time.Hours(), n))
	}
}

func launches(n int) string {
	if n == 1 {
		return "1 launch"
	}
	return fmt.Sprintf("%d launches", n)
}

// shown makes texts of files and machines safe to show.
func (v *rankingView) shown() {
	for _, texts := range [][]string{v.Remarks, v.Machine, v.Earlier, v.Doubts} {
		for i := range texts {
			texts[i] = redact.Shown(redact.Text(texts[i]))
		}
	}
	v.Rows, v.Refused = v.Rows[:min(len(v.Rows), shownRanks)], v.Refused[:min(len(v.Refused), shownRefuse)]
}

// sendRanking is the ranking as a part of the page that has the editor open.
func (s *screen) sendRanking(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	text := strings.ReplaceAll(r.PostForm.Get("study"), "\r\n", "\n")
	v := studyView{Checked: true, Problems: s.wrongWith(text)}
	if len(v.Problems) == 0 {
		ranking, err := s.rank(r.Context(), text)
		if err != nil {
			return err
		}
		v.Ranking = ranking
	}
	part, err := s.Pages.Part(s.study, "checked", v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(part)) // who typed on needs it no more
	return nil
}
