package engine

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"perflab/internal/engine/nested"
)

// World is how many devices a replica of the command takes: those of its parallelism, of
// all engines of its pools, 1 where it says nothing.
func (c Command) World() int {
	if c.Pools().Split() {
		members, err := c.Members()
		if err != nil {
			return 1 // which Resolve says
		}
		n := 0
		for _, m := range members {
			n += m.Command.World()
		}
		return n
	}
	world := 1
	for _, ranks := range c.parallel() {
		world *= ranks.n
	}
	return world
}

// Sizes is the command's parallelism in words: "tp 8 x pp 2".
func (c Command) Sizes() string {
	var out []string
	for _, r := range c.parallel() {
		if r.n > 1 || r.name == TP {
			out = append(out, fmt.Sprintf("%s %d", r.name, r.n))
		}
	}
	return strings.Join(out, " x ")
}

// ranks is one kind of parallelism and its width.
type ranks struct {
	name string
	n    int
}

// parallel is the kinds of parallelism that multiply to the devices of a command.
func (c Command) parallel() []ranks {
	all := []ranks{{TP, c.Count(TP)}, {PP, c.Count(PP)}, {DP, c.Count(DP)}}
	if c.Has("--enable-dp-attention") || c.Engine == "trtllm" {
		all = all[:2] // copies of the attention alone, on the same devices
	}
	given := []string{c.Flag("--prefill-context-parallel-size"), c.Flag("--context_parallel_size")}
	if v, ok := nested.At(c.File, "context_parallel_size"); ok {
		given = append(given, nested.Text(v))
	}
	for _, text := range given {
		if n, err := strconv.Atoi(text); err == nil && n > 1 {
			return append(all, ranks{"context parallel", n})
		}
	}
	return all
}

// Count is a parameter that counts something, 1 where the command does not say it.
func (c Command) Count(name string) int { return max(1, c.number(name, 1)) }

// number is a parameter's whole number, or another where the command does not say one.
func (c Command) number(name string, otherwise int) int {
	if n, err := strconv.Atoi(c.Params[name]); err == nil {
		return n
	}
	return otherwise
}

// extras walks over the further flags and their values; a spelling that says
// false has the value false.
func (c Command) extras(visit func(d *Flag, values []string)) {
	e, err := ByName(c.Engine)
	if err != nil {
		return
	}
	table := flagTables()[c.Engine]
	for i := 0; i < len(c.Extra); {
		name, inline, has := strings.Cut(c.Extra[i], "=")
		ref, glued, ok := findFlag(e, table, name)
		j := i + 1
		for j < len(c.Extra) {
			if _, _, isFlag := findFlag(e, table, flagName(c.Extra[j])); isFlag && strings.HasPrefix(c.Extra[j], "-") {
				break
			}
			j++
		}
		values := c.Extra[i+1 : j]
		switch {
		case has:
			values = []string{inline}
		case glued != "":
			values = []string{glued}
		}
		if ref.off {
			values = []string{"false"}
		}
		if ok {
			visit(ref.def, values)
		}
		i = j
	}
}

// Flag is the value of a flag without a canonical name, "" when it is not given.
func (c Command) Flag(name string) string {
	value, _ := c.extra(name)
	return value
}

// Has reports whether a flag without a canonical name was given.
func (c Command) Has(name string) bool {
	_, given := c.extra(name)
	return given
}

// extra is the value of a further flag, "" when it is not given.
func (c Command) extra(flag string) (value string, given bool) {
	values, given := c.extraValues(flag)
	if len(values) > 0 {
		value = values[0]
	}
	return value, given
}

// extraValues is the values of a further flag, as last given.
func (c Command) extraValues(flag string) (values []string, given bool) {
	c.extras(func(d *Flag, v []string) {
		if d.Flag == flag {
			values, given = v, true
		}
	})
	ref, known := flagTables()[c.Engine][flag]
	if given || !known || ref.param == nil || ref.def == nil || ref.def.Kind != Bool {
		return values, given
	}
	switch v := c.Params[ref.param.Name]; { // a switch that is a parameter
	case v == "":
	case (v == "false") == ref.off:
		return []string{"true"}, true
	case v == "false" && len(ref.def.Off) > 0:
		return []string{"false"}, true
	}
	return nil, false
}

// settleRanks turns a number of expert-parallel ranks into true where it is that
// of the tensor-parallel ones, and into nothing where it is 1.
func (c *Command) settleRanks() {
	ranks, ok := c.Params[ExpertParallel]
	e, err := ByName(c.Engine)
	if !ok || err != nil {
		return
	}
	if p, _ := e.Param(ExpertParallel); p == nil || !p.Ranks {
		return
	}
	switch ranks {
	case "1":
		delete(c.Params, ExpertParallel)
	case cmp.Or(c.Params[TP], "1"):
		c.Params[ExpertParallel] = "true"
	}
}
