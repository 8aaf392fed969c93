package cli

import (
	"fmt"
	"io"
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
	c.errors(&b, fmt.Sprintf("Errors held out: each run predicted by constants fitted without its %s", c.HoldOut), c.Held)
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

// leftText says what was not used, each reason once with all places.
func leftText(left []unused) string {
	var b strings.Builder
	places := map[string][]string{}
	for _, u := range left {
		places[u.Why] = append(places[u.Why], u.Place)
	}
	for _, u := range left {
		if at := places[u.Why]; at != nil {
			fmt.Fprintf(&b, "  %s: %s\n", strings.Join(at, ", "), u.Why)
			places[u.Why] = nil
		}
	}
	return b.String()
}

// constants prints each fitted constant beside its prior. A spread that is
// still the prior's says that no run speaks of the constant.
func (c *calibrated) constants(b *strings.Builder) {
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "Constant\tof\tprior\tfitted\tunit\tmeaning")
	silent := 0
	for _, p := range c.Parameters {
		if p.Value == p.Prior || p.Spread >= p.PriorSpread && math.Abs(p.Value/p.Prior-1) < 0.005 {
			silent++
			continue
		}
		k, _ := sim.Priors().About(p.Name)
		var of strings.Builder
		of.WriteString(p.Accelerator)
		for _, part := range []string{string(p.Format), p.Engine} {
			if part != "" {
				of.WriteString(" " + part)
			}
		}
		fmt.Fprintf(tw, "%s\t%s\t%.4g ± %.0f %%\t%.4g ± %.0f %%\t%s\t%s\n", p.Name, of.String(), p.Prior, 100*p.PriorSpread, p.Value, 100*p.Spread, k.Unit, k.Meaning)
	}
	tw.Flush() // into a Builder, which never fails
	if silent > 0 {
		fmt.Fprintf(b, "%s stayed at the prior: no run speaks of it.\n", plural(silent, "constant"))
	}
	b.WriteByte('\n')
}

// shortNames are the heads of columns.
var shortNames = map[string]string{
	calib.Throughput: "throughput", calib.MeanTTFT: "mean TTFT", calib.MeanTPOT: "mean TPOT", calib.MedianITL: "median ITL", calib.MeanE2E: "mean E2E",
}

// sharedDir is the directory that all runs lie in, with its separator.
func sharedDir(obs []calib.Observation) string {
	dir := obs[0].ID
	for _, o := range obs {
		for dir != "" && !strings.HasPrefix(o.ID, dir) {
			dir = dir[:len(dir)-1]
		}
	}
	return dir[:strings.LastIndexAny(dir, `/\`)+1]
}

// errors prints a table of residuals: the runs, then medians; runs that are
// scored apart by themselves.
func (c *calibrated) errors(b *strings.Builder, title string, residuals []calib.Residual) {
	byRun := map[string]map[string]float64{}
	for _, r := range residuals {
		if byRun[r.ID] == nil {
			byRun[r.ID] = map[string]float64{}
		}
		byRun[r.ID][r.Metric] = r.Off()
	}
	shared := sharedDir(c.obs)
	fmt.Fprintf(b, "%s\n", title)
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "  run")
	for _, m := range calib.Scored {
		fmt.Fprintf(tw, "\t%s", shortNames[m])
	}
	fmt.Fprintln(tw, "\tmodel, accelerator, engine, workload")
	for _, apart := range []bool{false, true} {
		all := map[string][]float64{}
		for _, o := range c.obs {
			if (o.Apart != "") != apart {
				continue
			}
			fmt.Fprintf(tw, "  %s", strings.TrimPrefix(o.ID, shared))
			for _, m := range calib.Scored {
				v, ok := byRun[o.ID][m]
				if !ok {
					fmt.Fprint(tw, "\t-")
					continue
				}
				all[m] = append(all[m], math.Abs(v))
				fmt.Fprintf(tw, "\t%+.1f %%", 100*v)
			}
			fmt.Fprintf(tw, "\t%s, %d x %s, %s, %s\n", o.Config.Model.Name, o.Config.GPUs, o.GPU, o.Config.Engine, o.Workload)
		}
		if len(all) == 0 {
			continue
		}
		what := ""
		if apart {
			what = "apart: "
		}
		for _, q := range []struct {
			name string
			of   float64
		}{{"median of sizes", 0.5}, {"90th percentile", 0.9}} {
			fmt.Fprintf(tw, "  %s%s", what, q.name)
			for _, m := range calib.Scored {
				if len(all[m]) == 0 {
					fmt.Fprint(tw, "\t-")
					continue
				}
				slices.Sort(all[m])
				fmt.Fprintf(tw, "\t%.1f %%", 100*stat.Quantile(all[m], q.of))
			}
			fmt.Fprintln(tw, "\t")
		}
	}
	tw.Flush() // into a Builder, which never fails
	b.WriteByte('\n')
}
