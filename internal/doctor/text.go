package doctor

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"perflab/internal/version"
)

// Text is what a terminal shows.
func (r Report) Text() string {
	t := &sheet{}
	t.host(r)
	t.accelerators(r)
	t.engines(r)
	t.servers(r)
	t.models(r)
	t.client(r)
	t.abilities(r)
	t.missing(r)
	return t.b.String()
}

// sheet is rows under headings.
type sheet struct{ b strings.Builder }

// rows writes a heading and rows of cells below each other. A strings.Builder takes everything.
func (t *sheet) rows(heading string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	if t.b.Len() > 0 {
		t.b.WriteByte('\n')
	}
	t.b.WriteString(heading + "\n")
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(w, "  %s\n", strings.Join(r, "\t"))
	}
	w.Flush()
	for line := range strings.Lines(table.String()) {
		t.b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// list joins what there is.
func list(sep string, parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, sep)
}

func gib(format string, n float64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

func (t *sheet) host(r Report) {
	h := r.Host
	system := list(", ", h.System, h.Arch)
	if h.Kernel != "" {
		system += ", kernel " + h.Kernel
	}
	if h.Containers {
		system += ", in a container"
	}
	docker := "no: " + cmp.Or(r.why("docker"), "not asked")
	if d := r.Docker; d != nil {
		docker = "Docker " + d.Version + strings.TrimSuffix(", runtimes "+strings.Join(d.Runtimes, ", "), ", runtimes ")
	}
	t.rows("This machine", [][]string{
		{"perflab", list(", commit ", r.Program.Version, r.Program.Commit)},
		{"system", cmp.Or(system, "unknown")},
		{"processors", fmt.Sprintf("%d", h.CPUs) + strings.TrimSuffix(" x "+h.CPU, " x ")},
		{"memory", cmp.Or(list(", ", gib("%.1f GiB", h.MemoryGiB), gib("%.1f GiB of it free", h.FreeGiB)), "unknown")},
		{"containers", docker},
		{"ssh", cmp.Or(r.SSH, "not found")},
	})
}

func (t *sheet) accelerators(r Report) {
	var rows [][]string
	for _, a := range r.Accelerators {
		known := "not in perflab's table"
		if len(a.Known) > 0 {
			known = "--gpu " + strings.Join(a.Known, " or ")
		}
		free := ""
		if a.FreeGiB != nil {
			free = fmt.Sprintf("%.1f GiB free", *a.FreeGiB)
		}
		rows = append(rows, []string{fmt.Sprint(a.Index), a.Name, known, list(", ", a.Details, free)})
		for _, h := range a.Holders {
			rows = append(rows, []string{"", h})
		}
	}
	if len(rows) == 0 {
		var names []string
		for _, tool := range tools {
			names = append(names, tool.program)
		}
		text := "none: there is no " + strings.Join(names, ", no ")
		rows = [][]string{{cmp.Or(strings.TrimSuffix("unknown: "+r.why("accelerators"), "unknown: "), text)}}
	}
	t.rows("Accelerators", rows)
}

func (t *sheet) engines(r Report) {
	var rows [][]string
	for _, e := range r.Engines {
		where := cmp.Or(e.Path, e.Python)
		if e.Path != "" && e.Python != "" {
			where = e.Path + ", of " + e.Python
		}
		if !e.OnPath {
			where += " (not what this shell starts)"
		}
		rows = append(rows, []string{e.Title, cmp.Or(e.Version, "version unknown"), where})
	}
	if len(rows) == 0 {
		rows = [][]string{{"none on PATH and in python3: vllm, sglang, trtllm-serve, llama-server"}}
	}
	if why := r.why("engines"); why != "" {
		rows = append(rows, []string{"not all is known: " + why})
	}
	t.rows("Engines", rows)
}

func (t *sheet) servers(r Report) {
	var rows [][]string
	for _, s := range r.Servers {
		what := strings.Join(s.Models, ", ")
		if s.Simulated {
			what += " (SIMULATED)"
		}
		rows = append(rows, []string{s.URL, cmp.Or(what, s.Note), list(" ", s.Engine, s.Version)})
	}
	if len(rows) == 0 {
		rows = [][]string{{"none on " + portsText()}}
	}
	t.rows("Servers that answer", rows)
}

func (t *sheet) models(r Report) {
	var rows [][]string
	for _, m := range r.Models {
		weights := map[string]string{AllWeights: fmt.Sprintf("weights %.1f GiB", m.GiB), SomeWeights: "weights in part", NoWeights: "no weights"}[m.Weights]
		tokenizer, known := "no tokenizer.json", ""
		if m.Tokenizer {
			tokenizer = "tokenizer"
		}
		if !m.Known {
			known = "predictions need its config.json"
		}
		rows = append(rows, []string{m.ID, weights, tokenizer, known})
	}
	switch {
	case r.why("models") != "":
		rows = [][]string{{"unknown: " + r.why("models")}}
	case len(rows) == 0:
		rows = [][]string{{"none"}}
	}
	t.rows(list(" in ", "Models", cmp.Or(r.Cache, "the Hugging Face cache")), rows)
}

func (t *sheet) client(r Report) {
	files := "unknown"
	if n := r.Client.OpenFiles; n > 1<<30 {
		files = "no limit"
	} else if n > 0 {
		files = fmt.Sprintf("%d at most", n)
	}
	rows := [][]string{{"open files", files}, {"clock", cmp.Or(r.Client.ClockSource, "unknown")}}
	for _, f := range version.Features(r.Program.OS) {
		if !f.Here {
			rows = append(rows, []string{f.Name, "no: " + f.Detail})
		}
	}
	t.rows("As the client that measures", rows)
}

func (t *sheet) abilities(r Report) {
	t.b.WriteString("\nWhat perflab can do here\n")
	for _, a := range r.Abilities {
		t.paragraph(2, a.Command+": "+string(a.State)+". "+a.Text)
		if a.Try != "" {
			t.b.WriteString("      $ " + a.Try + "\n")
		}
	}
}

func (t *sheet) missing(r Report) {
	if len(r.Missing) > 0 {
		t.b.WriteString("\nTo do more\n")
	}
	for _, m := range r.Missing {
		t.paragraph(2, m.What+" "+m.Do)
	}
}

// width is that of a line of prose.
const width = 100

// paragraph writes text broken at blanks, its further lines deeper than the first.
func (t *sheet) paragraph(indent int, text string) {
	at := strings.Repeat(" ", indent)
	line := at
	for word := range strings.FieldsSeq(text) {
		if len(line) > len(at) && len(line)+len(word) > width {
			t.b.WriteString(strings.TrimRight(line, " ") + "\n")
			at = strings.Repeat(" ", indent+4)
			line = at
		}
		line += word + " "
	}
	t.b.WriteString(strings.TrimRight(line, " ") + "\n")
}
