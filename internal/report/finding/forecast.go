package finding

import (
	"fmt"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/tune"
)

// What a search by prediction found, and how a published recommendation stands to it.

// unlaunched ends what is said of a prediction.
const unlaunched = "nothing was launched, and launches of both would confirm it"

// predicted is the verdict of a search by prediction.
func (w wording) predicted(f tune.Finding) string {
	of := counted(f.N, "configuration")
	switch f.Kind {
	case tune.PredictedLeads:
		return f.Name + " leads by prediction"
	case tune.PredictedNothing:
		return fmt.Sprintf("nothing is recommended: of %s none has a predicted figure that counts, and %s ended %s", of, f.Against, w.note(f.Cause))
	case tune.PredictedBaseline:
		return fmt.Sprintf("no gain is predicted: of %s none is predicted to be better than the baseline by what matters; nothing was launched%s", of, missesSLOs(f.Misses))
	case tune.PredictedAlone:
		return fmt.Sprintf("%s is predicted at %s of %s, the best of %s; %s%s", f.Name, sixDigits(*f.Value), w.metric, of, w.noGain(f), missesSLOs(f.Misses))
	case tune.PredictedBetter:
		text := strings.Replace(w.pair(f.Pair), f.Pair.Name+" is ", f.Pair.Name+" is predicted to be ", 1) + w.byBounds(f.Pair) + ", the best of " + of
		if c := f.Comparison; c != nil {
			text += fmt.Sprintf("; by the errors of such predictions the gain is %s in nine of ten cases", w.within(c.Ratio))
			if c.Ratio.Low <= 1 {
				text += ", so there may be none"
			}
		} else {
			text += "; how far such predictions are off is not known"
		}
		return text + "; " + unlaunched + missesSLOs(f.Misses)
	}
	return ""
}

// within is the interval of a ratio: in percent where more is better, else in times.
func (w wording) within(s tune.Span) string {
	if !w.higher {
		return fmt.Sprintf("%.3gx to %.3gx", s.Low, s.High)
	}
	return fmt.Sprintf("%s to %s", signedPercent(s.Low-1), signedPercent(s.High-1))
}

// Reference says how a study's recommendation stands to the one that was published; "" where
// the study has none.
func Reference(s outcome.Study) string {
	r := s.Reference
	if r == nil {
		return ""
	}
	w := wording{metric: s.Objective.Metric, higher: s.Objective.Better == "higher"}
	found := "predicted"
	if s.Race != nil || !s.Predicted {
		found = "measured"
	}
	name := "the published recommendation, " + r.Label
	switch {
	case r.Refused != "":
		return fmt.Sprintf("%s cannot run here: %s", name, r.Refused)
	case r.Trial == 0:
		return name + " was not tried"
	case s.Recommended == nil:
		return fmt.Sprintf("%s: this study recommends nothing in its place", name)
	case r.Same:
		return "what is recommended is " + name + w.figures(r.PublishedGain, r.Published, r.Gain, found)
	case r.Over == nil:
		return fmt.Sprintf("what is recommended is another than %s, and cannot be compared with it", name)
	}
	text := fmt.Sprintf("what is recommended is another than %s: %s to be %s", name, found, w.better(r.Over.Value))
	if r.Over.High != 0 || r.Over.Low != 0 {
		text += fmt.Sprintf(" (%s in nine of ten cases)", w.within(tune.Span{Low: 1 + r.Over.Low, High: 1 + r.Over.High}))
		if r.Over.Low < 0 && r.Over.Value > 0 {
			text += ", so it may be no better"
		}
	}
	text += w.figures(r.PublishedGain, r.Published, r.Gain, found)
	if r.Recommended == nil {
		return text + "; of what is recommended no figure was published"
	}
	return fmt.Sprintf("%s; of what is recommended %s was published", text, sixDigits(*r.Recommended))
}

// better is a gain of one configuration over another.
func (w wording) better(gain float64) string {
	switch {
	case gain < 0 && !w.higher:
		return fmt.Sprintf("%sx worse on %s", factor(1/(1+gain)), w.metric)
	case !w.higher:
		return fmt.Sprintf("%sx better on %s", factor(1+gain), w.metric)
	}
	return fmt.Sprintf("%s on %s over it", signedPercent(gain), w.metric)
}

// figures are the gain that was published and the one that was found of the same configuration.
func (w wording) figures(published, figure, here *float64, found string) string {
	gain := func(g *float64, over, than string) string {
		if w.higher {
			return "with " + signedPercent(*g) + over
		}
		return "as " + w.times(*g) + than
	}
	var parts []string
	switch {
	case published != nil:
		parts = append(parts, "was published "+gain(published, " over its baseline", " than its baseline"))
	case figure != nil:
		parts = append(parts, "was published with "+sixDigits(*figure))
	}
	if here != nil {
		parts = append(parts, fmt.Sprintf("is %s here %s", found, gain(here, "", "")))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; it " + strings.Join(parts, " and ")
}

// Otherwise says which published figures come in another order here; "" for none to compare.
func Otherwise(s outcome.Study) string {
	r := s.Reference
	if r == nil || r.Pairs == 0 {
		return ""
	}
	w := wording{metric: s.Objective.Metric, higher: s.Objective.Better == "higher"}
	in, come := r.Pairs-r.Alike-len(r.Otherwise), "come"
	if in == 1 {
		come = "comes"
	}
	text := fmt.Sprintf("of %s of configurations whose published figures differ by 2 %% and more, %d %s in that order here", counted(r.Pairs, "pair"), in, come)
	if r.Alike > 0 {
		text += fmt.Sprintf(", %d are alike", r.Alike)
	}
	if len(r.Otherwise) == 0 {
		return text
	}
	var parts []string
	for _, o := range r.Otherwise {
		parts = append(parts, fmt.Sprintf("%s was published to be %s than %s, and is %s here", o.Better, w.times(o.Published), o.Than, w.times(o.Here)))
	}
	return fmt.Sprintf("%s, %d the other way round: %s", text, len(parts), strings.Join(parts, "; "))
}

// times is a gain as how many times better, or worse.
func (w wording) times(gain float64) string {
	if gain < 0 {
		return factor(1/(1+gain)) + "x worse"
	}
	return factor(1+gain) + "x better"
}
