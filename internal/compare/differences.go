package compare

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/field"
)

// describeDifferences fills the facts, the warnings of those that should agree, and what is
// compared.
func (c *Comparison) describeDifferences(sides []Side, by string) error {
	c.Facts = Facts(sides)
	if by != "" {
		i := slices.IndexFunc(Covariates(), func(v Covariate) bool { return v.Key == by && v.Setup })
		if i < 0 {
			return field.Errorf("by", "%q is no fact that runs are set up by: use %s", by, strings.Join(setupKeys(), ", "))
		}
		if known := slices.ContainsFunc(c.Facts, func(f Fact) bool { return f.Key == by && f.Differ }); !known {
			return field.Errorf("by", "%s: the sides do not differ in it, as far as they tell", by)
		}
	}
	differ := c.setupDifferences(sides)
	switch {
	case by != "":
		c.By = by
	case len(differ) == 1:
		c.By = differ[0].Key
	}
	c.setHead(sides, differ)
	for _, f := range c.Facts {
		if text := c.factWarning(f, sides); text != "" {
			c.Warnings = append(c.Warnings, text)
		}
	}
	return nil
}

func setupKeys() []string {
	var out []string
	for _, v := range Covariates() {
		if v.Setup {
			out = append(out, v.Key)
		}
	}
	return out
}

// setupDifferences are the facts of the set-up in which sides differ, without those that
// follow from another.
func (c *Comparison) setupDifferences(sides []Side) []Fact {
	var out []Fact
	has := func(key string) bool {
		return slices.ContainsFunc(c.Facts, func(f Fact) bool { return f.Key == key && len(f.Known()) > 1 })
	}
	for _, f := range c.Facts {
		implied := f.Key == keyEngineVer && has(keyEngine) || f.Key == keyCommand && (has(keyEngine) || has(keyModel) && sameButModel(sides))
		if f.Setup && len(f.Known()) > 1 && !implied {
			out = append(out, f)
		}
	}
	return out
}

// sameButModel reports whether the serving commands are one but for the model.
func sameButModel(sides []Side) bool {
	rest := func(s Side) string {
		h := s.Runs[0].Header
		return strings.Replace(h.Command, h.Model, "", 1)
	}
	return !slices.ContainsFunc(sides, func(s Side) bool { return rest(s) != rest(sides[0]) })
}

// setHead says what is compared.
func (c *Comparison) setHead(sides []Side, differ []Fact) {
	names := c.Names()
	for _, f := range c.Facts {
		if f.Key == c.By {
			c.Head = fmt.Sprintf("Compared by %s: %s.", lowerFirst(f.Label), f.Each(names))
			return
		}
	}
	if len(differ) == 0 {
		c.Head = fmt.Sprintf("%s compared with %s: no difference in what they were set up with is recorded.", strings.Join(names[1:], ", "), names[0])
		return
	}
	var labels []string
	for _, f := range differ {
		labels = append(labels, lowerFirst(f.Label))
	}
	c.Head = fmt.Sprintf("%s compared with %s, which differ in %d things at once (%s): a difference cannot be put down to one of them.",
		strings.Join(names[1:], ", "), names[0], len(differ), strings.Join(labels, ", "))
}

// lowerFirst writes a label within a sentence.
func lowerFirst(label string) string {
	if len(label) > 1 && label[1] >= 'A' && label[1] <= 'Z' {
		return label // GPUs
	}
	return strings.ToLower(label[:1]) + label[1:]
}

// factWarning is what to say of a fact besides the one compared.
func (c *Comparison) factWarning(f Fact, sides []Side) string {
	if f.Key == c.By || c.By == keyEngine && (f.Key == keyEngineVer || f.Key == keyCommand) || c.By == keyModel && f.Key == keyCommand && sameButModel(sides) {
		return "" // or it follows from what is compared
	}
	names := c.Names()
	if f.Key == KeyFingerprint && len(f.Known()) > 1 && sameWorkloads(sides) {
		c.Notes = append(c.Notes, "The sides sent different requests of one workload (another seed or nonce): that is chance too.")
		return ""
	}
	if text := f.Warning(); text != "" && f.Key != KeyFingerprint && len(f.Known()) > 1 {
		return text + " (" + f.Each(names) + ")"
	} else if text != "" {
		return text
	}
	if len(f.Known()) < 2 {
		return ""
	}
	if f.covariate.Differ != "" {
		return "" // and what differs is within its tolerance
	}
	if f.covariate.number != nil {
		return workWarning(f, sides, names)
	}
	return fmt.Sprintf("The sides differ in %s: %s.", lowerFirst(f.Label), f.Each(names))
}

// workWarning says that sides did another amount of work.
func workWarning(f Fact, sides []Side, names []string) string {
	var means []float64
	for _, s := range sides {
		sum, n := 0.0, 0.0
		for _, m := range s.Runs {
			if v, ok := f.covariate.number(m.Summary); ok {
				sum, n = sum+v, n+1
			}
		}
		if n > 0 {
			means = append(means, sum/n)
		}
	}
	least, most := slices.Min(means), slices.Max(means)
	if most <= least*(1+f.covariate.tolerance) {
		return ""
	}
	text := fmt.Sprintf("%s: %s", f.Label, f.Each(names))
	if least > 0 && f.Key != keySuccess {
		return fmt.Sprintf("The sides did not do the same work, %.2fx apart. %s.", most/least, text)
	}
	return "Failed calls are in no latency, and the sides have different shares of them. " + text + "."
}

// sameWorkloads reports whether all runs are of one workload but for the seed.
func sameWorkloads(sides []Side) bool {
	for _, s := range sides {
		for _, m := range s.Runs {
			if !sameWorkload(sides[0].Runs[0].Header, m.Header) {
				return false
			}
		}
	}
	return true
}

// addNotes adds what holds of the table as a whole.
func (c *Comparison) addNotes() {
	better, worse, judged := c.Shown()
	if shown := better + worse; judged >= 5 && shown > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d of %d figures with an interval show a difference; at 95 %% at most about %.1f do by chance alone where there is none.",
			shown, judged, 0.05*float64(judged)))
	}
	split := 0
	for _, r := range c.Rows {
		if slices.ContainsFunc(r.Cells, func(x Cell) bool { return strings.Contains(x.Why, byAnother) }) {
			split++
		}
	}
	if split > 0 {
		c.Warnings = append(c.Warnings, "Some figures are made by different definitions: they stand in rows of their own and are not compared (docs/metrics.md explains each definition).")
	}
	if slices.ContainsFunc(c.Sides, func(s SideInfo) bool { return len(s.Runs) > 1 }) {
		c.Notes = append(c.Notes, "Of a side of several runs the mean of their figures is shown, the ratio is of geometric means, and the runs are the observations.")
	}
}

// noteAnew says which figures of a side are by the definitions of another client.
func (c *Comparison) noteAnew() {
	for _, s := range c.Sides {
		var what []string
		for _, row := range c.Rows {
			name, _, _ := strings.Cut(row.Metric.Label, " (")
			if row.Metric.Family != "" {
				name = strings.ToUpper(row.Metric.Family)
			}
			if slices.Contains(row.Anew, s.Name) && !slices.Contains(what, name) {
				what = append(what, name)
			}
		}
		if len(what) > 0 {
			c.Notes = append(c.Notes, fmt.Sprintf("%s of %s are not by perflab's definitions here: they were computed anew from its calls by those of the side beside it.", strings.Join(what, ", "), s.Name))
		}
	}
}
