package candidate

import (
	"errors"
	"slices"

	"perflab/internal/engine"
	"perflab/internal/tune"
)

// manyProducts bounds the combinations of the study's structural changes.
const manyProducts = 200

// structural reports whether a change of the study makes another candidate; otherwise it is a
// step.
func structural(ch tune.Change) bool {
	return ch.Replace || slices.ContainsFunc(structure, func(name string) bool { _, ok := ch.Set[name]; return ok })
}

// listed adds what the study lists: its changes of the baseline, each by itself, and whole
// configurations of other sources.
func (f catalogue) listed(a *candidateList) {
	for _, ch := range f.o.Changes {
		if c := f.change(f.base, ch); structural(ch) || f.Refuse(c) == "" {
			a.add(c, ch.Label, ofStudy, true)
		}
	}
	for _, x := range f.o.Candidates {
		c := clean(x.Config)
		for _, name := range []string{engineKey, modelKey} {
			if c[name] == "" {
				c[name] = f.base[name]
			}
		}
		a.add(c, x.Label, x.Prior, true)
	}
}

// elsewhere are the study's changes that the baseline cannot take, as another engine may.
func (f catalogue) elsewhere() []tune.Change {
	return slices.DeleteFunc(slices.Clone(f.o.Changes), func(ch tune.Change) bool {
		return structural(ch) || f.Refuse(f.change(f.base, ch)) == ""
	})
}

// change applies a change of the study. Where it leads to an engine that lacks further
// settings of the baseline, they stay behind.
func (f catalogue) change(from tune.Config, ch tune.Change) tune.Config {
	c := ch.Apply(from)
	for _, name := range []string{engineKey, modelKey} {
		if c[name] == "" {
			c[name] = f.base[name]
		}
	}
	e, err := engine.ByName(c[engineKey])
	if err != nil || c[engineKey] == from[engineKey] {
		return c
	}
	rejection, ok := errors.AsType[*engine.Rejection](f.resolve(c).err)
	if !ok || rejection.Rule != "parameter" {
		return c
	}
	for name := range from {
		if _, said := ch.Set[name]; !said && !settable(e, name) && name != engineKey && name != modelKey {
			delete(c, name)
		}
	}
	return c
}

// products adds the structural changes combined, small combinations first: those of
// which no two set the same. One that starts from nothing comes first.
func (f catalogue) products(a *candidateList) {
	var changes []tune.Change
	for _, ch := range f.o.Changes {
		if structural(ch) {
			changes = append(changes, ch)
		}
	}
	begun := len(a.list)
	sets := [][]int{{}}
	for len(sets) > 0 {
		var next [][]int
		for _, set := range sets {
			from := 0
			if len(set) > 0 {
				from = set[len(set)-1] + 1
			}
			for i := from; i < len(changes) && len(next) < manyProducts; i++ {
				if !fitting(changes, set, i) {
					continue
				}
				more := append(slices.Clone(set), i)
				next = append(next, more)
				if len(more) > 1 && len(a.list)-begun < manyProducts {
					a.add(f.product(changes, more), "", ofStudy, false)
				}
			}
		}
		sets = next
	}
}

// fitting reports whether a change may join others.
func fitting(changes []tune.Change, set []int, i int) bool {
	for _, j := range set {
		if changes[i].Replace && changes[j].Replace {
			return false
		}
		for name := range changes[i].Set {
			if _, ok := changes[j].Set[name]; ok {
				return false
			}
		}
	}
	return true
}

func (f catalogue) product(changes []tune.Change, set []int) tune.Config {
	c := f.base
	for _, fresh := range []bool{true, false} {
		for _, i := range set {
			if changes[i].Replace == fresh {
				c = f.change(c, changes[i])
			}
		}
	}
	return c
}
