package report

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/report/finding"
	"perflab/internal/report/plot"
	"perflab/internal/tune"
)

// replayed says what the figures of a study are that launched nothing.
func (x study) replayed() []string {
	w := []string{"Predicted: nothing was launched. What stands between these figures and measured ones is the predictor's own error, as that of predictions held out of its fit."}
	if x.Forecast == nil {
		return []string{"Predicted: nothing was launched, and each figure is of one replay."}
	}
	w = append(w, x.Forecast.Outside...)
	if x.Forecast.Cut {
		w = append(w, "The search ended at its limit of predictions: there may be better configurations.")
	}
	return w
}

// compared with what was published, in sentences.
func (x study) references() []string {
	var out []string
	for _, text := range []string{finding.Reference(x.Study), finding.Otherwise(x.Study)} {
		if text != "" {
			out = append(out, x.sentence(text))
		}
	}
	return out
}

// publishes reports whether a figure was published of any configuration.
func (x study) publishes() bool {
	for _, t := range x.Trials {
		if t.Published != nil {
			return true
		}
	}
	return false
}

// over is the gain of a trial over the baseline.
func (x study) over(t *outcome.Trial) string {
	if x.Baseline == nil || x.Baseline.Summary == nil || t.ID == x.Baseline.Trial || x.summaryOf(t) == nil {
		return ""
	}
	o := tune.Objective{Metric: x.objective.Name, Higher: !x.lower()}
	return x.gain(o.Gain(x.Baseline.Summary.Figures, x.summaryOf(t).Figures))
}

// publishedText is the figure that was published of a trial's configuration.
func (x study) publishedText(t *outcome.Trial) string {
	if t.Published == nil {
		return ""
	}
	return fmt.Sprintf("%.*f", x.objective.Decimals, *t.Published)
}

// forecastLines lists the trials of a search by prediction.
func (d *studyDocument) forecastLines(s *doc.Section) {
	t := doc.Table{Columns: doc.Columns(" id", "configuration", d.objective.Label, "gain", "published", "status")}
	for _, trial := range d.shownTrials(nil) {
		mark := " "
		if r := d.Recommended; r != nil && r.Trial == trial.ID {
			mark = "*"
		}
		row := doc.Texts(fmt.Sprintf("%s%d", mark, trial.ID), plot.Clip(doc.OneLine(trial.Label), 60), number(d.summaryOf(trial), d.objective), d.over(trial), d.publishedText(trial), statusWord(trial.Status))
		t.Rows = append(t.Rows, row)
	}
	s.Add(doc.InText, t)
	if n := len(d.Trials) - len(t.Rows); n > 0 {
		s.Textf(" and %d more in the report", n)
	}
	s.Text("")
	s.Add(doc.InText, d.forecastAnswers())
}

// forecastAnswers are what a reader asks of a prediction beside its gain.
func (d *studyDocument) forecastAnswers() doc.Definitions {
	x := race{d.study}
	if d.Recommended == nil || d.keepsBaseline() {
		return nil
	}
	var others []string
	for _, c := range d.Cases {
		if c.Workload != d.primary && c.Gain != nil {
			others = append(others, d.workload(c.Workload)+" "+d.gain(c.Gain))
		}
	}
	all := doc.Definitions{{Name: "Other workloads", Text: strings.Join(others, ", ")}, x.changed()}
	if may := x.answersMayChange(); may != "" {
		all = append(all, doc.Definition{Name: "Accuracy", Text: "not measured" + may})
	}
	return slices.DeleteFunc(all, func(t doc.Definition) bool { return t.Text == "" })
}

// forecastChapters are what stands behind a prediction, and what was published.
func (d *studyDocument) forecastChapters(s *doc.Section) {
	publishedChapter(d.study).Add(s, true)
	if d.Forecast == nil {
		return
	}
	k := d.Forecast
	searched := fmt.Sprintf("%s were predicted: every candidate, and what is near to the best of each kind, until nothing improved", count(k.Predicted, "configuration"))
	if k.Refused > 0 {
		searched += fmt.Sprintf("; %d further ones are refused by rules of their engines", k.Refused)
	}
	if k.Unknown > 0 {
		searched += fmt.Sprintf("; of %d nothing could be predicted", k.Unknown)
	}
	c := doc.Chapter{ID: "search", Heading: "The search", Text: []string{searched + ". The baseline, what the study names and the few best were replayed under every workload."}}
	var refused []string
	for _, e := range k.Named {
		if e.Trial == 0 {
			refused = append(refused, fmt.Sprintf("%s: %s", e.Label, strings.TrimSuffix(e.Note, ".")))
		}
	}
	if len(refused) > 0 {
		c.Text = append(c.Text, "Of what the study names, not predicted: "+strings.Join(refused, "; ")+".")
	}
	c.Add(s, true)
	settingChapter(d.study).Add(s, true)
}

// settingChapter is what each setting of the recommendation brings by prediction.
func settingChapter(x study) doc.Chapter {
	if len(x.Forecast.Settings) == 0 {
		return doc.Chapter{}
	}
	c := doc.Chapter{ID: "settings", Heading: "What each setting brings", Text: []string{"Each setting of the best that is not the engine's default was left out, by prediction. What brings less than half a percent was dropped, unless the best would fall behind what the study names without it."}}
	g := doc.NewGrid(doc.Columns("Setting", ">Brings", "Outcome", "=Reason"))
	for _, a := range x.Forecast.Settings {
		gain, kept := "", "kept"
		if a.Gain != nil {
			gain = percent(a.Gain.Value)
		}
		if a.Dropped {
			kept = "dropped"
		}
		g.Rows = append(g.Rows, doc.Dashed(a.Setting, gain, kept, x.sentence(a.Reason)).Coded(0))
	}
	c.Grid = g
	return c
}

// publishedChapter has published figures beside those of the study.
func publishedChapter(x study) doc.Chapter {
	texts := x.references()
	if !x.publishes() && len(texts) == 0 {
		return doc.Chapter{}
	}
	if r := x.Reference; r != nil && r.Source != "" {
		texts = append(texts, "Published in: "+r.Source)
	}
	c := doc.Chapter{ID: "published", Heading: "Beside what was published", Text: texts}
	g := doc.NewGrid(doc.Columns("Configuration", ">Published", ">Here", ">Off", ">Gain here"))
	seen := map[string]bool{}
	for i := range x.Trials {
		t := &x.Trials[i]
		v, ok := value(x.summaryOf(t), x.objective)
		if t.Published == nil || !ok || seen[t.Command] {
			continue
		}
		seen[t.Command] = true
		g.Rows = append(g.Rows, doc.Dashed(x.name(t.ID), x.publishedText(t), number(x.summaryOf(t), x.objective), percent(v / *t.Published - 1), x.over(t)))
	}
	if len(g.Rows) > 0 {
		c.Grid = g
	}
	return c
}

// clientWord begins the sentence that says what sent the load.
func (x study) clientWord() string {
	if x.Predicted {
		return "Load was replayed by "
	}
	return "Load was sent and measured by "
}
