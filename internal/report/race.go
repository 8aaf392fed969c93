package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/report/finding"
	"perflab/internal/report/plot"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// race is a study by strategy race.
type race struct{ study }

// answers are what a reader asks first.
func (x race) answers() doc.Definitions {
	all := append(doc.Definitions{x.gained()}, x.heldOut()...)
	all = append(all, x.constraints(), x.accuracyAnswer(), x.changed(), x.dropped(), x.untested(), x.spentOn(), x.tried(), x.noise(), doc.Definition{Name: "Machines", Text: finding.Machines(x.Study)}, doc.Definition{Name: "Search ended", Text: x.sentence(x.Race.Stopped)}, doc.Definition{Name: "Learned from", Text: finding.Learned(x.Earlier)})
	return slices.DeleteFunc(all, func(t doc.Definition) bool { return t.Text == "" })
}

// chapters are what stands behind the conclusion.
func (x race) chapters() []doc.Chapter {
	all := []doc.Chapter{holdOutChapter(x), ablationChapter(x), accuracyChapter(x), frontChapter(x), candidateChapter(x), stepChapter(x), failureChapter(x), predictionChapter(x), earlierChapter(x)}
	return slices.DeleteFunc(all, func(c doc.Chapter) bool { return c.Heading == "" })
}

// plots are those of the chapters, in their order.
func (x race) plots() []plot.Plot {
	out := slices.Clone(comparisonChapter(x).Plots)
	for _, c := range x.chapters() {
		out = append(out, c.Plots...)
	}
	return out
}

// ofLaunches says of how many launches the figures of the two sides are, where
// the gains are of more.
func (x race) ofLaunches() string {
	p := x.Recommended
	if p == nil || x.Baseline == nil || p.Launches <= 1 || x.keepsBaseline() {
		return ""
	}
	return fmt.Sprintf("The figures are of one launch of each side (#%d and #%d); the gains are of all launches that were repeated.", x.Baseline.Trial, p.Trial)
}

// finalComparison is the comparison of the recommended configuration with the
// baseline, or nil.
func (x race) finalComparison() *tune.Comparison {
	if x.Race == nil || x.Recommended == nil || x.Baseline == nil || x.keepsBaseline() {
		return nil
	}
	all := x.Race.Comparisons
	for _, same := range []func(tune.Comparison) bool{
		func(c tune.Comparison) bool {
			return slices.Contains(c.Trials, x.Recommended.Trial) && slices.Contains(c.Others, x.Baseline.Trial)
		},
		func(c tune.Comparison) bool { return c.Label == x.Recommended.Label && c.Against == x.Baseline.Label },
	} {
		if i := slices.IndexFunc(all, same); i >= 0 {
			return &all[i]
		}
	}
	return nil
}

// sure is the gain, and how sure it is.
func (x race) sure() (gain, how string) {
	r := x.Recommended
	switch {
	case r == nil:
		return "", ""
	case x.keepsBaseline() && x.Partial:
		return "none yet", "the study is not finished"
	case x.keepsBaseline():
		return "none", "the baseline stays"
	case r.Gain == nil && (x.Baseline == nil || x.Baseline.Summary == nil):
		return "not known", "the baseline has no figures"
	case r.Gain == nil:
		return "not known", "no figure can be given"
	case r.Interval == nil && r.Launches <= 1:
		return x.gain(r.Gain), "no interval: the launches were not repeated"
	case r.Interval == nil:
		return x.gain(r.Gain), fmt.Sprintf("%d launches each, no interval", r.Launches)
	}
	how = x.brackets(*r.Gain, *r.Interval)
	c := x.finalComparison()
	switch {
	case c != nil && len(c.Trials) != len(c.Others):
		how += fmt.Sprintf(", %d launches against %d of the baseline", len(c.Trials), len(c.Others))
	case r.Launches > 1:
		how += fmt.Sprintf(", %d launches each", r.Launches)
	}
	if c != nil {
		how += corrected(*c)
	}
	if x.weighed() {
		how += ", weighted over the workloads"
	}
	return x.gain(r.Gain), how
}

// gained is the gain in one line.
func (x race) gained() doc.Definition {
	gain, how := x.sure()
	if gain == "" {
		return doc.Definition{}
	}
	sep := ": "
	if strings.HasPrefix(how, "[") {
		sep = " "
	}
	return doc.Definition{Name: "Gain", Text: gain + sep + how, Tone: x.gainTone()}
}

// corrected says for how many comparisons, and looks at them, an interval was widened.
func corrected(c tune.Comparison) string {
	var parts []string
	if c.Family > 1 {
		parts = append(parts, fmt.Sprintf("%d comparisons", c.Family))
	}
	if c.Looks > 1 {
		parts = append(parts, fmt.Sprintf("%d looks", c.Looks))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", corrected for " + strings.Join(parts, " and ")
}

// changed names the parameters in which the recommendation differs from the
// baseline.
func (x race) changed() doc.Definition {
	if x.Recommended == nil || x.Baseline == nil || x.keepsBaseline() {
		return doc.Definition{}
	}
	to, from := x.trials[x.Recommended.Trial], x.trials[x.Baseline.Trial]
	if to == nil || from == nil {
		return doc.Definition{}
	}
	return doc.Definition{Name: "What changes", Text: strings.Join(changes(from.Config, to.Config), ", ")}
}

// heldOut says in words how the recommendation does on the further workloads:
// losses apart, so that nobody overlooks them.
func (x race) heldOut() doc.Definitions {
	if x.keepsBaseline() || x.Recommended == nil {
		return nil
	}
	each := x.byWorkload()
	switch {
	case len(x.Race.HoldOuts) > 0:
	case x.weighed() && len(x.Objective.Weights) >= len(x.Workloads):
		return each
	case len(x.Workloads) > 1:
		return append(each, doc.Definition{Name: "Other workloads", Text: "not measured: how far the gain carries is not known"})
	default:
		return doc.Definitions{{Name: "Other workloads", Text: "none in this study: the gain is known of " + x.workload(x.primary) + " alone"}}
	}
	words := []struct{ verdict, text string }{
		{tune.Worse, "WORSE than the baseline on"}, {tune.Missed, "MISSES A CONSTRAINT on"}, {tune.Unknown, "NOT COMPARED on"}, {tune.TooSmall, "too few launches to tell on"}, {tune.NoDifference, "no difference shown on"}, {tune.Better, "better on"},
	}
	var losses, rest []string
	for _, w := range words {
		var on []string
		for _, c := range x.Race.HoldOuts {
			switch {
			case c.Verdict != w.verdict:
			case known(c.Ratio):
				on = append(on, x.workload(c.Workload)+" ("+x.gainOf(c.Ratio)+")")
			default:
				on = append(on, x.workload(c.Workload)+" ("+c.Sentence+")")
			}
		}
		switch text := w.text + " " + strings.Join(on, ", "); {
		case len(on) == 0:
		case verdictTone(w.verdict) == "down":
			losses = append(losses, text)
		default:
			rest = append(rest, text)
		}
	}
	return append(each, doc.Definitions{{Name: "Loss", Text: strings.Join(losses, "; "), Tone: "down"}, {Name: "Other workloads", Text: strings.Join(rest, "; ")}}...)
}

// byWorkload is what a gain over weighted workloads is made of: one of them may
// lose.
func (x race) byWorkload() doc.Definitions {
	a := doc.Definition{Name: "By workload"}
	var parts []string
	for _, c := range x.Cases {
		if !x.weighed() || x.Objective.Weights[c.Workload] <= 0 || c.Gain == nil {
			continue
		}
		text := x.workload(c.Workload) + " " + x.gain(c.Gain)
		if *c.Gain < 0 {
			a.Tone, text = "down", text+" (WORSE)"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return nil
	}
	a.Text = strings.Join(parts, ", ") + "; of one launch of each side"
	return doc.Definitions{a}
}

// dropped names the settings that the ablation took away.
func (x race) dropped() doc.Definition {
	var all []string
	for _, d := range x.Race.Ablation {
		if !d.Dropped {
			continue
		}
		text := doc.OneLine(d.Setting)
		if d.Gain != nil {
			text += " (brings " + percent(d.Gain.Value) + wavering(*d.Gain) + ")"
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return doc.Definition{}
	}
	text := "for bringing nothing that can be shown: " + strings.Join(all, ", ")
	if p := x.Recommended; p != nil && x.trials[p.Trial] != nil && x.trials[p.Trial].Command != p.Command {
		text += fmt.Sprintf("; the figures are of launches that still had it, such as #%d", p.Trial)
	}
	return doc.Definition{Name: "Dropped", Text: text}
}

// untested names the settings of the recommendation that were launched as a part of it alone.
func (x race) untested() doc.Definition {
	var all []string
	for _, a := range x.Race.Ablation {
		if untested(a) {
			all = append(all, doc.OneLine(a.Setting))
		}
	}
	if len(all) == 0 || x.Recommended == nil || x.keepsBaseline() {
		return doc.Definition{}
	}
	return doc.Definition{Name: "Not tested alone", Text: strings.Join(all, ", ") + ": launched as a part of the command, so what each brings by itself is not known"}
}

// untested reports whether nothing is known of a setting by itself: older files have no
// more than that there is no launch.
func untested(a tune.Ablation) bool {
	if a.Dropped || a.Gain != nil || a.Trial != 0 {
		return false
	}
	return a.Finding == nil || a.Finding.Kind != tune.NeededRefused && a.Finding.Kind != tune.NeededEnded && a.Finding.Kind != tune.NeededBounds
}

// wavering is the interval of a gain in percent, "" for none.
func wavering(s tune.Span) string {
	if !(s.Low < s.High) {
		return ""
	}
	return fmt.Sprintf(" [%+.1f, %+.1f]", 100*s.Low, 100*s.High)
}

// accuracyBound begins a bound on the answers to questions.
const accuracyBound = "accuracy"

// constraints says which bounds the recommendation meets.
func (x race) constraints() doc.Definition {
	a := doc.Definition{Name: "Constraints"}
	if x.Recommended == nil {
		return doc.Definition{}
	}
	var parts []string
	for _, k := range x.Race.Constraints {
		text, met := constraintText(k)
		if parts = append(parts, text); !met {
			a.Tone = "down"
		}
	}
	for _, text := range x.Objective.SLOs {
		if len(x.Race.Constraints) > 0 && !strings.HasPrefix(text, accuracyBound) {
			continue // told by the launches that were repeated
		}
		slo, err := result.ParseSLO(text)
		judged := slices.IndexFunc(x.Recommended.SLOs, func(j outcome.Judged) bool { return j.SLO == text })
		switch {
		case err != nil && judged >= 0:
			j := x.Recommended.SLOs[judged]
			if !j.Met {
				a.Tone, j.Why = "down", strings.Replace(j.Why, "missed", "MISSED", 1)
			}
			parts = append(parts, j.Why)
		case err != nil && strings.HasPrefix(text, accuracyBound):
			parts = append(parts, text+": see accuracy")
		case err != nil:
			parts = append(parts, text+": judged against the baseline's launches")
		case x.Recommended.Summary == nil:
			parts = append(parts, text+": no figure")
		default:
			met, why := slo.Judge(*x.Recommended.Summary)
			if !met {
				a.Tone, why = "down", strings.Replace(why, "missed", "MISSED", 1)
			}
			parts = append(parts, why)
		}
	}
	if c := x.finalComparison(); c != nil && c.Verdict == tune.Missed {
		a.Tone, parts = "down", append(parts, c.Sentence)
	}
	a.Text = strings.Join(parts, "; ")
	return a
}

// constraintText says how repeated launches keep a bound; false where they do not, or not all.
func constraintText(k tune.Constraint) (text string, all bool) {
	figure := "no figure"
	if k.Mean != nil {
		figure = strconv.FormatFloat(*k.Mean, 'g', 6, 64) + " on average"
	}
	word := "met"
	if !k.Held {
		word = "MISSED"
	}
	return fmt.Sprintf("%s: %s (%s; %d of %d launches met it)", k.Bound, word, figure, k.Met, k.Launches), k.Held && k.Met == k.Launches
}

// accuracyAnswer says what the answers of the recommendation were held to.
func (x race) accuracyAnswer() doc.Definition {
	a := doc.Definition{Name: "Accuracy", Text: "not measured" + x.answersMayChange()}
	var rejected []string
	for _, p := range x.Race.Accuracy {
		switch {
		case x.Recommended != nil && p.Label == x.Recommended.Label:
			a.Text = x.sentence(p.Sentence)
			if !p.Accepted {
				a.Tone = "down"
			}
		case !p.Accepted:
			rejected = append(rejected, fmt.Sprintf("%s (%s)", p.Label, points(p.Change)))
		}
	}
	if len(x.Race.Accuracy) > 0 && strings.HasPrefix(a.Text, "not measured") {
		a.Text = "not asked of the recommendation."
		if x.keepsBaseline() {
			a.Text = "the baseline stays, which the others were held to."
		}
	}
	if len(rejected) > 0 {
		a.Text += " Rejected: " + strings.Join(rejected, "; ") + "."
	}
	if x.declared() {
		a.Text += " SIMULATED: the answers are declared by the study."
	}
	return a
}

// answersMayChange warns of a recommendation that computes otherwise than the baseline
// and whose answers nobody looked at.
func (x race) answersMayChange() string {
	if x.Recommended == nil || x.Baseline == nil || x.keepsBaseline() {
		return ""
	}
	to, from := x.trials[x.Recommended.Trial], x.trials[x.Baseline.Trial]
	if to == nil || from == nil {
		return ""
	}
	var all []string
	for _, k := range []string{"model", "quantization", "kv_cache_dtype", "speculative"} {
		if to.Config[k] != from.Config[k] {
			all = append(all, changes(map[string]string{k: from.Config[k]}, map[string]string{k: to.Config[k]})...)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ", although " + strings.Join(all, ", ") + " may change the answers"
}

// declared reports whether which answers are right was the study's to say.
func (x race) declared() bool {
	return slices.ContainsFunc(x.Trials, func(t outcome.Trial) bool {
		return slices.ContainsFunc(t.Notes, func(n string) bool {
			return strings.HasPrefix(n, "SIMULATED") && strings.Contains(n, "declared by the study")
		})
	})
}

// spentOn is what the study cost.
func (x race) spentOn() doc.Definition {
	parts := []string{launched(x.Ledger.Launches)}
	if x.onGPUs() {
		parts = append(parts, gpuHours(x.Ledger.GPUSeconds))
	}
	var wall float64
	for _, p := range x.Race.Phases {
		wall += p.WallS
	}
	if wall > 0 {
		parts = append(parts, lasted(wall)+" in all")
	}
	text := strings.Join(append(parts, lasted(x.Ledger.LoadS)+" under load"), ", ")
	if x.Predicted {
		text += ": in the time of the model, none of it was spent"
	}
	return doc.Definition{Name: "Cost", Text: text}
}

func launched(n int) string {
	if n == 1 {
		return "1 launch"
	}
	return fmt.Sprintf("%d launches", n)
}

// lasted writes seconds in the unit that reads best.
func lasted(s float64) string {
	switch {
	case s >= 3600:
		return fmt.Sprintf("%.1f hours", s/3600)
	case s >= 120:
		return fmt.Sprintf("%.0f minutes", s/60)
	}
	return fmt.Sprintf("%.0f s", s)
}

func gpuHours(s float64) string {
	if h := s / 3600; h < 10 {
		return fmt.Sprintf("%.2f GPU-hours", h)
	}
	return fmt.Sprintf("%.1f GPU-hours", s/3600)
}

// candidateStates are the ends of a candidate in the order in which they are counted.
var candidateStates = []struct{ state, title, counted string }{
	{tune.StateRefined, "carried on", "carried on"}, {tune.StateNotWorse, "not carried on", "left without being worse"}, {tune.StateEliminated, "eliminated", "shown to be worse"},
	{tune.StateFailed, "failed", "failed"}, {tune.StateRefused, "refused by a rule", "refused by rules"}, {tune.StatePruned, "predicted hopeless", "predicted hopeless"}, {tune.StateUntried, "not tried", "not tried"},
}

// tried counts the configurations behind the conclusion.
func (x race) tried() doc.Definition {
	by, barred := map[string]int{}, 0
	for _, a := range x.Race.Candidates {
		if a.State == tune.StateEliminated && finding.OutByBounds(a) {
			barred++
			continue
		}
		by[a.State]++
	}
	var parts []string
	for _, s := range candidateStates {
		if by[s.state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[s.state], s.counted))
		}
		if s.state == tune.StateEliminated && barred > 0 {
			parts = append(parts, fmt.Sprintf("%d given up for missing a constraint", barred))
		}
	}
	if len(parts) == 0 {
		return doc.Definition{}
	}
	text := fmt.Sprintf("%s to begin with: %s", count(len(x.Race.Candidates), "configuration"), strings.Join(parts, ", "))
	if n := len(x.Race.Steps); n > 0 {
		text += fmt.Sprintf("; then %s of them", count(n, "change"))
	}
	return doc.Definition{Name: "Tried", Text: text}
}

// noise says what so many launches could not have shown.
func (x race) noise() doc.Definition {
	n := x.Race.Noise
	if c := x.repeated(); n.Launches < 2 && c != nil {
		return doc.Definition{Name: "Noise", Text: fmt.Sprintf("launches of one configuration did not differ (%d and %d launches)", len(c.Trials), len(c.Others))}
	}
	if n.Launches < 2 {
		return doc.Definition{Name: "Noise", Text: "not known: " + x.unrepeated()}
	}
	text := fmt.Sprintf("launches of one configuration differ by %s apart from their seeds (%d launches)", share(n.Between), n.Launches)
	if n.Between == 0 {
		text = fmt.Sprintf("%d launches of one configuration did not differ", n.Launches)
	}
	if least := x.leastShown(); least > 0 {
		text += fmt.Sprintf(", so effects below %s cannot be shown by the launches of this study", share(least))
	}
	return doc.Definition{Name: "Noise", Text: text}
}

// unrepeated says why the noise between launches is not known.
func (x race) unrepeated() string {
	switch launched, measured := x.MostAlike(); {
	case measured > 1:
		return "the launches of one configuration were under different loads, or with different requests"
	case launched > 1:
		return "no configuration was measured twice"
	}
	return "no configuration was launched twice"
}

// repeated is a comparison both sides of which were launched more than once, or
// nil.
func (x race) repeated() *tune.Comparison {
	i := slices.IndexFunc(x.Race.Comparisons, func(c tune.Comparison) bool { return len(c.Trials) > 1 && len(c.Others) > 1 })
	if i < 0 {
		return nil
	}
	return &x.Race.Comparisons[i]
}

// leastShown is the least effect that the launches of the conclusion show; 0:
// not known.
func (x race) leastShown() float64 {
	if c := x.finalComparison(); c != nil && c.Shown > 0 {
		return c.Shown
	}
	for _, c := range x.Race.Comparisons {
		if c.Shown > 0 {
			return c.Shown
		}
	}
	return 0
}

// share writes a share in percent, with as many digits as a reader can use.
func share(v float64) string {
	if v != 0 && v < 0.001 {
		return fmt.Sprintf("%.2f %%", 100*v)
	}
	return fmt.Sprintf("%.1f %%", 100*v)
}
