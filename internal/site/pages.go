package site

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"perflab/internal/audit"
	"perflab/internal/report/doc"
	"perflab/internal/result"
)

// simulated is the tag of what no hardware gave.
func simulated(is bool) []doc.Span {
	if !is {
		return nil
	}
	return doc.Spans(" ", doc.Tag("noted", "SIMULATED"))
}

func (e Entry) path() string { return "studies/" + e.Name + ".html" }

// day writes a date; "" where there is none.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

// verdict is the audit's in a word and its counts.
func (e Entry) verdict() doc.Cell {
	errors, warnings, notes := e.Audit.Count(audit.Error), e.Audit.Count(audit.Warning), e.Audit.Count(audit.Note)
	tone, word := "sound", "nothing found"
	switch {
	case len(e.Audit.Files) == 0:
		return doc.Cell{Text: doc.Spans("not audited")}
	case errors > 0:
		tone, word = "void", counted(errors, "error")
	case warnings > 0:
		tone, word = "noted", counted(warnings, "warning")
	case notes > 0:
		tone, word = "remark", counted(notes, "note")
	}
	return doc.Cell{Text: doc.Spans(doc.Tag(tone, word))}
}

// overview is the first page.
func (s Site) overview(entries []Entry) doc.Document {
	banner := ""
	var all []Result
	for _, e := range entries {
		all = append(all, e.Results...)
	}
	if len(all) > 0 && !slices.ContainsFunc(all, func(r Result) bool { return !r.Simulated }) {
		banner = "SIMULATED: no GPU was used for any of these results. They say what a model of the hardware gives, not what hardware did."
	}
	d := doc.New(s.title(), banner, "the site "+s.title())
	b := &d.Body
	known := slices.DeleteFunc(gpus.groups(entries), func(g group) bool { return g.key == "" })
	b.Styled(doc.InPage, "lead", fmt.Sprintf("%s of %s on %s.", countedAs(len(entries), "study", "studies"), counted(len(models.groups(entries)), "model"), countedAs(len(known), "kind of GPU", "kinds of GPUs")))
	if len(entries) == 0 {
		b.Styled(doc.InPage, "", "Nothing is published yet.")
	}
	b.Section("studies", "Studies").Add(doc.InPage, resultTable(entries, "", func(Result) bool { return true }))
	for _, k := range []kind{models, gpus} {
		l := doc.List{}
		for _, g := range k.groups(entries) {
			n := counted(g.rows, "measurement")
			l.Items = append(l.Items, doc.Spans(doc.Link(g.path, g.name), ": "+n))
		}
		b.Part(doc.InPage, doc.Section{ID: k.dir, Title: k.heading, Listed: true}).Add(doc.InPage, l)
	}
	k := b.Section("read", "How to Read This")
	k.List(doc.InPage,
		"A study links to its full report: every result block, the plots, the serving commands and how to repeat it.",
		"A gain has its interval where configurations were launched repeatedly. Where it says that there is none, one run stands on each side, and the difference may be chance.",
		"Of a list of runs that perflab imported, the best is named by the largest throughput or, at a given rate, by the shortest latency under the load that most runs had. It is not what their authors recommend.",
		"The audit holds figures against each other and against what the hardware can do. A result whose figures cannot all be true is in no conclusion here.",
		"What says SIMULATED was made by a model of engine and hardware: no GPU was measured.")
	if !s.Date.IsZero() {
		b.Styled(doc.InPage, "muted", "Published "+day(s.Date)+".")
	}
	return d
}

// resultTable has a row for each result that is wanted. Paths are below root.
func resultTable(entries []Entry, root string, wanted func(Result) bool) doc.Table {
	t := doc.Table{Class: "cards", HeadCell: -1, Columns: doc.Columns("Study", "Model and hardware", "Best configuration", "Figure", "Gain", "Audit")}
	for _, e := range entries {
		for _, r := range e.Results {
			if !wanted(r) {
				continue
			}
			study := doc.Cell{Text: append(doc.Spans(doc.Link(root+e.path(), e.Title)), simulated(r.Simulated)...), Beside: day(e.Date)}
			hardware := doc.Cell{Text: doc.Spans(r.Model), Beside: r.Hardware}
			best := doc.Cell{Text: doc.Spans(cmp.Or(r.Best, doc.None))}
			figure := doc.Cell{Text: doc.Spans(cmp.Or(r.Figure, doc.None))}
			if r.Best != "" {
				best.Beside, figure.Beside = r.Word, r.Measure
			}
			gain := doc.Cell{Text: doc.Spans(cmp.Or(r.Gain, doc.None)), Beside: r.Basis, Tone: r.Tone}
			t.Rows = append(t.Rows, doc.Cells(study, hardware, best, figure, gain, e.verdict()))
		}
	}
	return t
}

// document is the report of the entry with the audit's verdict.
func (e Entry) document() doc.Document {
	d := e.Document
	d.Tail = 0
	if len(e.Audit.Files) == 0 {
		return d
	}
	d.Body.Items = slices.Clone(d.Body.Items)
	line := doc.Spans("Audit: ")
	line = append(line, e.verdict().Text...)
	d.Body.Prepend(doc.InPage, doc.Paragraph("", append(line, doc.Spans(" ", doc.Link("#audit", "what was checked and found"))...)))
	s := d.Body.Part(doc.InPage, doc.Section{ID: "audit", Title: "Audit", Listed: true})
	s.Styled(doc.InPage, "muted", "perflab held the figures against each other, against what the hardware can do, and against what the text says of them.")
	e.Audit.AddTo(s)
	return d
}

// found is what a search can find of the entry.
func (e Entry) found() []doc.Found {
	var about []string
	for _, r := range e.Results {
		about = append(about, r.Model, r.Hardware, r.Best)
	}
	out := []doc.Found{{Title: e.Title, Path: e.path(), Text: strings.Join(unique(about), " · ")}}
	for _, m := range e.Measured {
		path := e.path()
		if m.Anchor != "" {
			path += "#" + m.Anchor
		}
		out = append(out, doc.Found{Title: m.Label, Path: path, Text: strings.Join(unique([]string{e.Title, m.Model, m.Hardware, m.Load, m.Command}), " · ")})
	}
	return out
}

// unique drops what is empty or was there before.
func unique(all []string) []string {
	var out []string
	for _, s := range all {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// kind is what pages collect results by.
type kind struct {
	dir, title, heading string
	of                  func(model, gpu string) (key, name string)
}

var (
	models = kind{"models", "Model", "Models", func(model, _ string) (string, string) { return modelKey(model), model }}
	gpus   = kind{"gpus", "GPU", "GPUs", func(_, gpu string) (string, string) { return gpu, cmp.Or(gpu, "GPU "+notStated) }}
)

// has reports whether something belongs to a group.
func (k kind) has(g group, model, gpu string) bool {
	key, _ := k.of(model, gpu)
	return key == g.key
}

// group is one page of a kind. Its name is the shortest that its members have.
type group struct {
	key        string
	name, path string
	rows       int
	entries    []Entry
}

// groups are the pages of a kind, by name.
func (k kind) groups(entries []Entry) []group {
	all := map[string]group{}
	add := func(model, gpu string, rows int) {
		key, name := k.of(model, gpu)
		g, ok := all[key]
		if !ok || len(name) < len(g.name) || len(name) == len(g.name) && name < g.name {
			g.name = name
		}
		g.key, g.rows = key, g.rows+rows
		all[key] = g
	}
	for _, e := range entries {
		for _, r := range e.Results {
			add(r.Model, r.GPU, 0)
		}
		for _, m := range e.Measured {
			add(m.Model, m.GPU, 1)
		}
	}
	out := slices.SortedFunc(maps.Values(all), func(a, b group) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.name), strings.ToLower(b.name)), cmp.Compare(a.key, b.key))
	})
	taken := names{}
	for i := range out {
		out[i].path, out[i].entries = k.dir+"/"+taken.slug(out[i].name, "unnamed")+".html", entries
	}
	return out
}

// document is the page of a model or a GPU.
func (k kind) document(g group) doc.Document {
	d := doc.New(g.name, "", "the page of "+g.name)
	b := &d.Body
	results := resultTable(g.entries, "../", func(r Result) bool { return k.has(g, r.Model, r.GPU) })
	b.Section("results", "Results").Add(doc.InPage, results)
	commands := b.Section("commands", "Serving Commands")
	for _, e := range g.entries {
		for _, r := range e.Results {
			if !k.has(g, r.Model, r.GPU) || r.Command == "" {
				continue
			}
			s := commands.Part(doc.InPage, doc.Section{Title: r.Best})
			line := doc.Spans(r.Model+" on "+r.Hardware+", of ", doc.Link("../"+e.path(), e.Title), ". "+sentence(strings.TrimPrefix(r.Gain+"; "+r.Basis, "; ")))
			s.Styled(doc.InPage, "", append(line, simulated(r.Simulated)...))
			s.Add(doc.InPage, doc.Pre{Commands: true, Text: doc.WrapScript(r.Command)})
		}
	}
	all := b.Section("measurements", "All Measurements")
	for _, e := range g.entries {
		t := doc.NewGrid(doc.Columns("=Configuration", "=Load", "Verdict"))
		t.Columns[0].Class = "wide"
		for _, name := range figures {
			m, err := result.Lookup(name)
			if err != nil {
				continue
			}
			t.Columns = append(t.Columns, doc.Column{Head: doc.Spans(m.Label), Right: true, Wrap: true, Tip: m.Doc})
		}
		for _, m := range e.Measured {
			if !k.has(g, m.Model, m.GPU) {
				continue
			}
			href := "../" + e.path()
			if m.Anchor != "" {
				href += "#" + m.Anchor
			}
			what := doc.Cell{Text: append(doc.Spans(doc.Link(href, m.Label)), simulated(m.Simulated)...), Beside: strings.Join(unique([]string{m.Model, m.Hardware}), ", ")}
			row := doc.Cells(what, m.Load, doc.Spans(doc.Tag(m.Status, cmp.Or(m.Status, "none"))))
			for _, f := range m.Figures {
				row.Cells = append(row.Cells, doc.Cell{Text: doc.Spans(f)})
			}
			if m.Status == string(result.Voided) {
				row.Class = "void"
			}
			t.Rows = append(t.Rows, row)
		}
		if len(t.Rows) > 0 {
			s := all.Part(doc.InPage, doc.Section{Title: e.Title})
			s.Add(doc.InPage, *t)
		}
	}
	return d
}

// sentence gives a clause its full stop.
func sentence(s string) string {
	if s = strings.TrimSuffix(s, "."); s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
