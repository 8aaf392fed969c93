package prediction

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/calib"
	"perflab/internal/forecast"
	"perflab/internal/report/doc"
)

// Calibration shows the constants of a fit, its errors in sample and held out, and
// what was left out.
func Calibration(f *forecast.Fit) doc.Document {
	d := doc.New("Calibration", "", "the calibration")
	s := &d.Body
	simulated := ""
	if f.Simulated {
		simulated = "SIMULATED runs, no hardware was measured. "
	}
	s.Text(simulated+"Fitted to "+f.Calibration.Source, "")
	addConstants(s, f.Constants())
	addErrors(s, "Errors in sample (predicted / measured - 1; no measure of accuracy)", f.InSampleErrors())
	addErrors(s, "Errors held out: each run predicted by constants fitted without its "+strings.Replace(f.HeldOutBy(), ", or", ",\nor", 1), f.HeldOutErrors())
	if len(f.Omitted) > 0 {
		s.Text("Not used:", OmissionsText(f.Omitted))
	}
	return d
}

// OmissionsText says what was not used, each reason once with all places.
func OmissionsText(omitted []forecast.Omission) string {
	b := &strings.Builder{}
	places := map[string][]string{}
	var all []string
	for _, o := range omitted {
		all = append(all, o.Place)
	}
	shared := forecast.SharedDir(all)
	for _, o := range omitted {
		places[o.Why] = append(places[o.Why], strings.TrimPrefix(o.Place, shared))
	}
	for _, o := range omitted {
		switch at := places[o.Why]; {
		case len(at) == 1:
			fmt.Fprintf(b, "  %s: %s\n", at[0], o.Why)
		case len(at) > 1:
			fmt.Fprintf(b, "  %s\n", o.Why)
			writeNames(b, at)
		}
		places[o.Why] = nil
	}
	return b.String()
}

// writeNames writes names in lines that are not too long.
func writeNames(b *strings.Builder, names []string) {
	n := 0
	for i, name := range names {
		if i < len(names)-1 {
			name += ","
		}
		switch {
		case i == 0:
			b.WriteString("    ")
		case n+len(name) > maxWidth-5:
			b.WriteString("\n    ")
			n = 0
		default:
			b.WriteByte(' ')
		}
		b.WriteString(name)
		n += len(name) + 1
	}
	b.WriteByte('\n')
}

// addConstants adds each constant that the runs tell something of beside
// its prior, and names the others.
func addConstants(s *doc.Section, constants []forecast.Constant) {
	s.Text("Constants that the runs tell, beside the prior (± standard deviation)")
	t := groupedTable{}
	silent := map[string][]string{}
	for _, c := range constants {
		of := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %s", c.Accelerator, c.Format, c.Engine, c.Family, c.Study)), " ")
		if c.Silent {
			silent[c.Name] = append(silent[c.Name], of)
			continue
		}
		t.add(fmt.Sprintf("%s (%s): %s", c.Name, c.Unit, c.Meaning), "    "+of,
			fmt.Sprintf("prior %.3g ± %.0f %%", c.Prior, 100*c.PriorSpread), fmt.Sprintf("fitted %.3g ± %.0f %%", c.Value, 100*c.Spread))
	}
	s.Add(doc.InText, t.table())
	if len(silent) > 0 {
		s.Text("At the prior or near it, as the runs say too little of them:")
	}
	for _, name := range slices.Sorted(maps.Keys(silent)) {
		s.Text("  " + name + ": " + strings.Join(silent[name], ", "))
	}
	s.Text("")
}

// errorHeads are the heads of the columns of errors.
var errorHeads = map[string]string{
	calib.Throughput: "throughput", calib.MeanTTFT: "mean TTFT", calib.MedianTTFT: "median TTFT", calib.MeanTPOT: "mean TPOT", calib.MedianITL: "median ITL", calib.MeanE2E: "mean E2E",
}

// addErrors adds the errors of each run below what it was measured on, and
// the quantiles of their sizes.
func addErrors(s *doc.Section, title string, e forecast.ErrorTable) {
	s.Text(title)
	cells := func(first, last, format string, values map[string]float64) []string {
		row := []string{first}
		for _, m := range e.Metrics {
			if v, ok := values[m]; ok {
				row = append(row, fmt.Sprintf(format, 100*v))
			} else {
				row = append(row, "-")
			}
		}
		return append(row, last)
	}
	t := groupedTable{}
	head := []string{"    run"}
	for _, m := range e.Metrics {
		head = append(head, errorHeads[m])
	}
	t.add("", append(head, "workload")...)
	for _, g := range e.Groups {
		for _, r := range g.Runs {
			t.add(r.Setup, cells("    "+r.Run, r.Workload, "%+.1f %%", r.Errors)...)
		}
		prefix := "  "
		if g.Apart {
			prefix += "apart: "
		}
		t.add("", cells(prefix+"median of sizes", "", "%.1f %%", g.Median)...)
		t.add("", cells(prefix+"90th percentile", "", "%.1f %%", g.P90)...)
	}
	s.Add(doc.InText, t.table())
	s.Text("")
}

// groupedTable is rows of one width for each column, with a heading above the
// first of those that share it.
type groupedTable struct {
	headings []string // of each row; "": none
	rows     [][]string
}

func (t *groupedTable) add(heading string, cells ...string) {
	t.headings, t.rows = append(t.headings, heading), append(t.rows, cells)
}

func (t *groupedTable) table() doc.Table {
	out := doc.Table{NoHead: doc.InText, Trimmed: true}
	last := ""
	for i, all := range t.rows {
		r := doc.Texts(all...)
		if h := t.headings[i]; h != last {
			if h != "" {
				r.Above = "  " + h
			}
			last = h
		}
		out.Rows = append(out.Rows, r)
	}
	return out
}
