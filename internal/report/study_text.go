package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"perflab/internal/report/plot"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// textRows bounds the trials that StudyText lists, so that the whole stays
// within 25 lines: of more than these, fewer where other lines follow.
const textRows = 12

// StudyText writes the summary of a study for a terminal: the verdict, a line
// per trial, and the recommended command.
func StudyText(w io.Writer, s result.Study) error {
	x, b := index(s), &strings.Builder{}
	if x.Race != nil {
		return writeSummary(w, s, x.raceText())
	}
	if x.Simulated {
		b.WriteString("SIMULATED: no GPU was measured.\n")
	}
	fmt.Fprintf(b, "%s\n%s\n\n", cmp.Or(s.Title, s.Name), s.Verdict)
	x.textTable(b)
	for _, note := range x.warnings() {
		fmt.Fprintln(b, note)
	}
	b.WriteString(x.textIncidents() + x.textSpent())
	if r := s.Recommended; r != nil {
		word := "Recommended"
		if x.survey() {
			word = "Best"
		}
		fmt.Fprintf(b, "\n%s (%s, %s):\n%s\n", word, x.name(r.Trial), count(max(r.Replicas, 1), "replica"), cmp.Or(x.textScript(r), r.Command))
	} else {
		b.WriteString("\nNo configuration is recommended.\n")
	}
	return writeSummary(w, s, b.String())
}

func writeSummary(w io.Writer, s result.Study, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the summary of study %s: %w", s.Name, err)
	}
	return nil
}

// textIncidents says why trials have no figures, of the first few of them.
func (x study) textIncidents() string {
	const most, width = 3, 240
	b, n := &strings.Builder{}, 0
	for _, t := range x.Trials {
		if t.Status == tune.Measured || t.Reason == "" {
			continue
		}
		if n++; n > most {
			continue
		}
		class := ""
		if t.Class != "" {
			class = " (" + t.Class + ")"
		}
		text := strings.TrimSuffix(oneLine(t.Reason), ".")
		if t.Advice != "" {
			text = plot.Clip(text, width/2) + ". " + x.sentence(oneLine(t.Advice))
		}
		fmt.Fprintf(b, "#%d %s%s: %s\n", t.ID, statusWord(t.Status), class, plot.Clip(text, width))
	}
	if n > most {
		fmt.Fprintf(b, "and %d more without figures in the report\n", n-most)
	}
	return b.String()
}

// textSpent is what tokens cost in energy and money, before and after, on the primary
// workload; "" where neither is known, or nothing is recommended but the baseline.
func (x study) textSpent() string {
	if x.kept() {
		return ""
	}
	var parts []string
	for _, c := range x.Cases {
		if c.Workload != x.primary {
			continue
		}
		for _, name := range x.spent() {
			m := x.metric(name)
			parts = append(parts, fmt.Sprintf("%s %s instead of %s", m.Label, number(c.Recommended, m), number(c.Baseline, m)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Against the baseline: " + strings.Join(parts, "; ") + "\n"
}

// textScript starts every replica, if there are several and they fit the
// screen.
func (x study) textScript(p *result.Pick) string {
	const most = 3
	if p.Replicas < 2 || p.Replicas > most {
		return ""
	}
	return x.script(p)
}

// textTable lists trials; of many, the ones that decided something and the
// last ones. A gain stands where the study holds one: a stage's winner against
// its incumbent, the recommendation against the baseline.
func (x study) textTable(b *strings.Builder) {
	won := map[int]string{}
	for _, st := range x.Stages {
		if st.Winner != st.Before && !x.survey() {
			won[st.Winner] = x.gain(st.Gain)
		}
	}
	total := map[int]string{}
	if r := x.Recommended; r != nil && r.Gain != nil && (x.Baseline == nil || r.Trial != x.Baseline.Trial) {
		total[r.Trial] = x.gain(r.Gain)
	}
	shown := x.textTrials(won)
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	gains := "gain of stage\ttotal gain\t"
	if x.survey() {
		gains = ""
	}
	fmt.Fprintf(tw, " id\ttrial\t%s\t%sstatus\n", x.objective.Label, gains)
	for _, t := range shown {
		mark := " "
		if r := x.Recommended; r != nil && r.Trial == t.ID {
			mark = "*"
		}
		status := statusWord(t.Status)
		if sum := x.summary(t); t.Status == tune.Measured && sum != nil && sum.Verdict.Status != result.Sound {
			status += ", " + string(sum.Verdict.Status)
		}
		if !x.survey() {
			status = won[t.ID] + "\t" + total[t.ID] + "\t" + status
		}
		fmt.Fprintf(tw, "%s%d\t%s\t%s\t%s\n", mark, t.ID, plot.Clip(oneLine(t.Label), 36), number(x.summary(t), x.objective), status)
	}
	tw.Flush() // into a Builder, which never fails
	if n := len(x.Trials) - len(shown); n > 0 {
		fmt.Fprintf(b, " and %d more in the report\n", n)
	}
}

// textTrials chooses the trials to list, in order.
func (x study) textTrials(won map[int]string) []*result.Trial {
	var all []*result.Trial
	for i := range x.Trials {
		all = append(all, &x.Trials[i])
	}
	if len(all) <= textRows {
		return all
	}
	keep := map[int]bool{}
	rows := textRows - strings.Count(x.textIncidents()+x.textSpent(), "\n")
	add := func(want func(*result.Trial) bool) {
		for _, t := range all {
			if len(keep) < rows && want(t) {
				keep[t.ID] = true
			}
		}
	}
	add(func(t *result.Trial) bool { return x.role(t.ID) != "" })
	add(func(t *result.Trial) bool { _, ok := won[t.ID]; return ok })
	add(func(t *result.Trial) bool { return t.Status == tune.Measured })
	add(func(*result.Trial) bool { return true })
	return slices.DeleteFunc(all, func(t *result.Trial) bool { return !keep[t.ID] })
}
