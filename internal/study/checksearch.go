package study

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/input"
)

// catalogueChecker checks what a study says to a search of the catalogue.
type catalogueChecker struct{ *checker }

// check checks a study whose strategy searches the catalogue.
func (c catalogueChecker) check() {
	c.baselineAndStages()
	c.space()
	for i, k := range c.s.Arms {
		at := field.Index("arms", i)
		c.candidate(at, k, true)
		if slices.ContainsFunc(c.s.Arms[:i], func(a Candidate) bool { return a.Label == k.Label }) {
			c.add(at, "the label %q is taken: give each arm its own", k.Label)
		}
	}
	c.race()
	c.earlier()
	c.priors()
	if c.s.Attached() && (len(c.s.Runtime.URLs) > 0 || c.s.Runtime.Service != "") {
		c.add("runtime.kind", "an existing endpoint cannot be reconfigured: strategy %s needs hooks.start and hooks.stop, or another runtime kind", c.s.Strategy)
	}
}

// noCatalogueSearch refuses the keys of a search of the catalogue in a study that lists
// what it tries.
func (c *checker) noCatalogueSearch() {
	s := c.s
	for _, key := range []struct {
		at    string
		given bool
	}{{"space", len(s.Space) > 0}, {"arms", len(s.Arms) > 0}, {"priors", len(s.Priors) > 0}, {"earlier", len(s.Earlier) > 0}, {"race", s.Search.Race != (RaceUse{})}} {
		if key.given {
			c.add(key.at, "%s belongs to strategy race: a %s study tries what it lists", key.at, s.Strategy)
		}
	}
}

// race checks how a race is run.
func (c catalogueChecker) race() {
	r := c.s.Search.Race
	if r != (RaceUse{}) && c.s.Strategy != Race {
		c.add("race", "race belongs to strategy race, not %s", c.s.Strategy)
		return
	}
	if r.Rounds < 0 || r.Rounds == 1 || r.Rounds > mostRounds {
		c.add("race.rounds", "rounds is %d: give 2 to %d launches of each of the best, the default is 3, with a budget under 12 launches 2", r.Rounds, mostRounds)
	}
	if !(r.ShortLoad >= 0 && r.ShortLoad <= 1) {
		c.add("race.short_load", "short_load is %v: give a share of the load above 0, up to 1", r.ShortLoad)
	}
}

// mostRounds keeps a slip of the finger from launching for a week.
const mostRounds = 50

// space checks the parameters that the study narrows, each value as the engines
// that may be tried take it.
func (c catalogueChecker) space() {
	s := c.s
	for _, name := range slices.Sorted(maps.Keys(s.Space)) {
		at := "space." + name
		if len(s.Space[name]) == 0 {
			c.add(at, "%s has no values: list those that may be tried, or leave the key out", name)
			continue
		}
		switch name {
		case "engine":
			for i, v := range s.Space[name] {
				c.engine(field.Index(at, i), v)
			}
		case "model": // whether it is known is seen with the others
		default:
			if err := engine.KnownParam(name, "engine", "model"); err != nil {
				c.add(at, "%v", err)
				continue
			}
			c.choices(at, name, s.Space[name])
		}
	}
}

// choices checks the values of one parameter. What an engine lacks costs it the
// configurations that have it; only what none can read is a fault of the file.
func (c catalogueChecker) choices(at, name string, values []string) {
	if c.s.Baseline == nil {
		return
	}
	engines, _ := c.s.searchedNames()
	for i, v := range values {
		for _, e := range engines {
			before := len(c.faults)
			c.command(field.Index(at, i), e, EngineUse{}, Values{name: v})
			if len(c.faults) > before {
				break // the others say the same
			}
		}
	}
}

// priors reads the files of recipes and keeps those that the study may try.
func (c catalogueChecker) priors() {
	if c.s.Baseline == nil {
		return
	}
	for i, path := range c.s.Priors {
		list, problems := readRecipes(path)
		for _, p := range problems {
			c.add(field.Index("priors", i), "%s", p)
		}
		c.recipes.add(c.s, path, list)
	}
}

// readRecipes reads a file of recipes strictly.
func readRecipes(path string) (out []Recipe, problems []string) {
	data, err := input.File(path, MostStudy)
	if err != nil {
		return nil, []string{fmt.Sprintf("read the recipes: %v%s", err, whereLooked(path))}
	}
	doc := new(yaml.Node)
	err = yaml.Load(data, doc)
	if err == nil {
		err = yaml.Load(data, &out, yaml.WithKnownFields())
	}
	if err != nil {
		for _, p := range yamlProblems(err) {
			problems = append(problems, path+":"+strings.Replace(p, "a study has at least name, hardware, objective, workloads and runtime", "list recipes of label, engine, model, set and source", 1))
		}
		return nil, problems
	}
	for i, r := range out {
		for _, err := range recipeErrors(r) {
			line, col := position(doc, field.Index("", i))
			problems = append(problems, fmt.Sprintf("%s:%d:%d: %v", path, line, col, err))
		}
	}
	return out, problems
}

func recipeErrors(r Recipe) []error {
	var errs []error
	if r.Label == "" {
		errs = append(errs, errors.New("this recipe needs a label"))
	}
	if _, err := engine.ByName(r.Engine); err != nil {
		errs = append(errs, err)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Set)) {
		if err := engine.KnownParam(name); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// bounds checks the constraints and what else the objective says.
func (c *checker) bounds() {
	o := c.s.Objective
	for i, text := range o.SLOs {
		at := field.Index("objective.slos", i)
		b, err := ParseBound(text)
		switch {
		case err != nil:
			c.add(at, "%v", err)
		case b.Of != "" && c.s.Strategy != Race:
			c.add(at, "%q is a bound of the baseline's figure, which strategy race has: give %s an amount", text, c.s.Strategy)
		}
	}
	if _, err := o.MinGain.Value(); err != nil {
		c.add("objective.min_gain", "min_gain %v", err)
	}
	if len(o.Weights) > 0 && c.s.Strategy != Race {
		c.add("objective.weights", "weights belong to strategy race: %s is judged by the first workload", c.s.Strategy)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Weights)) {
		if !slices.ContainsFunc(c.s.Workloads, func(w Workload) bool { return w.Name == name }) {
			c.add("objective.weights."+name, "there is no workload %q to weigh: the study has %s", name, strings.Join(c.s.WorkloadNames(), ", "))
		}
		if w := o.Weights[name]; !(w > 0 && w < 1e9) {
			c.add("objective.weights."+name, "the weight of %s is %v: give a number above 0", name, w)
		}
	}
	if len(o.Weights) > 0 && len(c.s.Workloads) > 0 && o.Weights[c.s.Workloads[0].Name] == 0 {
		c.add("objective.weights", "the first workload, %s, has no weight: the search is judged by it too", c.s.Workloads[0].Name)
	}
}
