package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// engineContradictions finds commands that start another engine than the one
// that the heading above them names.
func engineContradictions(d *document) []audit.Finding {
	var out []audit.Finding
	for s := range d.scripts(interop.ScriptServing) {
		w := command.Read(s.Text)
		text, named := engineContradiction(d, s, w)
		if text == "" {
			continue
		}
		if len(out) < fewFindings {
			text += totalsTell(s, w.Engine, named, d.steps)
		}
		out = append(out, audit.Finding{Type: "engine-contradicts-heading", Severity: audit.Warning, Place: d.at(s.Line, s.Section), Text: text})
	}
	return out
}

// layoutContradictions finds commands that lack the parallelism that the
// heading above them gives.
func layoutContradictions(d *document) []audit.Finding {
	var out []audit.Finding
	for s := range d.scripts(interop.ScriptServing) {
		if text := layoutContradiction(s, command.Read(s.Text)); text != "" {
			out = append(out, audit.Finding{Type: "flag-contradicts-heading", Severity: audit.Warning, Place: d.at(s.Line, s.Section), Text: text})
		}
	}
	return out
}

// tooManyDevices finds commands that need more devices than the document says
// the hardware has that the next block was measured on.
func tooManyDevices(d *document) []audit.Finding {
	var at []int
	var first *interop.Script
	most, stated, next := 0, 0, 0
	for s := range d.scripts(interop.ScriptServing) {
		for next < len(d.file.Runs)-1 && d.file.Runs[next].Place.Line < s.Line {
			next++
		}
		if len(d.file.Runs) == 0 {
			return nil
		}
		r := &d.file.Runs[next]
		if nodes, err := strconv.Atoi(r.Header.Label(result.LabelNodes)); err == nil && nodes > 1 {
			return nil // the count may be that of a node
		}
		have := command.Layout(command.Read(s.Text))
		n, _ := strconv.Atoi(r.Header.Label(result.LabelGPUs))
		need := have["tp"] * have["pp"]
		if n == 0 || need <= n || slices.ContainsFunc(d.file.Doc.Prose, func(t interop.Text) bool {
			return t.Line > s.Line && t.Line < r.Place.Line && strings.Contains(strings.ToLower(t.Text), "hardware")
		}) {
			continue // or the hardware is told of only after the command
		}
		at, most, stated = append(at, s.Line), max(most, need), max(stated, n)
		if first == nil {
			first = s
		}
	}
	if first == nil {
		return nil
	}
	return []audit.Finding{{Type: "more-devices-than-stated", Severity: audit.Warning, Place: d.at(first.Line, first.Section),
		Text: fmt.Sprintf("the commands at %s need up to %d devices, and the document counts %d", audit.Lines(at), most, stated)}}
}

// engineContradiction returns what is wrong where a command starts an engine
// that the heading above it does not name.
func engineContradiction(d *document, s *interop.Script, w command.Setup) (text string, named []string) {
	named = headingEngines(d.file.Doc, s)
	if w.Engine == "" || len(named) == 0 || slices.Contains(named, w.Engine) {
		return "", nil
	}
	var titles []string
	for _, e := range named {
		titles = append(titles, command.EngineTitle(e))
	}
	near := append([]string{s.Note, s.Caption}, reversed(s.Section)...)
	where := near[slices.IndexFunc(near, func(t string) bool { return len(command.EnginesNamed(t)) > 0 })]
	return fmt.Sprintf("the heading %q names %s, and the command starts %s", where, strings.Join(titles, " and "), command.EngineTitle(w.Engine)), named
}

// totalsTell says which of two engines the generated totals speak for: equal
// work on equal prompts is of one engine.
func totalsTell(s *interop.Script, starts string, named []string, steps []step) string {
	var own, other, same step
	for _, st := range steps {
		switch {
		case st.script == s && own.run == nil:
			own = st
		case st.starts == starts && st.script != s && other.run == nil:
			other = st
		}
	}
	if own.run == nil {
		return ""
	}
	made := own.run.Text("total_output_tokens")
	for _, st := range steps {
		if st.script != s && slices.Contains(named, st.starts) && st.load == own.load && st.run.Text("total_output_tokens") == made {
			same = st
		}
	}
	if same.run == nil || other.run == nil || other.load != own.load || other.run.Text("total_output_tokens") == made {
		return ""
	}
	return fmt.Sprintf("; its %s generated tokens equal those of the %s block at line %d, where the %s block at line %d has %s: the script is probably the wrong one",
		made, command.EngineTitle(same.starts), same.run.Place.Line, command.EngineTitle(starts), other.run.Place.Line, other.run.Text("total_output_tokens"))
}

// documentModels are the models that a document says it is about, as cores,
// and where it says so.
func documentModels(doc *interop.Document) (cores []string, line int) {
	add := func(p interop.Text, text string) {
		for _, w := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,;`*()|", r) }) {
			if strings.ContainsAny(w, "0123456789") && strings.Contains(w, "-") && !strings.Contains(w, "://") {
				line = firstLine(line, p.Line)
				if core := command.ModelCore(w); !slices.Contains(cores, core) && len(cores) < lookback {
					cores = append(cores, core)
				}
			}
		}
	}
	for _, p := range doc.Prose {
		key, value, ok := strings.Cut(strings.ReplaceAll(strings.TrimLeft(p.Text, "-* \t"), "*", ""), ":")
		switch {
		case len(p.Section) > 0 && strings.EqualFold(strings.TrimSuffix(p.Section[len(p.Section)-1], "s"), "model"):
			add(p, p.Text)
		case ok && strings.EqualFold(strings.TrimSpace(key), "model") && len(p.Section) <= 1: // deeper it is of its section
			add(p, value)
		}
	}
	return cores, line
}

// modelContradictions finds commands that serve another model than their
// document is about, one finding a model.
func modelContradictions(d *document) []audit.Finding {
	about, printed := documentModels(d.file.Doc)
	at, first := map[string][]int{}, map[string]*interop.Script{}
	var order []string
	for s := range d.scripts(interop.ScriptServing) {
		core := command.ModelCore(strings.Trim(command.Read(s.Text).Model, `"'`))
		if !otherModel(core, s.Section, about) {
			continue
		}
		if at[core] == nil {
			order, first[core] = append(order, core), s
		}
		at[core] = append(at[core], s.Line)
	}
	var out []audit.Finding
	for _, core := range order {
		named := strings.Join(about, ", ")
		finding := audit.Finding{Type: "model-contradicts-heading", Severity: audit.Warning, Place: d.at(first[core].Line, first[core].Section),
			Text: fmt.Sprintf("the document is about %s (line %d), and the commands at %s serve %s", named, printed, audit.Lines(at[core]), command.Read(first[core].Text).Model)}
		if strings.Contains(command.ModelCore(strings.ReplaceAll(d.file.Doc.Title, " ", "-")), core) {
			finding.Place = d.at(printed, nil)
			finding.Text = fmt.Sprintf("the document says that its model is %s, and its title and the commands at %s say %s", named, audit.Lines(at[core]), core)
		}
		out = append(out, finding)
	}
	return out
}

// otherModel reports whether a command's model is another than its document is
// about. Names that have no size in common are not compared, so that a
// family's members pass under its name.
func otherModel(core string, section, about []string) bool {
	if len(about) == 0 || len(core) < 4 || strings.ContainsAny(core, "$<{") || !strings.ContainsAny(core, "0123456789") {
		return false
	}
	sizes := command.ModelSizes(core)
	for _, a := range about {
		other := command.ModelSizes(a)
		if len(sizes) == 0 || len(other) == 0 || slices.Equal(sizes, other) {
			return false
		}
	}
	return !slices.ContainsFunc(section[min(1, len(section)):], func(t string) bool {
		return strings.Contains(command.ModelCore(strings.ReplaceAll(t, "/", "-")), core)
	})
}

// layoutWord finds TP4, PP 2, EP=8 in a heading.
var layoutWord = audit.Pattern(`(?:^|[^A-Za-z])?(TP|PP|DCP|DP|EP)[ =]?(\d+)`)

// bareEP finds expert parallelism without its size.
var bareEP = audit.Pattern(`(?:^|[^A-Za-z])EP(?:$|[^A-Za-z0-9=])`)

// layoutContradiction returns what is wrong where a heading gives a layout
// that the command does not have.
func layoutContradiction(s *interop.Script, w command.Setup) string {
	if w.Engine == "" {
		return ""
	}
	have := command.Layout(w)
	for _, near := range slices.Backward(append(slices.Clone(s.Section), s.Note)) {
		found := layoutWord().FindAllStringSubmatch(near, -1)
		for _, m := range found {
			name := strings.ToLower(m[1])
			if size, _ := strconv.Atoi(m[2]); size > 0 && have[name] != size && !(name == "ep" && have[name] < 0) {
				return fmt.Sprintf("the heading says %s, and the command has %s %d", m[0], strings.ToUpper(name), max(have[name], 1))
			}
		}
		if bareEP().MatchString(near) && have["ep"] == 1 {
			return fmt.Sprintf("the heading %q names expert parallelism, and the command does not turn it on", near)
		}
		if len(found) > 0 {
			break
		}
	}
	return ""
}
