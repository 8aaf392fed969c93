package measure

import (
	"errors"
	"fmt"

	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/load"
	"perflab/internal/result"
)

// exitRule is how bench ends, in its help.
const exitRule = `Exit status, the first that applies to the run:
  130  it was interrupted
  1    more than --max-error-rate of its calls failed, or all
  4    it is void, or a pod of --kube-service was replaced in the middle
  3    it missed an SLO
  0    none of these
--repeat goes by all of its runs. --sweep ends with 4 when a run is void, and with
1 or 3 when no load meets what was asked. --find-max ends with 4 when a load was
void twice in a row, and with 3 when the lowest load misses.`

// showSLOs prints a line for each bound, whether it could be judged or not.
func showSLOs(env console.Env, bounds []result.SLO, p bench.Point) {
	why := ""
	switch {
	case p.Partial:
		why = "the run was stopped before its end"
	case p.End() == bench.Failed:
		why = "too many calls failed"
	case p.End() == bench.Voided:
		why = "the measurement is void"
	}
	for _, slo := range bounds {
		_, sentence := slo.Judge(p.Summary)
		if why != "" {
			sentence = fmt.Sprintf("%s: not judged, %s", slo, why)
		}
		fmt.Fprintln(env.Stdout, "SLO:", sentence)
	}
}

// judgeRun decides the exit status of a run that came to its end.
func judgeRun(p bench.Point, bounds int, maxErrors float64) error {
	v := p.Summary.Verdict
	switch p.End() {
	case bench.Failed:
		why, _ := v.Check(result.CheckFailures)
		failed, done := p.Summary.Figures["failed"], p.Summary.Figures["completed"]
		return fmt.Errorf("too many calls failed (%.3g %%, --max-error-rate allows %.3g %%): %s", 100*failed/(failed+done), 100*maxErrors, why.Text)
	case bench.Voided:
		return voidError("", v)
	case bench.Missed:
		return fmt.Errorf("%w: %d of %d bounds", console.ErrMissed, len(p.Missed), bounds)
	}
	return nil
}

// judgeSeries decides the exit status of a series that came to its end, by the ends of
// its runs.
func judgeSeries(facts *bench.SeriesFacts) error {
	of := map[bench.End][]bench.Point{}
	answered := false
	for _, p := range facts.Points {
		of[p.End()] = append(of[p.End()], p)
		answered = answered || p.Summary.Figures["completed"] > 0
	}
	last := facts.Points[len(facts.Points)-1].Summary.Verdict
	failed, void := of[bench.Failed], of[bench.Voided]
	some := func(points []bench.Point) string {
		return fmt.Sprintf("%s, %d of %d runs", points[0].Load, len(points), len(facts.Points))
	}
	switch code := facts.Stop.Code; {
	case !answered:
		why, _ := last.Check(result.CheckFailures)
		return fmt.Errorf("no call of any run succeeded: %s", why.Text)
	case code == bench.StopClient, code == bench.StopVoid:
		return voidError("", last)
	case code == bench.StopLowest:
		return fmt.Errorf("%w: %s", console.ErrMissed, facts.Stop.Text)
	case facts.Kind == bench.KindFindMax:
		return nil // its void runs were measured again, and loads that miss are what it looks for
	case facts.Kind == bench.KindRepeat && len(failed) > 0:
		return fmt.Errorf("too many calls failed in %d of %d runs", len(failed), len(facts.Points))
	case len(void) > 0:
		return voidError(some(void), void[0].Summary.Verdict)
	case code == bench.StopNoAnchors:
		return errors.New(facts.Stop.Text)
	case len(failed) == len(facts.Points):
		return fmt.Errorf("too many calls failed at every load, of the lowest: %s", failed[0].Missed[len(failed[0].Missed)-1])
	case facts.Kind == bench.KindRepeat && len(of[bench.Missed]) > 0, len(of[bench.Met]) == 0:
		return fmt.Errorf("%d of %d runs: %w", len(facts.Points)-len(of[bench.Met]), len(facts.Points), console.ErrMissed)
	}
	return nil
}

// voidError is the error of a void run; which says which one of several it is.
func voidError(which string, v result.Verdict) error {
	reason := v.Why()
	if which != "" {
		reason = which + ": " + reason
	}
	return &load.VoidError{Reason: reason, Do: remedy(v)}
}

// remedy is what helps against a void measurement when the load generator is
// to blame; when the server is, the verdict says all there is to say.
func remedy(v result.Verdict) string {
	for _, name := range []string{"dispatch_lag", "client_cpu", "scheduler"} {
		if c, ok := v.Check(name); ok && c.Status == result.Voided {
			return "leave the load generator's machine more CPU, or use a lower rate, and measure again"
		}
	}
	return ""
}
