package document

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// step is a run of a document with what was served for it.
type step struct {
	run    *interop.Run
	script *interop.Script // that started the engine; nil where none is shown
	setup  command.Setup
	starts string // the engine that the script starts, whatever the heading says
	load   string // equal for runs of one load
	role   string
}

// line is where the step's command stands, or else its block.
func (s step) line() int {
	if s.script != nil {
		return s.script.Line
	}
	return s.run.Place.Line
}

// stepsOf reads the runs of a document as steps, in its order.
func stepsOf(f *interop.File) []step {
	out := make([]step, 0, len(f.Runs))
	next, read := 0, map[string]command.Setup{}
	var above []*interop.Script
	var loads loadList
	requested := requestedByRun(f)
	for i := range f.Runs {
		r := &f.Runs[i]
		for f.Doc != nil && next < len(f.Doc.Scripts) && f.Doc.Scripts[next].Line < r.Place.Line {
			if k := f.Doc.Scripts[next].Kind; k == interop.ScriptServing || k == interop.ScriptFlags {
				above = append(above, &f.Doc.Scripts[next])
			}
			next++
		}
		s := step{run: r, load: loads.of(r) + "|" + requested[i], role: r.Header.Label(result.LabelRole)}
		if r.Header.Command != "" {
			s.script = scriptOf(above, r.Header.Command)
		}
		s.setup = setupOf(f.Doc, r, s.script, read)
		if s.script != nil {
			s.starts = read[r.Header.Command].Engine
		}
		out = append(out, s)
	}
	return out
}

// scriptOf returns the script whose command a run has: the last one above with
// the same words, else the last one above.
func scriptOf(above []*interop.Script, command string) *interop.Script {
	for _, s := range slices.Backward(above[max(0, len(above)-lookback):]) {
		if s.Text == command {
			return s
		}
	}
	if len(above) > 0 {
		return above[len(above)-1]
	}
	return nil
}

// setupOf reads what a run was served by: its command, what was exported
// before it, and what the comment above its block says otherwise.
func setupOf(doc *interop.Document, r *interop.Run, script *interop.Script, read map[string]command.Setup) command.Setup {
	s, ok := read[r.Header.Command]
	if !ok {
		s = command.Read(r.Header.Command)
		read[r.Header.Command] = s
	}
	s.Flags = maps.Clone(s.Flags)
	if s.Engine == "" {
		s.Engine = r.Header.Label(result.LabelEngine)
	}
	if script != nil {
		maps.Copy(s.Flags, exported(doc, script.Line))
		if named := headingEngines(doc, script); len(named) == 1 && s.Engine != "" {
			s.Engine = named[0]
		}
	}
	caption := r.Header.Label(result.LabelCase)
	over := command.CaptionFlags(caption)
	for name := range s.Flags { // a caption spells all flags of what it is about
		for named := range over {
			if command.FeatureOf(name) == command.FeatureOf(named) {
				delete(s.Flags, name)
			}
		}
	}
	maps.Copy(s.Flags, over)
	if over == nil && tellsApart(r, caption) {
		s.Case = caption
	}
	return s
}

// tellsApart reports whether a caption without flags may stand for a change of
// the setup: not where it names the load, or what the command says anyway.
func tellsApart(r *interop.Run, caption string) bool {
	return r.Header.Label(result.LabelRole) == "" && !strings.EqualFold(caption, r.Header.Label("profile")) &&
		!strings.Contains(strings.ToLower(r.Header.Command), strings.ToLower(caption))
}

// loadList are the loads of a document, each by its first run.
type loadList []*interop.Run

// How far apart runs of one load are, as shares.
const (
	sameCount  = 0.1  // in completed requests: the others failed
	sameLength = 0.03 // in tokens per prompt
)

// of returns a key that is equal for runs that were asked the same: at one rate
// and limit, with prompts of one length, and as many of them but for failures.
func (l *loadList) of(r *interop.Run) string {
	key := rateOf(r)
	if r.Definition("max_concurrency") != result.MeasuredMaximum {
		key += "|" + r.Text("max_concurrency")
	}
	for i, e := range *l {
		if audit.Near(e.Value("completed"), r.Value("completed"), sameCount) &&
			audit.Near(e.PerRequest("total_input_tokens"), r.PerRequest("total_input_tokens"), sameLength) {
			return key + "|" + strconv.Itoa(i)
		}
	}
	if len(*l) < lookback {
		*l = append(*l, r)
	}
	return key + "|" + strconv.Itoa(len(*l)-1)
}

// exportLines is how far above a command its variables are set.
const exportLines = 16

// exported are the assignments that stand directly above a script's line.
func exported(doc *interop.Document, line int) map[string]string {
	var out map[string]string
	for i := line - 2; i >= 0 && i < len(doc.Lines) && line-i < exportLines; i-- {
		l := strings.TrimSpace(doc.Lines[i])
		rest, ok := strings.CutPrefix(l, "export ")
		if !ok && !strings.HasPrefix(l, "# ") {
			break
		}
		if name, value, found := strings.Cut(rest, "="); ok && found {
			if out == nil {
				out = map[string]string{}
			}
			out[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return out
}

// requestedByRun tells for each run what the last benchmark command above it asks for
// besides what its block prints, and the device that its headings or hardware
// name: runs in which it differs were not meant to agree.
func requestedByRun(f *interop.File) []string {
	out := make([]string, len(f.Runs))
	next, requested := 0, ""
	for i := range f.Runs {
		r := &f.Runs[i]
		for ; f.Doc != nil && next < len(f.Doc.Scripts) && f.Doc.Scripts[next].Line < r.Place.Line; next++ {
			if s := &f.Doc.Scripts[next]; s.Kind == interop.ScriptBenchmark {
				w := command.Read(s.Text)
				requested = fmt.Sprint(w.Number("random-output-len", "random-output", "output-len", "sharegpt-output-len"), "/", w.Flags["dataset-name"], "/", command.ModelCore(w.Model))
			}
		}
		out[i] = requested
		if a, ok := audit.AcceleratorIn(append(reversed(r.Place.Section), r.Header.Label(result.LabelHardware))...); ok {
			out[i] += "/" + a.Name
		}
	}
	return out
}

// headingEngines returns the engines that the nearest text above a script
// names; nil where none does. The document's title does not count.
func headingEngines(doc *interop.Document, s *interop.Script) []string {
	for _, near := range []string{s.Note, s.Caption} {
		if named := command.EnginesNamed(near); len(named) > 0 {
			return named
		}
	}
	for i := len(s.Section) - 1; i >= 0; i-- {
		if s.Section[i] == doc.Title {
			break
		}
		if named := command.EnginesNamed(s.Section[i]); len(named) > 0 {
			return named
		}
	}
	return nil
}

// reversed is a copy in the other order.
func reversed(all []string) []string {
	out := slices.Clone(all)
	slices.Reverse(out)
	return out
}
