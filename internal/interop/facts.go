package interop

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"perflab/internal/interop/markdown"
	"perflab/internal/result"
)

// attribute turns the events of a scan into runs.
func attribute(s *scanner) *facts {
	f := &facts{name: s.name, scopes: []scope{{}}, versions: map[string]string{}, faults: s.faults}
	for _, e := range s.events { // what the document says as a whole
		switch {
		case e.section != nil:
			f.enter(*e.section)
		case e.prose != nil:
			f.setup(*e.prose)
		case e.profile != nil && len(f.profiles) < maxProfiles:
			f.profiles = append(f.profiles, e.profile)
		case e.script != nil && e.script.Kind == ScriptBenchmark && len(f.benches) < maxBenches && len(e.script.Text) < maxCommand:
			f.benches = append(f.benches, benchOf(e.script))
		}
	}
	for w := range strings.FieldsSeq(s.doc.Title) {
		if f.model == "" && isModelName(w) {
			f.model = w
		}
	}
	f.scopes = []scope{{}}
	for _, e := range s.events {
		switch {
		case e.section != nil:
			f.enter(*e.section)
		case e.script != nil && (e.script.Kind == ScriptServing || e.script.Kind == ScriptFlags) && len(e.script.Text) < maxCommand:
			f.top().add(commandOf(e.script))
		case e.prose != nil:
			f.prose(e.prose.Text)
		case e.tail != nil:
			f.tail(e.tail.Text)
		case e.block != nil:
			f.block(e.block)
		}
		f.fresh = e.block != nil
	}
	return f
}

// enter goes to a section. A section that held but scripts leaves them to the
// one around it: its neighbours may hold the results.
func (f *facts) enter(sec Section) {
	for len(f.scopes) > 1 && f.top().section.Level >= sec.Level {
		left := *f.top()
		f.scopes = f.scopes[:len(f.scopes)-1]
		if !left.used && left.section.Level >= 3 {
			f.top().add(left.serving...)
		}
	}
	f.scopes = append(f.scopes, scope{section: sec, nodes: nodesOf(sec.Title)})
}

// setup takes the facts of the whole document from a line of text.
func (f *facts) setup(t Text) {
	line := strings.TrimSpace(strings.TrimLeft(t.Text, "-*+ \t"))
	if _, version, ok := strings.Cut(line, "measured by "+clientPerflab+" "); ok && f.own == "" {
		f.own = strings.TrimSuffix(version, ".")
	}
	key, value, ok := strings.Cut(strings.ReplaceAll(line, "**", ""), ":")
	switch key = strings.ToLower(key); {
	case ok && key == "model" && f.model == "":
		f.model = strings.Trim(strings.TrimSpace(value), "`")
	case ok && key == "hardware" && f.hardware == "":
		f.hardware = strings.TrimSpace(value)
	}
	section := f.top().section
	title := strings.ToLower(section.Title)
	switch {
	case title == "model" && f.model == "":
		f.model = strings.Trim(line, "`*")
	case strings.HasPrefix(title, "hardware") && !strings.Contains(title, "requirement") && (f.hardware == "" || f.hardwareAt == section.Line) && len(f.hardware) < markdown.MaxCaption:
		f.hardware, f.hardwareAt = strings.TrimPrefix(f.hardware+"; "+line, "; "), section.Line
	}
	if strings.Contains(title, "version") || strings.Contains(key, "version") {
		if e := engineIn(line); e != "" && f.versions[e] == "" {
			f.versions[e] = versionIn(line)
		}
	}
}

// prose takes what a line says of the blocks that follow it.
func (f *facts) prose(line string) {
	line = strings.TrimLeft(line, "-*+ \t")
	if key, value, ok := strings.Cut(strings.ReplaceAll(line, "**", ""), ":"); ok {
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "profile":
			f.top().profile = strings.Trim(strings.TrimSpace(value), "`")
		case "hardware": // another one for what follows
			f.hardware = cmp.Or(strings.TrimSpace(value), f.hardware)
		}
	}
	f.tail(line)
}

// tail tells from a line under a block that perflab printed it.
func (f *facts) tail(line string) {
	if len(f.runs) == 0 || !f.fresh {
		return
	}
	r := &f.runs[len(f.runs)-1]
	compat := strings.HasPrefix(line, "figures by vllm bench serve's definitions")
	if !compat && !strings.HasPrefix(line, "Precision (95 % intervals") && !strings.HasPrefix(line, "Verdict: ") || r.Header.Imported.Client == clientSGLang {
		return
	}
	r.ours(compat)
	if _, rest, ok := strings.Cut(line, "Verdict: "); ok && r.Verdict.Status == "" {
		if status, _, _ := strings.Cut(rest, " "); slices.Contains([]result.Status{result.Noted, result.Voided}, result.Status(status)) {
			r.Verdict.Add(result.Check{Name: "as_measured", Status: result.Status(status), Text: "perflab said so when it measured: " + rest})
		}
	}
}

// ours marks a run as perflab's own.
func (r *Run) ours(compat bool) {
	if r.Header.Imported.Client == clientPerflab && !compat {
		return
	}
	measured := r.Defs["max_concurrency"]
	r.Header.Imported.Client, r.Defs = clientPerflab, nil
	if compat {
		r.Defs = result.DefinitionsOf(result.VLLM)
	}
	if measured != "" {
		r.Defs = maps.Clone(r.Defs)
		if r.Defs == nil {
			r.Defs = map[string]result.Definition{}
		}
		r.Defs["max_concurrency"] = measured
	}
}

// block makes a run of a block.
func (f *facts) block(b *found) {
	for _, t := range b.faults {
		t.File, t.Section = f.name, b.section
		f.faults = append(f.faults, t)
	}
	if len(b.figures) == 0 {
		return
	}
	client, defs := b.client()
	r := Run{Place: Place{f.name, b.line, b.end, b.section}, Figures: b.figures, Other: b.other, Absent: b.absent, Defs: defs, Sim: b.sim}
	f.faults = append(f.faults, r.dropUnmeasured()...)
	if len(r.Figures) == 0 {
		f.faults = append(f.faults, Fault{Place: r.Place, Text: "the block has latencies of zero and nothing else: nothing was measured"})
		return
	}
	r.Header.Simulated = b.sim
	labels := result.Labels{}
	r.Header.Imported = &result.Imported{
		Client: client, Format: FormatText, File: f.name[strings.LastIndexAny(f.name, `/\`)+1:],
		Line: b.line, End: b.end, Section: b.section, Labels: labels,
	}
	if b.sim || f.own != "" {
		r.ours(false)
		r.Header.Imported.Version = f.own
	}
	f.around(&r, b)
	for i := range f.scopes {
		f.scopes[i].used = true
	}
	maps.DeleteFunc(labels, func(_, v string) bool { return v == "" })
	f.runs = append(f.runs, r)
}

// around sets the facts that stand around a block.
func (f *facts) around(r *Run, b *found) {
	labels := r.Header.Imported.Labels
	labels[result.LabelCase], labels[labelCaption], labels[result.LabelRole] = b.note, b.caption, roleOf(b.caption)
	labels[result.LabelHardware], labels[result.LabelGPUs], labels[result.LabelNodes] = f.hardware, gpusIn(f.hardware), nodesOf(f.hardware)
	for _, s := range f.scopes {
		if s.nodes != "" {
			labels[result.LabelNodes] = s.nodes
		}
	}
	p := f.profileFor(b)
	f.load(r, p)
	served := ""
	c := f.serving(labels[result.LabelRole])
	if c != nil {
		r.Header.Command = f.filled(c, r, p)
		labels[result.LabelRole] = cmp.Or(labels[result.LabelRole], c.role)
		labels[result.LabelEngine], labels[result.LabelEngineVersion], served = c.engine, c.version, c.model
	}
	r.Header.Model = cmp.Or(served, f.sectionModel(), f.model, r.Header.Model)
	labels[result.LabelEngine] = cmp.Or(labels[result.LabelEngine], engineAround(b))
	labels[result.LabelEngineVersion] = cmp.Or(labels[result.LabelEngineVersion], versionAround(labels[result.LabelEngine], b), f.versions[labels[result.LabelEngine]])
}

// serving returns the command that the next block was served by: the nearest
// above in this section or those around it, of the same role where it has one.
func (f *facts) serving(role string) *shownCommand {
	for _, s := range slices.Backward(f.scopes) {
		for _, c := range slices.Backward(s.serving) {
			if role == "" || c.role == "" || c.role == role {
				return c
			}
		}
	}
	return nil
}

// engineAround returns the engine that what stands around a block names.
func engineAround(b *found) string {
	for _, t := range slices.Backward(b.section) {
		if e := engineIn(t); e != "" {
			return e
		}
	}
	return engineIn(b.note + " " + b.caption)
}

// sorted returns the faults in the order of the file.
func (f *facts) sorted() []Fault {
	slices.SortStableFunc(f.faults, func(a, b Fault) int { return a.Line - b.Line })
	return f.faults
}
