// Package finding says in sentences what a study found, which package tune knows as kinds with numbers.
//
//	s = finding.Worded(s)
//	fmt.Println(s.Verdict)
//
// Invariants: a sentence that a study has already stays as it is; a finding says the same wherever it is shown.
//
// Deliberately absent: what is done with the sentences (package report), and every judgement.
package finding

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/tune"
	"perflab/internal/tune/answers"
)

// Worded is a study with the sentences of what it found, where it has none: those
// of a file that has them stay as they are.
func Worded(s outcome.Study) outcome.Study {
	w := wording{metric: s.Objective.Metric, higher: s.Objective.Better == "higher"}
	if s.Predicted {
		w.how = "predicted"
	}
	s.Stages = slices.Clone(s.Stages)
	for i := range s.Stages {
		st := &s.Stages[i]
		if st.Result != "" || st.Finding == nil {
			continue
		}
		st.Result = w.verdict(*st.Finding, nil)
		for _, e := range st.Skipped {
			st.Result += fmt.Sprintf("; %s was %s", e.Label, w.note(e.Finding))
		}
	}
	var holdOuts []tune.Comparison
	if s.Race != nil {
		s.Race = w.race(*s.Race)
		holdOuts = s.Race.HoldOuts
	}
	if s.Forecast != nil {
		k := *s.Forecast
		k.Settings, k.Named = slices.Clone(k.Settings), slices.Clone(k.Named)
		for i := range k.Settings {
			k.Settings[i].Reason = cmp.Or(k.Settings[i].Reason, w.setting(k.Settings[i].Finding))
		}
		for i := range k.Named {
			k.Named[i].Note = cmp.Or(k.Named[i].Note, w.candidate(k.Named[i].Finding))
		}
		s.Forecast = &k
	}
	if s.Conclusion != nil && s.Verdict == "" {
		s.Verdict = w.verdict(*s.Conclusion, holdOuts)
	}
	return s
}

// race is a race with its sentences.
func (w wording) race(r outcome.Race) *outcome.Race {
	r.Candidates, r.Steps, r.Ablation = slices.Clone(r.Candidates), slices.Clone(r.Steps), slices.Clone(r.Ablation)
	r.Unlaunched = slices.Clone(r.Unlaunched)
	r.Comparisons, r.HoldOuts, r.Accuracy = slices.Clone(r.Comparisons), slices.Clone(r.HoldOuts), slices.Clone(r.Accuracy)
	for i := range r.Candidates {
		c := &r.Candidates[i]
		c.Reason = cmp.Or(c.Reason, w.candidate(c.Finding))
	}
	for i := range r.Unlaunched {
		e := &r.Unlaunched[i]
		e.Note = cmp.Or(e.Note, w.candidate(e.Finding))
	}
	for i := range r.Steps {
		e := &r.Steps[i]
		e.Note = cmp.Or(e.Note, w.note(e.Finding))
	}
	for i := range r.Ablation {
		a := &r.Ablation[i]
		a.Reason = cmp.Or(a.Reason, w.setting(a.Finding))
	}
	for _, all := range [][]tune.Comparison{r.Comparisons, r.HoldOuts} {
		for i := range all {
			all[i].Sentence = cmp.Or(all[i].Sentence, w.comparison(all[i]))
		}
	}
	for i := range r.Accuracy {
		p := &r.Accuracy[i]
		p.Sentence = cmp.Or(p.Sentence, pairedTest(*p))
	}
	r.Stopped = cmp.Or(r.Stopped, w.stop(r.Stop))
	return &r
}

// wording writes sentences about an objective.
type wording struct {
	metric string
	higher bool   // is more better
	how    string // figures were found; "": measured
}

// verdict is what a study or a stage of it concluded; holdOuts are compared in it
// where something else than the baseline is recommended.
func (w wording) verdict(f tune.Finding, holdOuts []tune.Comparison) string {
	text := w.stage(f)
	for _, of := range []func(tune.Finding) string{w.progress, w.single, w.stagedStudy, w.baselineStays, w.predicted} {
		if text == "" {
			text = of(f)
		}
	}
	if text == "" {
		text = w.raceWon(f) + w.lost(f, holdOuts)
	}
	switch {
	case f.Kind == tune.NothingYet && f.After == nil:
		return "not finished: " + text
	case f.After != nil && f.Of > 0:
		return fmt.Sprintf("not finished after %d of %s: %s", *f.After, counted(f.Of, "configuration"), text)
	case f.After != nil:
		return fmt.Sprintf("not finished after %s: %s", counted(*f.After, "trial"), text)
	}
	return text
}

// stage is what a stage of a staged search concluded.
func (w wording) stage(f tune.Finding) string {
	switch f.Kind {
	case tune.StageOpen:
		return fmt.Sprintf("not finished: %d of %d candidates are in", f.N, f.Of)
	case tune.StageEmpty:
		why := "no other candidate was measured"
		if f.Name != "" {
			why = fmt.Sprintf("no other candidate could be measured (%s %s)", f.Name, w.note(f.Cause))
		}
		if f.Against == "" {
			return "still no configuration could be measured: " + why
		}
		return f.Against + " stays: " + why
	case tune.StageFirst:
		return fmt.Sprintf("%s goes on as the best that could be measured: %s %s, and nothing to compare it with", f.Name, w.metric, sixDigits(*f.Value))
	case tune.StageNoGain:
		return fmt.Sprintf("no difference shown: %s, not more than the %s asked for, so %s stays", w.pair(f.Pair), signedPercent(*f.Value), f.Pair.Against)
	case tune.StageStays:
		return fmt.Sprintf("%s stays: %s%s", f.Pair.Against, w.pair(f.Pair), w.byBounds(f.Pair))
	case tune.StageGoesOn:
		text := fmt.Sprintf("%s goes on: it %s%s", f.Pair.Name, w.against(f.Pair), w.byBounds(f.Pair))
		if f.Total != nil {
			text += ", and " + w.against(f.Total)
		}
		return text
	}
	return ""
}

// progress is said of a study that is not finished, or that measured nothing.
func (w wording) progress(f tune.Finding) string {
	switch f.Kind {
	case tune.NothingYet:
		return "nothing is measured yet"
	case tune.BaselineLeads:
		return "nothing beats the baseline yet"
	case tune.CandidateLeads:
		switch {
		case f.Pair != nil:
			return w.pair(f.Pair) + ", measured once"
		case f.Cause != nil:
			return fmt.Sprintf("%s leads, measured once, and the baseline ended %s", f.Name, w.note(f.Cause))
		}
		if f.Ratio != nil {
			return fmt.Sprintf("%s leads so far: %s on %s over the baseline by launches of the search, not confirmed", f.Name, w.ratio(*f.Ratio), w.metric)
		}
		return f.Name + " leads, not confirmed"
	case tune.NothingMeasured:
		return fmt.Sprintf("nothing could be measured: %s ended %s", cmp.Or(f.Against, "the first configuration"), w.note(f.Cause))
	case tune.NothingAcceptable:
		if f.Name != "" {
			return fmt.Sprintf("nothing is recommended: the baseline ended %s, and nothing was left to hold %s against, which was measured", w.note(f.Cause), f.Name)
		}
		return "nothing is recommended: what could be measured is not acceptable, and the baseline ended " + w.note(f.Cause)
	}
	return ""
}

// noGain says that there is no baseline to compare with.
func (w wording) noGain(f tune.Finding) string {
	return fmt.Sprintf("the baseline ended %s, so no gain can be given", w.note(f.Cause))
}

// single is the verdict of a search that measures each configuration once.
func (w wording) single(f tune.Finding) string {
	text := ""
	switch f.Kind {
	case tune.NothingBeside:
		return "no configuration has figures beside the baseline"
	case tune.SurveyBest:
		return fmt.Sprintf("%s has the best %s of %s on %s, %s, each %s once", f.Name, w.metric, counted(f.N, "configuration"), f.Workload, sixDigits(*f.Value), cmp.Or(w.how, "measured")) + missesSLOs(f.Misses)
	case tune.BaselineUnbeaten:
		if f.Value == nil {
			return "" // of a staged search
		}
		text = fmt.Sprintf("no difference shown: of %s none beats the baseline, with %s of %s; nothing was repeated", counted(f.N, "other configuration"), sixDigits(*f.Value), w.metric)
	case tune.SearchBest:
		if f.Pair != nil {
			text = fmt.Sprintf("%s, the best of %s", w.pair(f.Pair), counted(f.N, "single measurement"))
		} else {
			text = fmt.Sprintf("%s has %s of %s, the best of %s, and %s", f.Name, sixDigits(*f.Value), w.metric, counted(f.N, "single measurement"), w.noGain(f))
		}
		text += "; nothing was repeated, so a part of the gain may be luck"
	default:
		return ""
	}
	return text + missesSLOs(f.Misses)
}

// stagedStudy is the verdict of a staged search.
func (w wording) stagedStudy(f tune.Finding) string {
	again := ", confirmed on fresh seeds"
	if !f.Fresh {
		again = fmt.Sprintf(", whose second measurement has no figure (%s)", w.note(f.Cause))
	}
	misses := missesSLOs(f.Misses)
	switch f.Kind {
	case tune.NothingElse:
		return "no difference shown: no other configuration has figures beside the baseline" + again + misses
	case tune.BaselineUnbeaten:
		return fmt.Sprintf("no difference shown: of %s none beats the baseline%s%s", counted(f.N, "other configuration"), again, misses)
	case tune.NotConfirmed:
		return fmt.Sprintf("not confirmed: in the search %s, but the second measurement of %s has no figure (%s), so the baseline stays", w.pair(f.Pair), f.Name, w.note(f.Cause))
	case tune.Confirmed:
		return fmt.Sprintf("%s%s, confirmed on fresh seeds, the best of %s%s", w.pair(f.Repeated), w.byBounds(f.Repeated), counted(f.N, "other configuration"), misses)
	case tune.NotRepeated:
		return fmt.Sprintf("no difference shown: in the search %s, but measured again %s%s, so the baseline stays%s", w.pair(f.Pair), w.pair(f.Repeated), w.byBounds(f.Repeated), misses)
	case tune.NoBaselineAgain:
		text := "nothing is recommended: " + w.noGain(f)
		if f.Name == "" {
			return text + ", and what led could not be measured again"
		}
		return fmt.Sprintf("%s, and the second measurement of %s has no figure (%s)", text, f.Name, w.note(f.Again))
	}
	return ""
}

// baselineStays is the verdict of a race that recommends no other.
func (w wording) baselineStays(f tune.Finding) string {
	of, misses := counted(f.N, "other configuration"), missesSLOs(f.Misses)
	switch f.Kind {
	case tune.NoneUsable:
		return fmt.Sprintf("no difference shown: of %s none could be measured and may be recommended%s", of, misses)
	case tune.BaselineLost:
		return fmt.Sprintf("not confirmed: %s led the search, but the baseline measured again ended %s, so nothing could be compared and the baseline stays", f.Name, w.note(f.Cause))
	case tune.LeaderLost:
		return fmt.Sprintf("not confirmed: %s led the search, but measured again it ended %s, so the baseline stays%s", f.Name, w.note(f.Cause), misses)
	case tune.OneLaunch:
		return fmt.Sprintf("not confirmed: of the launches to confirm %s only one has figures, so the baseline stays%s", f.Name, misses)
	case tune.Incomparable:
		return fmt.Sprintf("not confirmed: %s led the search, but %s, so the baseline stays%s", f.Name, f.Reason, misses)
	case tune.NotRecommended:
		return fmt.Sprintf("no other configuration is recommended: %s, the best of %s, %s, so the baseline stays%s", f.Name, of, w.obstacle(f.Cause), misses)
	case tune.BudgetTooSmall:
		needs := ""
		if ratio := f.Comparison.Ratio.Value; ratio > 1 {
			needs = fmt.Sprintf(" (an effect of the size seen, %s, needs more launches)", signedPercent(ratio-1))
		}
		return fmt.Sprintf("%s: %s%s; the baseline stays%s", f.Name, w.comparison(*f.Comparison), needs, misses)
	case tune.NoGainShown:
		return fmt.Sprintf("no gain shown: %s, the best of %s, is %s; the baseline stays%s", f.Name, of, w.comparison(*f.Comparison), misses)
	}
	return ""
}

// raceWon is the verdict by which something else than the baseline is recommended.
func (w wording) raceWon(f tune.Finding) string {
	switch f.Kind {
	case tune.ShownBetter:
		return fmt.Sprintf("%s is %s; the best of %s", f.Name, w.comparison(*f.Comparison), counted(f.N, "other configuration"))
	case tune.BetterByBound:
		b := f.Bound
		mine, theirs := keptFigure(b.Bound), keptFigure(b.Other)
		text := fmt.Sprintf("%s comes nearer to %s than the baseline: %s against %s", f.Name, b.Bound.Bound, mine, theirs)
		if b.Bound.Held {
			text = fmt.Sprintf("%s meets %s, which the baseline misses: %s against %s", f.Name, b.Bound.Bound, mine, theirs)
		}
		if f.Comparison != nil {
			text += fmt.Sprintf("; it is at %s on %s", w.ratio(f.Comparison.Ratio), w.metric)
		}
		return text
	case tune.NoBaseline:
		fresh, value := "", 0.0
		if f.Fresh {
			fresh = " (confirmed on fresh seeds)"
		}
		if f.Value != nil {
			value = *f.Value
		}
		return fmt.Sprintf("%s is the best of %s that could be measured, with %s of %s%s; %s", f.Name, counted(f.N, "configuration"), sixDigits(value), w.metric, fresh, w.noGain(f))
	}
	return string(f.Kind)
}

// lost ends a verdict with hold-outs that the winner loses, and constraints it
// misses.
func (w wording) lost(f tune.Finding, holdOuts []tune.Comparison) string {
	var worse, others []string
	for _, d := range holdOuts {
		switch d.Verdict {
		case tune.Worse:
			worse = append(worse, fmt.Sprintf("%s (%s)", d.Workload, signedPercent(d.Ratio.Value-1)))
		case tune.Missed, tune.Unknown:
			others = append(others, fmt.Sprintf("; on %s it %s", d.Workload, cmp.Or(d.Sentence, w.comparison(d))))
		}
	}
	text := ""
	if len(worse) > 0 {
		text = "; it loses on " + strings.Join(worse, ", ")
	}
	text += strings.Join(others, "")
	var unsteady []string
	for _, k := range f.Unsteady {
		unsteady = append(unsteady, k.Bound+": "+keptFigure(k))
	}
	if len(unsteady) > 0 {
		text += "; not every launch meets " + strings.Join(unsteady, "; ")
	}
	return text + missesSLOs(f.Misses)
}

// comparison is what launches of two configurations show.
func (w wording) comparison(c tune.Comparison) string {
	if c.Verdict == "" {
		return ""
	}
	text := w.byObjective(c)
	if c.Later {
		text += ", launched after the others"
	}
	if c.Obstacle != nil {
		return w.obstacle(c.Obstacle) + "; " + text
	}
	var parts []string
	for _, k := range c.Misses {
		parts = append(parts, fmt.Sprintf("misses %s, which the baseline meets: %s", k.Bound, keptFigure(k)))
	}
	return strings.Join(append(parts, text), "; ")
}

func (w wording) byObjective(c tune.Comparison) string {
	gain := w.ratio(c.Ratio)
	n := fmt.Sprintf("%d and %s", len(c.Trials), counted(len(c.Others), "launch"))
	if len(c.Trials) == len(c.Others) {
		n = counted(len(c.Trials), "launch") + " each"
	}
	matters := 1 + c.MinGain
	how := ""
	switch v := cmp.Or(c.ByObjective, c.Verdict); {
	case v == tune.Unknown:
		return "cannot be compared: " + c.Reason
	case v == tune.Better:
		how = "better than " + c.Against
	case v == tune.Worse:
		how = "worse than " + c.Against
	case v == tune.NoDifference && c.Ratio.Low > 1:
		how = fmt.Sprintf("better than %s by less than the %s that matters", c.Against, strings.TrimPrefix(signedPercent(matters-1), "+"))
	case v == tune.NoDifference && c.Ratio.Low <= 1/matters:
		how = fmt.Sprintf("not better than %s by what matters", c.Against)
	case v == tune.NoDifference:
		how = fmt.Sprintf("no difference shown to %s that matters", c.Against)
	default:
		if c.Most > 0 {
			return fmt.Sprintf("no gain shown: %s on %s against %s by %s; the %d launches each that the budget has show an effect of %s or more 4 times in 5, and none was to be expected any more", gain, w.metric, c.Against, n, c.Most, signedPercent(c.Shown))
		}
		return fmt.Sprintf("the budget was too small: %s on %s against %s, and %s show an effect of %s or more 4 times in 5", gain, w.metric, c.Against, n, signedPercent(c.Shown))
	}
	return fmt.Sprintf("%s: %s on %s (%s)", how, gain, w.metric, n)
}

// ratio is a ratio with its interval: in percent where more is better, else how many
// times better, since "+79 %" of a latency reads as a loss.
func (w wording) ratio(s tune.Span) string {
	if !w.higher {
		return fmt.Sprintf("%.3gx better [%.3g, %.3g]", s.Value, s.Low, s.High)
	}
	bare := func(gain float64) string { return strings.TrimSuffix(signedPercent(gain), " %") }
	return fmt.Sprintf("%s [%s, %s]", signedPercent(s.Value-1), bare(s.Low-1), bare(s.High-1))
}

// Ratio is a ratio with its interval as findings say it; without one, whose ends are 0, the
// value alone.
func Ratio(s tune.Span, higher bool) string {
	w := wording{higher: higher}
	text := w.ratio(s)
	if s.Low == 0 && s.High == 0 {
		text, _, _ = strings.Cut(text, " [")
	}
	return text
}

// pair is how one configuration stands against another, by one measurement of each.
func (w wording) pair(p *tune.Pair) string { return p.Name + " " + w.against(p) }

// against is pair without its subject.
func (w wording) against(p *tune.Pair) string {
	values := fmt.Sprintf("%s against %s", sixDigits(p.Value), sixDigits(p.Other))
	gain := tune.Objective{Metric: w.metric, Higher: w.higher}.Gain(map[string]float64{w.metric: p.Other}, map[string]float64{w.metric: p.Value})
	switch {
	case p.Value == p.Other:
		return fmt.Sprintf("equals %s on %s (%s)", p.Against, w.metric, sixDigits(p.Value))
	case gain == nil:
		return fmt.Sprintf("stands at %s of %s for %s", values, w.metric, p.Against)
	case w.higher:
		return fmt.Sprintf("is %s on %s over %s (%s)", signedPercent(*gain), w.metric, p.Against, values)
	case *gain > 0:
		return fmt.Sprintf("is %sx better on %s than %s (%s)", factor(p.Other/p.Value), w.metric, p.Against, values)
	}
	return fmt.Sprintf("is %sx worse on %s than %s (%s)", factor(p.Value/p.Other), w.metric, p.Against, values)
}

// byBounds says why the SLOs, and not the objective, put one of a pair above the
// other; nothing if they did not.
func (w wording) byBounds(p *tune.Pair) string {
	below := p.Against
	if p.Above == p.Against {
		below = p.Name
	}
	misses := strings.Join(missed(p.Misses), "; ")
	switch {
	case p.Above == "":
		return ""
	case p.Nearer:
		return fmt.Sprintf(", and %s is nearer to the SLOs, which neither meets (%s: %s)", p.Above, below, misses)
	}
	return fmt.Sprintf(", and %s meets every SLO, which %s does not (%s)", p.Above, below, misses)
}

// missesSLOs ends a verdict whose winner misses an SLO.
func missesSLOs(misses []tune.Constraint) string {
	if len(misses) == 0 {
		return ""
	}
	return "; not every SLO is met: " + strings.Join(missed(misses), ", ")
}

// missed are bounds with the figures that miss them.
func missed(misses []tune.Constraint) []string {
	var out []string
	for _, k := range misses {
		out = append(out, k.Bound+" is missed: "+keptFigure(k))
	}
	return out
}

// keptFigure is the figure of a bound and, of several launches, how often it was met.
func keptFigure(k tune.Constraint) string {
	figure := "no figure"
	if k.Mean != nil {
		figure = sixDigits(*k.Mean)
	}
	if k.Launches == 0 {
		return figure
	}
	if k.Mean != nil {
		figure += " on average"
	}
	return fmt.Sprintf("%s, met in %d of %s", figure, k.Met, counted(k.Launches, "launch"))
}

// pairedTest is what answers show, to a reader who knows whose they are.
func pairedTest(d answers.Test) string {
	text := "is not accepted: " + d.Reason
	switch {
	case d.Reason == "" && d.Questions == 0:
		return ""
	case d.Reason == "":
		text = pairedChange(d)
	}
	if d.Asked != "" {
		text += fmt.Sprintf("; %s was asked, which answers alike", d.Asked)
	}
	return text
}

func pairedChange(d answers.Test) string {
	rounds := max(1, d.Rounds)
	asked := fmt.Sprintf("%d questions", d.Questions/rounds)
	if rounds > 1 {
		asked += fmt.Sprintf(" asked %d times", rounds)
	}
	change := fmt.Sprintf("loses %s points [at most %s] of", inPoints(max(0, -d.Change)), inPoints(-d.Low))
	switch {
	case d.Low > 0:
		change = fmt.Sprintf("gains %s points [at least %s] over", inPoints(d.Change), inPoints(d.Low))
	case d.Change > 0:
		change = fmt.Sprintf("gains %s points [or loses at most %s] over", inPoints(d.Change), inPoints(-d.Low))
	}
	allowed := inPoints(d.Margin) + " points allowed"
	margin := "so that a loss of more than the " + allowed + " is not ruled out"
	switch {
	case d.Accepted:
		margin = "within the " + allowed
	case -d.Change > d.Margin:
		margin = "more than the " + allowed
	}
	p := fmt.Sprintf("%.2g", d.P)
	if d.P < 0.001 {
		p = "below 0.001"
	}
	right := 100 * float64(d.Base) / float64(d.Questions)
	text := fmt.Sprintf("%s %.1f %% on %s, %s (standard error %s, McNemar p %s)", change, right, asked, margin, inPoints(d.Error), p)
	if d.Needed > 0 {
		text += fmt.Sprintf("; about %d questions would tell", d.Needed)
	}
	return text
}

// inPoints prints a share in points: 3.5 of 0.035, 2 of 0.02.
func inPoints(share float64) string {
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%.1f", 100*share), "-"), ".0")
}

// signedPercent prints a gain, with more digits where one would show none.
func signedPercent(gain float64) string {
	if p := 100 * gain; math.Abs(p) < 0.05 {
		return fmt.Sprintf("%+.2g %%", p)
	}
	return fmt.Sprintf("%+.1f %%", 100*gain)
}

// factor prints a ratio above 1, with more digits where two would show 1.
func factor(ratio float64) string {
	if ratio < 1.005 {
		return sixDigits(ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

// sixDigits prints a figure with the digits that a reader can use.
func sixDigits(x float64) string {
	if a := math.Abs(x); a >= 1e6 && a < 1e15 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// counted is a number with its noun.
func counted(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
