package command

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// Change is one difference between two setups.
type Change struct{ Feature, Text string }

// Option is what was changed, as it was written, without its value.
func (d Change) Option() string {
	if d.Feature == "model" {
		_, to, _ := strings.Cut(d.Text, " -> ")
		return "model " + to
	}
	if strings.HasPrefix(d.Feature, "--") {
		name, _, _ := strings.Cut(d.Text, " ")
		return name
	}
	return d.Feature
}

// Texts are the differences in words.
func Texts(diffs []Change) []string {
	var out []string
	for _, d := range diffs {
		out = append(out, d.Text)
	}
	return out
}

// Changes lists what differs from a to b, one entry a feature; flags of the
// answers' shape only where all is asked for.
func Changes(a, b Setup, all bool) []Change {
	var out []Change
	if a.Engine != "" && b.Engine != "" && a.Engine != b.Engine {
		out = append(out, Change{"engine", "engine " + EngineTitle(a.Engine) + " -> " + EngineTitle(b.Engine)})
	}
	if a.Model != "" && b.Model != "" && modelBase(a.Model) != modelBase(b.Model) {
		out = append(out, Change{"model", "model " + a.Model + " -> " + b.Model})
	}
	for _, f := range ChangedFeatures(a, b, all) {
		was, wasAs := a.describe(f)
		if is, isAs := b.describe(f); was != is {
			out = append(out, Change{f, changeText(f, wasAs, isAs)})
		}
	}
	if a.Case != b.Case {
		out = append(out, Change{"case", changeText("case", a.Case, b.Case)})
	}
	return out
}

// ChangedFeatures are the features that two setups have different flags of, in
// order.
func ChangedFeatures(a, b Setup, all bool) []string {
	var out []string
	for _, pair := range [][2]Setup{{a, b}, {b, a}} {
		for name, value := range pair[0].Flags {
			if other, ok := pair[1].Flags[name]; ok && other == value || !all && slices.Contains(apiFlags, name) {
				continue
			}
			if f := FeatureOf(name); !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Part is what of two commands differs.
type Part int

// The parts of a command.
const (
	InFlag Part = iota
	InEngine
	InModel
)

// Difference is one thing in which two commands differ.
type Difference struct {
	Part     Part
	Name     string // of a flag, as written
	From, To string // engines or models
}

// String names what differs.
func (d Difference) String() string {
	switch d.Part {
	case InEngine:
		return "the engine"
	case InModel:
		return "the model (" + d.From + ", " + d.To + ")"
	}
	return d.Name
}

// Differences lists in what a command differs from another, flag by flag where
// Changes goes by features; flags that only shape answers do not count.
func (s Setup) Differences(o Setup) []Difference {
	if s.Engine != o.Engine && s.Engine != "" && o.Engine != "" {
		return []Difference{{Part: InEngine, From: o.Engine, To: s.Engine}} // their flags do not compare
	}
	var out []Difference
	if modelBase(s.Model) != modelBase(o.Model) && s.Model != "" && o.Model != "" {
		out = append(out, Difference{Part: InModel, From: path.Base(o.Model), To: path.Base(s.Model)})
	}
	all := maps.Clone(o.Flags)
	maps.Copy(all, s.Flags)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, inS := s.Flags[name]
		b, inO := o.Flags[name]
		if slices.Contains(apiFlags, name) || inS == inO && a == b {
			continue
		}
		if written := cmp.Or(s.written[name], o.written[name]); written != "" {
			name = "--" + written // else it is of the environment
		}
		out = append(out, Difference{Name: name})
	}
	return out
}

// DifferenceTexts are differences in words.
func DifferenceTexts(differences []Difference) []string {
	var out []string
	for _, d := range differences {
		out = append(out, d.String())
	}
	return out
}

// SharedFlags counts the flags that two commands have in common.
func (s Setup) SharedFlags(o Setup) int {
	n := 0
	for name, value := range s.Flags {
		if v, ok := o.Flags[name]; ok && v == value {
			n++
		}
	}
	return n
}

// changeText writes one difference.
func changeText(feature, was, is string) string {
	flag := strings.HasPrefix(feature, "--")
	switch {
	case was == "" && flag:
		return "--" + is + " added"
	case is == "" && flag:
		return "--" + was + " dropped"
	case flag:
		_, value, _ := strings.Cut(is, " ")
		return "--" + was + " -> " + value
	case was == "":
		return feature + " added (" + is + ")"
	case is == "":
		return feature + " dropped (" + was + ")"
	}
	return feature + " " + was + " -> " + is
}

// describe writes the flags of a feature, "tp 4", by their normal names and as
// they were written; "" for none.
func (s Setup) describe(want string) (normal, written string) {
	var all, as []string
	for _, name := range slices.Sorted(maps.Keys(s.Flags)) {
		if FeatureOf(name) == want {
			all = append(all, strings.TrimSpace(name+" "+s.Flags[name]))
			as = append(as, strings.TrimSpace(cmp.Or(s.written[name], name)+" "+s.Flags[name]))
		}
	}
	return strings.Join(all, " "), strings.Join(as, " ")
}

// FeatureOf returns what a flag belongs to: flags of one feature are one change.
func FeatureOf(flag string) string {
	switch {
	case slices.Contains(layoutFlags, flag):
		return "layout"
	case flag == "ep":
		return "expert parallelism"
	case strings.HasPrefix(flag, "speculative-") || flag == "num-speculative-tokens":
		return "speculative decoding"
	case strings.Contains(flag, "attention-backend") || strings.HasPrefix(flag, "nsa-") || strings.HasSuffix(flag, "ATTENTION_BACKEND"):
		return "attention backend"
	case strings.ToUpper(flag) == flag:
		return flag // a variable of the environment
	}
	return "--" + flag
}

// layoutFlags spread the work over devices, and are changed together.
var layoutFlags = []string{"tp", "pp", "dp", "dcp", "nnodes", "enable-dp-attention"}

// apiFlags shape answers, and are no step of a tuning.
var apiFlags = []string{"chat-template", "reasoning-parser", "tool-call-parser", "enable-auto-tool-choice", "tokenizer-mode"}
