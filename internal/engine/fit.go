package engine

import (
	"fmt"
	"slices"
	"strings"
)

// Fit says by a *Rejection which flag of the command the version of its engine does not
// have. Without a version every known flag passes.
func (c Command) Fit(version string) *Rejection {
	e, err := ByName(c.Engine)
	if err != nil || version == "" {
		return nil
	}
	var rej *Rejection
	c.spelled(e, func(name string, ref flagRef) {
		if rej != nil || e.Name == "vllm" && name == "-O" { // which 0.11 has for --compilation-config
			return
		}
		p := ref.param
		if !ref.def.lacks(version) {
			return
		}
		what := name
		if p != nil {
			what += " (" + p.Name + ")"
		}
		rej = &Rejection{Rule: "version", Log: e.cli.unknown(name).Error(),
			Reason: fmt.Sprintf("%s is not in %s %s: %s", what, e.Title, strings.TrimPrefix(version, "v"), ref.def.presence())}
	})
	return rej
}

// spelled walks over the flags of the command line as they stand there.
func (c Command) spelled(e *Engine, visit func(name string, ref flagRef)) {
	args, err := c.paramArgs(e)
	if err != nil {
		return
	}
	table := flagTables()[e.Name]
	for _, arg := range slices.Concat(args, c.Extra) {
		name := flagName(arg)
		if !strings.HasPrefix(name, "-") {
			continue
		}
		ref, glued, ok := findFlag(e, table, name)
		if !ok {
			continue // a value, such as -1
		}
		if glued != "" {
			name = name[:2]
		}
		if base, _, dotted := strings.Cut(name, "."); dotted && ref.param == nil { // --flag.key is there where --flag is
			if whole, _, ok := findFlag(e, table, base); ok {
				name, ref = base, whole
			}
		}
		visit(name, ref)
	}
}
