package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/tune"
)

// shortRows bounds a table in Markdown that a page folds.
const shortRows = 12

// comparisonChapter is the table of the confirmation.
func comparisonChapter(x race) doc.Chapter {
	c := doc.Chapter{ID: "comparisons", Heading: "The final comparisons"}
	all := x.Race.Comparisons
	if len(all) == 0 {
		c.Text = []string{"Nothing was compared by repeated launches on fresh seeds: what is said above rests on the search alone."}
		return c
	}
	how := ""
	if x.Confirmed {
		how = "Fresh launches on fresh seeds, interleaved. "
	}
	c.Text = []string{how + "Ratios are of " + x.objective.Label + " in the direction that is better: above 1 the first of the two wins. " +
		"Intervals are at 95 %" + corrected(all[0]) + "." + byItself(all)}
	g := doc.NewGrid(doc.Columns("Comparison", ">Launches", ">Ratio", ">95 % interval", ">p", ">Least effect shown", "Verdict"))
	for _, k := range all {
		g.Rows = append(g.Rows, comparisonRow(k.Label+" against "+k.Against, k))
		c.After = append(c.After, x.about(k.Label, k.Sentence))
	}
	c.Grid, c.Plots = g, x.comparisonPlot("comparisons", "Ratios of the final comparisons", all, func(k tune.Comparison) string { return k.Label + " against " + k.Against })
	return c
}

// byItself says that comparisons are not all corrected alike.
func byItself(all []tune.Comparison) string {
	for _, k := range all {
		if k.Against != all[0].Against && corrected(k) != corrected(all[0]) {
			return " Those of two configurations that are not the baseline are each by itself: they decide which goes first."
		}
	}
	return ""
}

// about is a sentence that names what it is of.
func (x race) about(label, sentence string) string {
	if sentence == "" || strings.Contains(sentence, label) {
		return x.sentence(sentence)
	}
	return label + ": " + strings.TrimSuffix(sentence, ".") + "."
}

func comparisonRow(head string, k tune.Comparison) doc.Row {
	p, least, value := "", "", doc.None
	if known(k.Ratio) {
		p = pText(k.P)
	}
	if k.Ratio.Value > 0 {
		value = plot.Times(k.Ratio.Value)
	}
	if k.Shown > 0 {
		least = share(k.Shown)
	}
	r := doc.Dashed(head, fmt.Sprintf("%d / %d", len(k.Trials), len(k.Others)), value, interval(k.Ratio), p, least, k.Verdict)
	return r.Toned(2, verdictTone(k.Verdict)).Toned(6, verdictTone(k.Verdict))
}

// pText writes a p value with two digits.
func pText(p float64) string {
	if p < 0.001 {
		return "< 0.001"
	}
	return strconv.FormatFloat(p, 'g', 2, 64)
}

// holdOutChapter is the table of the further workloads.
func holdOutChapter(x race) doc.Chapter {
	if len(x.Race.HoldOuts) == 0 {
		return doc.Chapter{}
	}
	c := doc.Chapter{ID: "hold-outs", Heading: "Hold-outs: the other workloads"}
	c.Text = []string{"The recommendation against the baseline on workloads that the search was not judged by. A ratio below 1 is a loss."}
	if n := x.Race.HeldOut; n > 0 {
		c.Text[0] += " " + launched(n) + " of the study ran them."
	}
	g := doc.NewGrid(doc.Columns("Workload", ">Launches", ">Ratio", ">95 % interval", ">p", ">Least effect shown", "Verdict"))
	for _, k := range x.Race.HoldOuts {
		g.Rows = append(g.Rows, comparisonRow(x.workload(k.Workload), k))
	}
	c.Grid = g
	c.Plots = x.comparisonPlot("hold-outs", "Recommendation against baseline on the other workloads", x.Race.HoldOuts, func(k tune.Comparison) string { return x.workload(k.Workload) })
	return c
}

// ablationChapter is what each setting of the winner brings.
func ablationChapter(x race) doc.Chapter {
	if len(x.Race.Ablation) == 0 {
		return doc.Chapter{}
	}
	c := doc.Chapter{ID: "ablation", Heading: "Ablation: what each setting brings"}
	tested := 0
	for _, a := range x.Race.Ablation {
		if a.Dropped || !untested(a) {
			tested++
		}
	}
	const rule = "Settings that probably bring nothing are left out together, and the command without them is launched in the rounds of the confirmation: it is recommended where it beats the baseline too and is not worse. Where it is worse, parts of them are tried. Each interval is at 95 % by itself."
	switch c.Text = []string{rule}; {
	case tested == 0:
		c.Text = []string{"None of the winner's settings was left out: what each of them brings is not known."}
	case tested < len(x.Race.Ablation):
		c.Text = []string{fmt.Sprintf("%d of the winner's %s were left out. ", tested, count(len(x.Race.Ablation), "setting")) + rule}
	}
	g := doc.NewGrid(doc.Columns("Setting", ">Brings", ">95 % interval", "Outcome", "=Reason", "Launch"))
	for _, a := range x.Race.Ablation {
		gain, span, outcome := "", "", "kept"
		if a.Gain != nil {
			gain, span = percent(a.Gain.Value), strings.TrimSpace(wavering(*a.Gain))
		}
		switch {
		case a.Dropped:
			outcome = "dropped"
		case untested(a):
			outcome = "kept, not tested alone"
		}
		r := doc.Dashed(a.Setting, gain, span, outcome, x.sentence(a.Reason), trialID(a.Trial))
		r = r.Coded(0)
		if a.Gain != nil && a.Gain.Low > 0 {
			r = r.Toned(1, "up")
		}
		g.Rows = append(g.Rows, r)
	}
	c.Grid = g
	return c
}

func percent(v float64) string { return fmt.Sprintf("%+.1f %%", 100*v) }

func trialID(id int) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("#%d", id)
}

func trialIDs(ids []int) string {
	var s []string
	for _, id := range ids {
		s = append(s, trialID(id))
	}
	return strings.Join(s, " ")
}

// accuracyChapter is the table of the questions.
func accuracyChapter(x race) doc.Chapter {
	if len(x.Race.Accuracy) == 0 {
		return doc.Chapter{}
	}
	c := doc.Chapter{ID: "accuracy", Heading: "Accuracy"}
	c.Text = []string{"The same questions to each configuration and to the baseline, compared question by question. A configuration is accepted where the 95 % bound of what it loses is within the margin."}
	g := doc.NewGrid(doc.Columns("Configuration", "Outcome", ">Right", ">Baseline", ">Lost / won", ">Change", ">95 % bound", ">Allowed", ">McNemar p"))
	for _, p := range x.Race.Accuracy {
		outcome, tone := "accepted", "up"
		if !p.Accepted {
			outcome, tone = "rejected", "down"
		}
		r := doc.Dashed(p.Label, outcome, plot.Tally(p.Right)+" of "+plot.Tally(p.Questions), plot.Tally(p.Base), fmt.Sprintf("%d / %d", p.Lost, p.Won), points(p.Change), points(p.Low), points(-p.Margin), pText(p.P))
		g.Rows = append(g.Rows, r.Toned(1, tone))
		c.After = append(c.After, x.about(p.Label, p.Sentence))
	}
	c.Grid = g
	return c
}

// points writes a change of a share in percentage points.
func points(v float64) string { return fmt.Sprintf("%+.1f pt", 100*v) }

// frontChapter is what a user sees against what a GPU yields.
func frontChapter(x race) doc.Chapter {
	if len(x.Race.Frontier) == 0 {
		return doc.Chapter{}
	}
	c := doc.Chapter{ID: "front", Heading: "Tokens for a user against tokens of a GPU"}
	per := x.perDevice()
	c.Text = []string{"Configurations measured under the full load; on the front is what no other beats in both. Tokens per second and user are 1000 / mean TPOT."}
	head := doc.Columns("Configuration", ">Output tok/s per user", ">Output tok/s "+per, "On the front", "Role", "Launches")
	main, rest := doc.NewGrid(head), doc.NewGrid(head)
	for _, p := range x.Race.Frontier {
		on := ""
		if p.Front {
			on = "yes"
		}
		r := doc.Dashed(p.Label, speed(p.PerUser), speed(p.PerGPU), on, p.Pick, trialIDs(p.Trials))
		if p.Pick != "" {
			r = r.Emphasised()
		}
		if p.Front || p.Pick != "" {
			main.Rows = append(main.Rows, r)
		} else {
			rest.Rows = append(rest.Rows, r)
		}
	}
	c.Grid, c.Plots = main, x.frontPlot()
	if len(rest.Rows) > 0 {
		rest.Caption = count(len(rest.Rows), "configuration") + " behind the front"
		rest.Shorten(shortRows, "study.json")
		c.Folded = []doc.Table{*rest}
	}
	return c
}

// perDevice is what a throughput is divided by.
func (x race) perDevice() string {
	if x.onGPUs() {
		return "per GPU"
	}
	return "per replica"
}

// speed writes tokens per second with their interval.
func speed(s tune.Span) string {
	text := plot.Grouped(strconv.FormatFloat(s.Value, 'f', 1, 64))
	if s.Low < s.High {
		text += " [" + plot.Grouped(strconv.FormatFloat(s.Low, 'f', 1, 64)) + ", " + plot.Grouped(strconv.FormatFloat(s.High, 'f', 1, 64)) + "]"
	}
	return text
}

// candidateChapter says what became of each configuration that the race began with.
func candidateChapter(x race) doc.Chapter {
	if len(x.Race.Candidates) == 0 {
		return doc.Chapter{}
	}
	c := doc.Chapter{ID: "candidates", Heading: "How the race went"}
	c.Text = []string{"The configurations in the order in which they were ranked before the race. Ratios are to the baseline, above 1 is better" + x.partly() + "."}
	g := doc.NewGrid(doc.Columns("Configuration", "Outcome", ">Predicted", ">Measured", ">95 % interval", "Launches", "=Why"))
	for i, a := range x.Race.Candidates {
		if len(a.Trials) == 0 && a.Measured == nil {
			continue
		}
		measured, span := "", ""
		if a.Measured != nil {
			measured, span = plot.Times(a.Measured.Value), interval(*a.Measured)
		}
		r := doc.Dashed(fmt.Sprintf("%d. %s", i+1, candidateName(a)), stateTitle(a.State), ratio(a.Predicted), measured, span, trialIDs(a.Trials), x.sentence(a.Reason))
		switch a.State {
		case tune.StateRefined:
			r = r.Toned(1, "up")
		case tune.StateFailed:
			r = r.Toned(1, "down")
		}
		g.Rows = append(g.Rows, r)
	}
	if len(g.Rows) > 0 {
		c.Grid = g
	}
	c.Plots = x.candidatePlot()
	for _, s := range candidateStates {
		if t := neverLaunched(x, s.state); len(t.Rows) > 0 {
			c.Folded = append(c.Folded, t)
		}
	}
	return c
}

// partly says which of the ratios are of less than the full load, where some are.
func (x race) partly() string {
	if !slices.ContainsFunc(x.Trials, func(t outcome.Trial) bool { return t.Share > 0 && t.Share < 1 }) {
		return ""
	}
	return "; those of candidates that were eliminated early are by launches under a part of the load"
}

func stateTitle(state string) string {
	for _, s := range candidateStates {
		if s.state == state {
			return s.title
		}
	}
	return state
}

// candidateName is a candidate's label with where it comes from.
func candidateName(a outcome.Candidate) string {
	var also []string
	if a.Prior != "" {
		also = append(also, "from "+a.Prior)
	}
	if a.Shorter != "" {
		also = append(also, a.Shorter)
	}
	if also == nil {
		return a.Label
	}
	return a.Label + " (" + strings.Join(also, "; ") + ")"
}

func ratio(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.2fx", *v)
}

// unlaunched says of what the study names why no launch tells of it, a sentence a reason.
func unlaunched(named []tune.Entry) []string {
	var reasons, out []string
	labels := map[string][]string{}
	for _, e := range named {
		if labels[e.Note] == nil {
			reasons = append(reasons, e.Note)
		}
		labels[e.Note] = append(labels[e.Note], e.Label)
	}
	for _, why := range reasons {
		out = append(out, fmt.Sprintf("The study names %s, which had no launch: %s.", strings.Join(labels[why], ", "), strings.TrimSuffix(why, ".")))
	}
	return out
}

// neverLaunched groups the candidates of a state that were not launched by their
// reason, in the order of the first of each.
func neverLaunched(x race, state string) doc.Table {
	var reasons []string
	labels := map[string][]string{}
	n := 0
	for _, a := range x.Race.Candidates {
		if a.State != state || len(a.Trials) > 0 || a.Measured != nil {
			continue
		}
		n++
		if labels[a.Reason] == nil {
			reasons = append(reasons, a.Reason)
		}
		name := candidateName(a)
		if guess := cmp.Or(a.Expected, a.Predicted); guess != nil {
			name += ", predicted " + ratio(guess)
		}
		labels[a.Reason] = append(labels[a.Reason], name)
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return len(labels[b]) - len(labels[a]) })
	g := doc.NewGrid(doc.Columns("=Reason", ">Number", "=Configurations"))
	const shown = 3
	for _, why := range reasons {
		all := labels[why]
		r := doc.Dashed(x.sentence(why), fmt.Sprint(len(all)), strings.Join(all, "; "))
		if len(all) > shown {
			r.Cells[2].Markdown = doc.Spans(fmt.Sprintf("%s and %d more", strings.Join(all[:shown-1], "; "), len(all)-shown+1))
		}
		g.Rows = append(g.Rows, r)
	}
	g.Caption = count(n, "configuration") + " " + neverWhy[state]
	g.Shorten(shortRows, "study.json")
	return *g
}

// neverWhy says why candidates of a state were not launched.
var neverWhy = map[string]string{
	tune.StateRefused: "refused by rules, never launched", tune.StatePruned: "predicted hopeless, never launched", tune.StateUntried: "not tried",
	tune.StateRefined: "carried on without a launch of their own", tune.StateNotWorse: "left without a launch", tune.StateEliminated: "eliminated without a launch", tune.StateFailed: "failed before a launch",
}

// stepChapter are the repairs and refinements.
func stepChapter(x race) doc.Chapter {
	if len(x.Race.Steps) == 0 {
		return doc.Chapter{}
	}
	c := doc.Chapter{ID: "steps", Heading: "Repairs and refinements"}
	g := doc.NewGrid(doc.Columns("Launch", "Change", ">Over what led", ">Over the baseline", "=Note"))
	for _, s := range x.Race.Steps {
		over, total := "", ""
		if s.Gain != nil {
			over = x.gain(s.Gain)
		}
		if s.Total != nil {
			total = x.gain(s.Total)
		}
		g.Rows = append(g.Rows, doc.Dashed(trialID(s.Trial), s.Label, over, total, x.sentence(s.Note)))
	}
	c.Grid = g
	return c
}

// failureChapter are the launches that gave no figure.
func failureChapter(x race) doc.Chapter {
	c := doc.Chapter{ID: "failures", Heading: "Launches without figures"}
	g := doc.NewGrid(doc.Columns("Launch", "Configuration", "Phase", "=What happened", "Class", "=What to do", "Log"))
	for _, t := range x.Trials {
		if t.Status == tune.Measured {
			continue
		}
		r := doc.Dashed(trialID(t.ID), t.Label, phaseTitle(t.Stage), statusWord(t.Status)+": "+x.sentence(t.Reason), t.Class, x.sentence(t.Advice), t.Log)
		if t.Log != "" {
			r = r.Coded(6)
		}
		g.Rows = append(g.Rows, r)
	}
	if len(g.Rows) == 0 {
		return doc.Chapter{}
	}
	c.Grid = g
	return c
}

// predictionChapter says how far predictions could be believed.
func predictionChapter(x race) doc.Chapter {
	if len(x.Race.Predictions) == 0 && x.Race.Learned == nil {
		return doc.Chapter{}
	}
	c := doc.Chapter{ID: "predictions", Heading: "Predicted against measured"}
	c.Text = []string{"Predictions order the candidates until launches say otherwise; they decide nothing else."}
	if x.Race.Learned != nil {
		c.Text = append(c.Text, x.learned(*x.Race.Learned))
	}
	if len(x.Race.Predictions) == 0 {
		return c
	}
	of := "Learned of each engine: measured = bias x predicted ^ scale, as ratios to the baseline; 1 and 1 are a prediction that needs no correction."
	if x.Race.Learned == nil {
		c.Text[0] += " " + of
	} else {
		c.Text = append(c.Text, of)
	}
	g := doc.NewGrid(doc.Columns("Engine", ">Configurations", ">Bias", ">Scale", ">Mean error"))
	for _, f := range x.Race.Predictions {
		g.Rows = append(g.Rows, doc.Dashed(x.engine(f.Engine), fmt.Sprint(f.N), plot.Times(math.Exp(f.Bias)), strconv.FormatFloat(f.Scale, 'f', 2, 64), share(f.Error)))
	}
	c.Grid, c.Plots = g, x.predictionPlot()
	return c
}

// learned says by what the predictions were corrected, and how far off they had been.
func (x race) learned(k tune.Learned) string {
	off := func(v float64) string {
		if v < k.Measured {
			return share(1-v/k.Measured) + " below"
		}
		return share(v/k.Measured-1) + " above"
	}
	return fmt.Sprintf("The constants of the predictor were fitted to the baseline's first launch (%s) before anything was ranked: %s had been predicted %s what that launch measured; by the corrected constants, of which all predictions here are, it is %s.",
		trialID(k.Trial), x.Objective.Metric, off(k.Predicted), off(k.Corrected))
}

// earlierChapter says what directed the search besides its own launches.
func earlierChapter(x race) doc.Chapter {
	if len(x.Earlier) == 0 {
		return doc.Chapter{}
	}
	c := doc.Chapter{ID: "earlier", Heading: "Earlier studies"}
	c.Text = []string{"What other studies measured directed the search as far as they are like this one: as ratios within each of them, weighed by its likeness. It is no launch of this study and in none of its results."}
	g := doc.NewGrid(doc.Columns("Study", ">Likeness", ">Configurations", "What differs"))
	for _, e := range x.Earlier {
		name := e.Name
		if e.Simulated {
			name += " (SIMULATED)"
		}
		g.Rows = append(g.Rows, doc.Dashed(name, strconv.FormatFloat(e.Likeness, 'f', 2, 64), fmt.Sprint(e.Configurations), strings.Join(e.Differences, "; ")))
		for _, text := range e.Unused {
			c.After = append(c.After, e.Name+": "+x.sentence(text))
		}
	}
	c.Grid = g
	return c
}

// launchChapter are all trials of a race, a row each; the rest is in their run
// directories.
func launchChapter(x race) doc.Chapter {
	c := doc.Chapter{ID: "launches", Heading: "All launches", Level: 3}
	g := doc.NewGrid(doc.Columns("Launch", "Phase", "Configuration", ">Load", "Status", ">"+x.objective.Label, "Run directory"))
	for i := range x.Trials {
		t := &x.Trials[i]
		load, figure, dir := "full", "", ""
		if t.Share > 0 && t.Share < 1 {
			load = fmt.Sprintf("%.0f %%", 100*t.Share)
		}
		if s := x.summaryOf(t); s != nil && t.Status == tune.Measured {
			if figure = number(s, x.objective); figure == missing {
				figure = ""
			}
		}
		if len(t.Runs) > 0 {
			dir = t.Runs[0].Dir
		}
		r := doc.Dashed(trialID(t.ID), phaseTitle(t.Stage), t.Label, load, cmp.Or(t.Class, statusWord(t.Status)), figure, dir)
		if dir != "" {
			r = r.Coded(6)
		}
		if x.role(t.ID) != "" {
			r = r.Emphasised()
		}
		if t.Status != tune.Measured {
			r = r.Toned(4, "down")
		}
		g.Rows = append(g.Rows, r)
	}
	if x.partly() != "" {
		c.Text = []string{"Figures under a part of the load compare among themselves alone."}
	}
	g.Caption = launched(len(g.Rows))
	c.Folded = []doc.Table{*g}
	return c
}

// phaseTitle is the name of a part of a race for the reader.
func phaseTitle(name string) string {
	titles := map[string]string{
		"noise": "A/A launches of the baseline", "race": "Race", "repair": "Repairs", "final": "Full load", "refine": "Refinement", "confirm": "Confirmation", "ablate": "Ablation", "hold-outs": "Hold-outs",
	}
	return cmp.Or(titles[name], stageTitle(name))
}

// ledgerChapter is what each part of the race cost and brought.
func ledgerChapter(x race) doc.Chapter {
	c := doc.Chapter{ID: "ledger", Heading: "Ledger"}
	if len(x.Race.Phases) == 0 {
		return doc.Chapter{}
	}
	spent, each := ">GPU-hours", ">Gain per GPU-hour"
	gpus := x.onGPUs()
	if !gpus {
		spent, each = ">Hours", ">Gain per hour"
	}
	c.Text = []string{"A phase's gain is that of what led at its end over what led at its beginning."}
	if x.partly() != "" {
		c.Text[0] += " Where it is of launches under a part of the load, the full load may take some of it back."
	}
	g := doc.NewGrid(doc.Columns("Phase", ">Launches", ">Time under load", spent, ">Gain", each))
	amount := func(s float64) string {
		if s == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", s/3600)
	}
	var wall float64
	for _, p := range x.Race.Phases {
		used := p.WallS
		if gpus {
			used = p.GPUSeconds
		}
		wall += p.WallS
		gain, per := "", ""
		if p.Gain != nil {
			gain = x.gain(p.Gain)
		}
		if v, ok := p.PerHour(); ok {
			per = percent(v)
		}
		g.Rows = append(g.Rows, doc.Dashed(phaseTitle(p.Name), fmt.Sprint(p.Launches), lasted(p.LoadS), amount(used), gain, per))
	}
	used := wall
	if gpus {
		used = x.Ledger.GPUSeconds
	}
	total := doc.Dashed("All", fmt.Sprint(x.Ledger.Launches), lasted(x.Ledger.LoadS), amount(used), "", "")
	g.Rows = append(g.Rows, total.Emphasised())
	c.Grid = g
	return c
}
