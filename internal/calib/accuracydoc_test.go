package calib

import (
	"fmt"
	"slices"
	"strings"
)

// goal is something that the predictions must reach.
type goal struct {
	what, is, want string
	met            bool
}

func (a *accuracy) goals() []goal {
	var out []goal
	limit := func(what string, v, most float64) {
		out = append(out, goal{what, percent(v), "at most " + percent(most), v <= most})
	}
	for _, m := range []struct {
		metric       string
		median, tail float64
	}{{Throughput, 0.08, 0.20}, {MeanTTFT, 0.12, 0}, {MedianITL, 0.10, 0}, {MeanTPOT, 0.12, 0}} {
		e := a.errors(a.held, m.metric, burst)
		limit("median error of "+m.metric+", all at once", at(e, 0.5), m.median)
		if m.tail > 0 {
			limit("90th percentile of that error", at(e, 0.9), m.tail)
		}
	}
	limit("median error of the time per token, open loop", at(a.errors(a.held, MeanE2E, openLoop), 0.5), 0.08)
	right, all, _, top := a.pairs(a.held)
	out = append(out, goal{"pairs that differ by more than 5 % in the right order", fmt.Sprintf("%d of %d (%s)", right, all, percent(float64(right)/float64(all))), "at least 95 %", float64(right) >= 0.95*float64(all)})
	out = append(out, goal{"place of the best measured configuration among the predicted, at worst", fmt.Sprint(top), "at most 3", top <= 3})
	in, of := a.coverage(func(b *Observation) bool { return b.Apart == "" })
	share := float64(in) / float64(of)
	out = append(out, goal{"printed values within their range of nine in ten", fmt.Sprintf("%d of %d (%s)", in, of, percent(share)), "80 to 95 %", share >= 0.8 && share <= 0.95})
	return out
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func (a *accuracy) markdown() string {
	var b strings.Builder
	b.WriteString(accuracyIntro)
	b.WriteString("\n| What | Is | Goal | |\n| --- | --- | --- | --- |\n")
	for _, g := range a.goals() {
		mark := "met"
		if !g.met {
			mark = "**missed**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.what, g.is, g.want, mark)
	}
	_, _, wrong, _ := a.pairs(a.held)
	if len(wrong) > 0 {
		fmt.Fprintf(&b, "\nPairs in the wrong order: %s.\n", strings.Join(wrong, "; "))
	}
	b.WriteString("\n## Summary of errors\n\nAbsolute relative errors. All but the last group are held out.\n\n| Blocks | Figure | Blocks | Median | Mean | P90 | Worst |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, g := range []struct {
		title  string
		rs     []Residual
		counts func(*Observation) bool
	}{
		{"all at once", a.held, burst}, {"open loop", a.held, openLoop}, {"SGLang", a.held, sglang}, {"speculation", a.held, drafts},
		{"others of a study, from its baseline alone", a.baseline, func(b *Observation) bool { return b.Apart == "" }},
		{"*in sample: no accuracy*", a.inSample, func(b *Observation) bool { return b.Apart == "" }},
	} {
		for _, m := range Scored {
			if e := a.errors(g.rs, m, g.counts); len(e) > 0 {
				mean := 0.0
				for _, x := range e {
					mean += x / float64(len(e))
				}
				fmt.Fprintf(&b, "| %s | `%s` | %d | %s | %s | %s | %s |\n", g.title, m, len(e), percent(at(e, 0.5)), percent(mean), percent(at(e, 0.9)), percent(e[len(e)-1]))
			}
		}
	}
	b.WriteString(accuracyBeyond)
	a.blocks(&b)
	return b.String()
}

// blocks writes a row for each block: printed values and held-out errors.
func (a *accuracy) blocks(b *strings.Builder) {
	b.WriteString("\n## Every block\n\nPrinted throughput in tok/s, then errors of held-out predictions in percent, `!` where the printed value is outside the range;\nthen throughput from the baseline alone, and in sample.\n\n")
	b.WriteString("| Block | Engine | Model | GPUs | Load | tok/s | Throughput | TTFT mean | TTFT median | TPOT mean | ITL median | E2E mean | Baseline | In sample |\n|" + strings.Repeat(" --- |", 14) + "\n")
	for i := range a.obs {
		o := &a.obs[i]
		name := o.Config.Model.Name
		fmt.Fprintf(b, "| %s | %s | %s | %d × %s | %s | %.0f |", o.ID, o.Config.Engine, name[strings.LastIndexByte(name, '/')+1:], o.Config.GPUs, o.GPU, o.Workload, o.Figures[Throughput])
		for _, m := range Scored {
			fmt.Fprintf(b, " %s |", a.cell(o.ID, m))
		}
		fmt.Fprintf(b, " %s | %s |\n", off(a.baseline, o.ID), off(a.inSample, o.ID))
	}
	b.WriteString("\n## Notes\n\n")
	for _, o := range a.obs {
		switch {
		case o.Saturated():
			fmt.Fprintf(b, "- %s: more was offered than could be served; nothing is promised there, and it is neither fitted nor scored.\n", o.ID)
		case o.Apart != "" && !slices.Contains([]string{"SGLang", "speculation"}, o.Apart):
			fmt.Fprintf(b, "- %s: %s; scored in no summary and fitted by none.\n", o.ID, o.Apart)
		}
	}
}

// cell is the held-out error of a figure, marked where it is outside its range.
func (a *accuracy) cell(id, metric string) string {
	for _, r := range a.held {
		if r.ID == id && r.Metric == metric {
			mark := ""
			if slices.ContainsFunc(a.ranges, func(c covered) bool { return c.ID == id && c.Metric == metric && !c.in() }) {
				mark = " !"
			}
			return fmt.Sprintf("%+.0f%s", 100*r.Off(), mark)
		}
	}
	return ""
}

// off is the error of a block's throughput, or of its E2E in an open loop.
func off(rs []Residual, id string) string {
	for _, m := range []string{Throughput, MeanE2E} {
		for _, r := range rs {
			if r.ID == id && r.Metric == m {
				return fmt.Sprintf("%+.0f", 100*r.Off())
			}
		}
	}
	return ""
}

const accuracyIntro = `# Accuracy of predictions

SIMULATED figures against printed ones. Written by ` + "`make predict-accuracy`" + ` from ` + "`internal/calib/testdata/published.json`" + `: every distinct result
block of four published studies (vLLM, TensorRT-LLM and SGLang on A100, H100, H200 and DGX Spark), with what is inferred of each in its note.

**Held out** means: constants fitted without the block's workload (A100, H100), arrival rate (H200) or model (DGX Spark), from priors that the other
studies have a part in (constants of engines) or none (all others). The form of the model was developed with these blocks in view, so truly new models and
devices will be predicted less well; what errors a calibration has on its own runs is what ` + "`perflab calibrate`" + ` prints of them.
**From the baseline alone** means: constants fitted to the study's ShareGPT blocks (H200: those at 8 requests/s; DGX Spark, which has
none: Qwen3-VL-32B), and to no other run.
Requests of ShareGPT are drawn: only their totals are printed. Open loops are scored by the time per output token (mean E2E latency, whose tokens are
given) and the median TTFT, since their throughput is the client's doing.
`

const accuracyBeyond = `
## Beyond these blocks

Further public pages of the same test series, of models that no calibration has seen, were scored once by hand with a fit of these blocks (they are not
part of this project). Median error of throughput on vLLM: Qwen3-14B 9 %, Qwen3-32B 14 %, GLM-4.5-Air 12 % on A100; Qwen3-14B 8 % on H100 PCIe. MXFP4 on
A100, which no run told of: 35 %. DeepSeek-R1 and GLM-4.6 on H200, which has seen one small model: 41 % and 17 %. On a device without runs (H100 SXM, priors
alone): from 12 % off to three times the measured figure. SGLang's TPOT in bursts is off by a quarter to a half. Where ranges are said to be borrowed or
widened, believe it.
`
