package measure

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"perflab/internal/cli/console"
	"perflab/internal/lab"
	"perflab/internal/replay"
	"perflab/internal/report/finding"
	"perflab/internal/report/progress"
	"perflab/internal/source"
	"perflab/internal/study"
)

// shownRefusals is how many configurations that will not be launched a check
// names; the report of the study has them all.
const shownRefusals = 12

// checkStudy says that a study file is valid, what hardware there is for it and, of a race, what
// it would do.
func checkStudy(ctx context.Context, env console.Env, path string, s *study.Study) error {
	if err := s.Unasked(); err != nil {
		return err
	}
	learned, err := source.Learn(s)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "%s is a valid study of strategy %s\n", path, s.Strategy)
	for _, r := range s.Remarks() {
		fmt.Fprintf(env.Stdout, "warning: %s\n", r)
	}
	for _, line := range lab.LookHere(ctx, s) {
		fmt.Fprintln(env.Stdout, line)
	}
	for _, e := range learned {
		fmt.Fprintln(env.Stdout, finding.Earlier(e))
	}
	v := &tuneView{started: time.Now()}
	v.live = console.StartLive(env, v.text, nil)
	p, ok, err := lab.Rank(ctx, s, replay.Predictor{}, v.watch)
	v.live.End()
	if err == nil && ok {
		err = writePreview(env.Stdout, p)
	}
	if err == nil {
		for _, text := range p.Doubts {
			fmt.Fprintf(env.Stdout, "\nwarning: %s\n", text)
		}
	}
	return err
}

func writePreview(out io.Writer, p lab.Preview) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	how := "Nothing is predicted of them"
	if slices.ContainsFunc(p.Candidates, func(a lab.PreviewCandidate) bool { return a.Predicted != nil }) {
		how = "Predicted by the simulator (SIMULATED), as a multiple of the baseline's objective"
	}
	fmt.Fprintf(w, "\n%s may be raced. %s:\n", console.Plural(len(p.Candidates), "configuration"), how)
	for _, a := range p.Candidates {
		predicted := "-"
		if a.Predicted != nil {
			predicted = fmt.Sprintf("%.2f", *a.Predicted)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", predicted, a.Label, a.Remark())
	}
	if len(p.Candidates) < 2 {
		fmt.Fprint(w, "\nThere is nothing to race: widen space, or name further engines, checkpoints or arms.\n")
	}
	if len(p.Refused) > 0 {
		fmt.Fprintf(w, "\n%s will not be launched:\n", console.Plural(len(p.Refused), "configuration"))
	}
	for i, a := range p.Refused {
		if i == shownRefusals {
			fmt.Fprintf(w, "  and %d more\n", len(p.Refused)-i)
			break
		}
		fmt.Fprintf(w, "  %s:\t%s\n", a.Label, a.Refused)
	}
	if p.Skipped > 0 {
		fmt.Fprintf(w, "\nLeft out of the priors, being of engines or models that the study does not name: %s.\n", console.Plural(p.Skipped, "recipe"))
	}
	if p.Unlaunched {
		fmt.Fprint(w, "\nNothing will be launched: the search goes on from these by prediction, and states how far predictions are off.\n")
		return w.Flush()
	}
	fmt.Fprintf(w, "\nLaunches: at most %d, %d of them for the search with its baseline and %d kept to confirm the winner and to leave out what it does not need%s.\n", p.Plan.Launches, p.Plan.Launches-p.Plan.Reserved, p.Plan.Reserved, bounded(p))
	return w.Flush()
}

// bounded says what else ends the search.
func bounded(p lab.Preview) string {
	var parts []string
	if p.Budget.Trials == 0 {
		parts = append(parts, "fewer when no launch is worth its cost")
	}
	if p.Budget.Time > 0 {
		parts = append(parts, "within "+progress.Brief(p.Budget.Time))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", " + strings.Join(parts, ", ")
}
