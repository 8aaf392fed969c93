package cli

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"perflab/internal/calib"
	"perflab/internal/sim"
	"perflab/internal/stat"
)

// text prints the constants, the errors in sample and held out, and what was
// left out.
func (c *calibrated) text(w io.Writer, out string) error {
	var b strings.Builder
	simulated := ""
	if c.Simulated {
		simulated = "SIMULATED runs, no hardware was measured. "
	}
	fmt.Fprintf(&b, "%sFitted to %s\n\n", simulated, c.Calibration.Source)
	c.constants(&b)
	c.errors(&b, "Errors in sample (predicted / measured - 1; no measure of accuracy)", c.InSample)
	c.errors(&b, "Errors held out: each run predicted by constants fitted without its "+strings.Replace(c.heldOutBy(), ", or", ",\nor", 1), c.Held)
	if len(c.Left) > 0 {
		fmt.Fprintf(&b, "Not used:\n%s\n", leftText(c.Left))
	}
	if out == "" {
		fmt.Fprintln(&b, "No file was written: give --out FILE.")
	} else {
		fmt.Fprintf(&b, "Written to %s\n", out)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print the calibration: %w", err)
	}
	return nil
}

// heldOutBy says what runs were held out by.
func (c *calibrated) heldOutBy() string {
	if c.HoldOut == "auto" {
		return "workload, or model where more of them were seen"
	}
	return c.HoldOut
}

// leftText says what was not used, each reason once with all places.
func leftText(left []unused) string {
	var b strings.Builder
	places := map[string][]string{}
	var all []string
	for _, u := range left {
		all = append(all, u.Place)
	}
	shared := sharedDir(all)
	for _, u := range left {
		places[u.Why] = append(places[u.Why], strings.TrimPrefix(u.Place, shared))
	}
	for _, u := range left {
		switch at := places[u.Why]; {
		case len(at) == 1:
			fmt.Fprintf(&b, "  %s: %s\n", at[0], u.Why)
		case len(at) > 1:
			fmt.Fprintf(&b, "  %s\n", u.Why)
			listed(&b, at)
		}
		places[u.Why] = nil
	}
	return b.String()
}

// listed writes names in lines that are not too long.
func listed(b *strings.Builder, names []string) {
	n := 0
	for i, name := range names {
		if i < len(names)-1 {
			name += ","
		}
		switch {
		case i == 0:
			b.WriteString("    ")
		case n+len(name) > helpWidth-5:
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

// silent says that the runs tell nothing of a constant: its spread is still the
// prior's, and it lies within half of that.
func silent(p *calib.Parameter) bool {
	return p.Spread >= 0.95*p.PriorSpread && math.Abs(math.Log(p.Value/p.Prior)) < p.PriorSpread/2
}

// constants prints each constant that the runs tell something of beside its
// prior, and names the others.
func (c *calibrated) constants(b *strings.Builder) {
	b.WriteString("Constants that the runs tell, beside the prior (± standard deviation)\n")
	var text strings.Builder
	tw := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	var moved []calib.Parameter
	others := map[string][]string{}
	for _, p := range slices.SortedStableFunc(slices.Values(c.Parameters), func(x, y calib.Parameter) int { return strings.Compare(x.Name, y.Name) }) {
		of := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", p.Accelerator, p.Format, p.Engine)), " ")
		if silent(&p) {
			others[p.Name] = append(others[p.Name], of)
			continue
		}
		moved = append(moved, p)
		fmt.Fprintf(tw, "    %s\tprior %.3g ± %.0f %%\tfitted %.3g ± %.0f %%\n", of, p.Prior, 100*p.PriorSpread, p.Value, 100*p.Spread)
	}
	tw.Flush() // into a Builder, which never fails
	last, i := "", 0
	for line := range strings.Lines(text.String()) {
		if name := moved[i].Name; name != last {
			k, _ := sim.Priors().About(name)
			fmt.Fprintf(b, "  %s (%s): %s\n", name, k.Unit, k.Meaning)
			last = name
		}
		b.WriteString(line)
		i++
	}
	if len(others) > 0 {
		b.WriteString("At the prior or near it, as the runs say too little of them:\n")
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		fmt.Fprintf(b, "  %s: %s\n", name, strings.Join(others[name], ", "))
	}
	b.WriteByte('\n')
}

// shortNames are the heads of columns.
var shortNames = map[string]string{
	calib.Throughput: "throughput", calib.MeanTTFT: "mean TTFT", calib.MedianTTFT: "median TTFT", calib.MeanTPOT: "mean TPOT", calib.MedianITL: "median ITL", calib.MeanE2E: "mean E2E",
}

// sharedDir is the directory that all places lie in, with its separator; "" of
// one alone.
func sharedDir(places []string) string {
	if len(places) < 2 {
		return ""
	}
	dir := places[0]
	for _, p := range places {
		for dir != "" && !strings.HasPrefix(p, dir) {
			dir = dir[:len(dir)-1]
		}
	}
	return dir[:strings.LastIndexAny(dir, `/\`)+1]
}

// errors prints a table of the residuals of each run, with their medians; runs
// that are scored apart by themselves.
func (c *calibrated) errors(b *strings.Builder, title string, residuals []calib.Residual) {
	fmt.Fprintf(b, "%s\n", title)
	t := newErrorTable(residuals)
	var ids []string
	for _, o := range c.obs {
		ids = append(ids, o.ID)
	}
	shared := sharedDir(ids)
	for _, apart := range []bool{false, true} {
		any := false
		for _, o := range c.obs {
			if (o.Apart != "") == apart && t.byRun[o.ID] != nil {
				t.run(strings.TrimPrefix(o.ID, shared), fmt.Sprintf("%s, %d x %s, %s", o.Config.Model.Name, o.Config.GPUs, o.GPU, o.Config.Engine), o)
				any = true
			}
		}
		if any {
			t.medians(map[bool]string{true: "apart: "}[apart], c.obs, apart)
		}
	}
	t.write(b)
	b.WriteByte('\n')
}

// errorTable is a table of errors under its making.
type errorTable struct {
	byRun   map[string]map[string]float64
	metrics []string // with any error
	rows    [][]string
	heads   []string // of each row: what it was measured on, "" for medians
}

func newErrorTable(residuals []calib.Residual) *errorTable {
	t := &errorTable{byRun: map[string]map[string]float64{}}
	has := map[string]bool{}
	for _, r := range residuals {
		if t.byRun[r.ID] == nil {
			t.byRun[r.ID] = map[string]float64{}
		}
		t.byRun[r.ID][r.Metric] = r.Off()
		has[r.Metric] = true
	}
	row := []string{"    run"}
	for _, m := range calib.Scored {
		if has[m] {
			t.metrics = append(t.metrics, m)
			row = append(row, shortNames[m])
		}
	}
	t.rows, t.heads = append(t.rows, append(row, "workload")), append(t.heads, "")
	return t
}

func (t *errorTable) run(name, head string, o calib.Observation) {
	row := []string{"    " + name}
	for _, m := range t.metrics {
		if v, ok := t.byRun[o.ID][m]; ok {
			row = append(row, fmt.Sprintf("%+.1f %%", 100*v))
		} else {
			row = append(row, "-")
		}
	}
	t.rows, t.heads = append(t.rows, append(row, o.Workload)), append(t.heads, head)
}

// medians adds the median and the 90th percentile of the sizes of errors.
func (t *errorTable) medians(prefix string, obs []calib.Observation, apart bool) {
	for _, q := range []struct {
		name string
		of   float64
	}{{"median of sizes", 0.5}, {"90th percentile", 0.9}} {
		row := []string{"  " + prefix + q.name}
		for _, m := range t.metrics {
			var all []float64
			for _, o := range obs {
				if v, ok := t.byRun[o.ID][m]; ok && (o.Apart != "") == apart {
					all = append(all, math.Abs(v))
				}
			}
			if len(all) == 0 {
				row = append(row, "-")
				continue
			}
			slices.Sort(all)
			row = append(row, fmt.Sprintf("%.1f %%", 100*stat.Quantile(all, q.of)))
		}
		t.rows, t.heads = append(t.rows, append(row, "")), append(t.heads, "")
	}
}

// write names what runs were measured on above the first of them.
func (t *errorTable) write(b *strings.Builder) {
	var text strings.Builder
	tw := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	tw.Flush() // into a Builder, which never fails
	i, last := 0, ""
	for line := range strings.Lines(text.String()) {
		if head := t.heads[i]; head != last {
			if head != "" {
				fmt.Fprintf(b, "  %s\n", head)
			}
			last = head
		}
		fmt.Fprintln(b, strings.TrimRight(line, " \n"))
		i++
	}
}
