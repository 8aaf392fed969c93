package calib

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"perflab/internal/stat"
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
	share := func(what string, part, all int, least, most float64) {
		s := float64(part) / float64(all)
		want := "at least " + percent(least)
		if most < 1 {
			want = percent(least) + " to " + percent(most)
		}
		out = append(out, goal{what, fmt.Sprintf("%d of %d (%s)", part, all, percent(s)), want, s >= least && s <= most})
	}
	width := func(what string, v, most float64) {
		out = append(out, goal{what, fmt.Sprintf("%.2f times", v), fmt.Sprintf("at most %g times", most), v <= most})
	}
	for _, m := range []struct {
		metric       string
		median, tail float64
	}{{Throughput, 0.12, 0.35}, {MeanTTFT, 0.18, 0}, {MeanTPOT, 0.15, 0}, {MedianITL, 0.12, 0}} {
		e := a.errors(a.held, m.metric, of("vllm"))
		limit("vLLM: median error of "+m.metric, at(e, 0.5), m.median)
		if m.tail > 0 {
			limit("vLLM: 90th percentile of that error", at(e, 0.9), m.tail)
		}
	}
	limit("SGLang: median error of "+Throughput, at(a.errors(a.held, Throughput, of("sglang")), 0.5), 0.2)
	limit("TensorRT-LLM: median error of "+Throughput, at(a.errors(a.held, Throughput, of("trtllm")), 0.5), 0.2)
	p := a.pairs(a.held, printed)
	share("pairs over 5 % apart in the right order", p.right, p.all, 0.9, 1)
	in, all, _ := a.coverageOf(a.ranges, anyFigure)
	share("printed values within their ranges", in, all, 0.87, 0.93)
	_, _, w := a.coverageOf(a.ranges, func(c covered) bool { return c.Metric == Throughput })
	width("median width of a range of throughput, high over low", w, 2.2)
	e := a.errors(a.after, Throughput, printed)
	limit("after one block: median error of "+Throughput, at(e, 0.5), 0.07)
	limit("after one block: 90th percentile of that error", at(e, 0.9), 0.18)
	p = a.pairs(a.after, printed)
	share("after one block: pairs in the right order", p.right, p.all, 0.95, 1)
	share("after one block: groups whose best is among the three predicted best", p.top3, p.groups, 0.9, 1)
	in, all, _ = a.coverageOf(a.afters, anyFigure)
	share("after one block: printed values within their ranges", in, all, 0.87, 0.93)
	_, _, w = a.coverageOf(a.afters, func(c covered) bool { return c.Metric == Throughput })
	width("after one block: median width of a range of throughput", w, 1.5)
	limit("the four studies alone, by workload or model: median error of "+Throughput, at(a.errors(a.four, Throughput, plain), 0.5), 0.087)
	return out
}

func anyFigure(covered) bool    { return true }
func every(*Observation) bool   { return true }
func plain(b *Observation) bool { return b.Apart == "" && b.Config.Engine != "sglang" }

// printed counts the blocks of the published studies, of which the goals are.
func printed(b *Observation) bool { return !slices.Contains(ownStudies, b.Study) }

// of counts those of an engine.
func of(engine string) func(*Observation) bool {
	return func(b *Observation) bool { return b.Config.Engine == engine && printed(b) }
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func (a *accuracy) markdown() string {
	var b strings.Builder
	b.WriteString(accuracyIntro)
	a.weaknesses(&b)
	b.WriteString("\n## Goals\n\nHeld out by study, unless said otherwise.\n\n| What | Is | Goal | |\n| --- | --- | --- | --- |\n")
	for _, g := range a.goals() {
		mark := "met"
		if !g.met {
			mark = "**missed**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.what, g.is, g.want, mark)
	}
	fmt.Fprintf(&b, "\nPairs in the wrong order, held out: %s. After one block: %s.\n", list(a.pairs(a.held, every).wrong), list(a.pairs(a.after, every).wrong))
	left := a.oneFactor()
	fmt.Fprintf(&b, "\nWhat one run can reach: were the factor known by which the throughput of each engine of a study is off, as the median over its blocks, errors of %s would be left in the median and of %s in the 90th percentile.\n", percent(at(left, 0.5)), percent(at(left, 0.9)))
	a.errorTables(&b)
	a.coverageTable(&b)
	a.sites(&b)
	a.blocks(&b)
	return b.String()
}

// oneFactor are the errors of throughput, sorted, that held-out predictions would have if the
// factor were known that is common to the blocks of each engine of a study: those of the blocks
// that are predicted after a first one.
func (a *accuracy) oneFactor() []float64 {
	groups := map[[2]string][]heldOut{} // by study and engine
	for _, r := range telling(a.obs, a.held) {
		if r.Metric == Throughput && printed(r.of) {
			k := [2]string{r.of.Study, r.of.Config.Engine}
			groups[k] = append(groups[k], r)
		}
	}
	var out []float64
	for k, g := range groups {
		middle := stat.Quantile(slices.Sorted(slices.Values(logsOf(g))), 0.5)
		for _, r := range g {
			if r.ID != a.first(k[0]).ID {
				out = append(out, math.Abs(math.Expm1(r.off-middle)))
			}
		}
	}
	slices.Sort(out)
	return out
}

func list(s []string) string {
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, "; ")
}

// group is some of the blocks.
type group struct {
	title  string
	counts func(*Observation) bool
}

// groups are the blocks by engine, device, format and kind of load.
func (a *accuracy) groups() [][]group {
	by := func(counts func(*Observation) bool, key func(*Observation) string) []group {
		keys := map[string]bool{}
		for i := range a.obs {
			if counts(&a.obs[i]) {
				keys[key(&a.obs[i])] = true
			}
		}
		var out []group
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			out = append(out, group{k, func(b *Observation) bool { return counts(b) && key(b) == k }})
		}
		return out
	}
	return [][]group{
		{{"all", printed}},
		by(printed, func(b *Observation) string { return b.Config.Engine }),
		by(printed, func(b *Observation) string { return b.GPU }),
		by(printed, func(b *Observation) string { return string(b.Config.Model.Kernels()) }),
		by(printed, loadKind),
		by(every, func(b *Observation) string { return b.Study }),
	}
}

// loadKind is a load in words.
func loadKind(b *Observation) string {
	l := b.Load
	switch {
	case l.Rate > 0:
		return "at a rate"
	case l.Concurrency > 0 && l.Concurrency <= 16:
		return "up to 8 at once"
	case b.Config.SpecTokens > 0:
		return "burst, speculation"
	case l.Input.Mean >= 16000:
		return "burst, prompts of 32,000"
	case l.Output.Mean <= 8:
		return "burst, answers of 4"
	case l.Output.Shape != "":
		return "burst, ShareGPT"
	}
	return "burst, other"
}

// weaknesses says first what predictions are bad at: the groups of throughput errors over
// 20 % in the median, the worst first.
func (a *accuracy) weaknesses(b *strings.Builder) {
	type bad struct {
		title       string
		median, p90 float64
		n           int
	}
	var all []bad
	for _, gs := range a.groups()[1:] {
		for _, g := range gs {
			if e := a.errors(a.held, Throughput, g.counts); len(e) >= 3 && at(e, 0.5) > 0.15 {
				all = append(all, bad{g.title, at(e, 0.5), at(e, 0.9), len(e)})
			}
		}
	}
	slices.SortFunc(all, func(x, y bad) int {
		if x.median > y.median {
			return -1
		}
		return 1
	})
	b.WriteString("\n## What it is bad at\n\nGroups of blocks whose throughput is more than 15 % off in the median, held out by study; a block belongs to several.\n\n| Blocks | How many | Median error | P90 |\n| --- | --- | --- | --- |\n")
	for _, x := range all {
		fmt.Fprintf(b, "| %s | %d | %s | %s |\n", x.title, x.n, percent(x.median), percent(x.p90))
	}
}

func (a *accuracy) errorTables(b *strings.Builder) {
	b.WriteString("\n## Errors\n\nAbsolute relative errors, median and 90th percentile in percent; in brackets how many blocks. In sample is no accuracy.\n")
	for _, m := range []string{Throughput, MeanTTFT, MeanTPOT, MedianITL, MeanE2E} {
		fmt.Fprintf(b, "\n| `%s` | In sample | Held out by study | After one block |\n| --- | --- | --- | --- |\n", m)
		for i, gs := range a.groups() {
			if i > 0 && m != Throughput && i != 1 && i != 4 {
				continue
			}
			for _, g := range gs {
				cells, any := "", false
				for _, rs := range [][]Residual{a.inSample, a.held, a.after} {
					e := a.errors(rs, m, g.counts)
					if len(e) == 0 {
						cells += " |"
						continue
					}
					any = true
					cells += fmt.Sprintf(" %.1f, %.1f (%d) |", 100*at(e, 0.5), 100*at(e, 0.9), len(e))
				}
				if any {
					fmt.Fprintf(b, "| %s |%s\n", g.title, cells)
				}
			}
		}
	}
}

// coverageTable says how many values lie in their ranges, by how much was new.
func (a *accuracy) coverageTable(b *strings.Builder) {
	b.WriteString("\n## Ranges\n\nHow many printed values lie in the range of nine in ten that was told without their study, by how much of the question was new, and the\nmedian width of the ranges, high over low. The errors that a range is made of are those of the other studies.\n\n")
	b.WriteString("| New | Values | Within | Throughput | TTFT | TPOT |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, n := range Novelties {
		cs := a.ranges
		if n.measured() {
			cs = a.afters
		}
		of := func(c covered) bool { return c.New == n }
		in, all, _ := a.coverageOf(cs, of)
		if all == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s | %d | %s |", n, all, percent(float64(in)/float64(all)))
		for _, m := range []string{Throughput, MeanTTFT, MeanTPOT} {
			_, _, w := a.coverageOf(cs, func(c covered) bool { return of(c) && c.Metric == m })
			fmt.Fprintf(b, " %.2f |", w)
		}
		b.WriteString("\n")
	}
}

// sites says what the fit found of each study's own machines.
func (a *accuracy) sites(b *strings.Builder) {
	b.WriteString("\n## Sites\n\nWhat the fit finds of each study's machines against others of their kind: rates of the devices, times of the hosts, and times of each engine as it was installed there.\n\n| Study | Accelerator | Devices | Hosts | vLLM | SGLang | TensorRT-LLM |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	value := func(study, name, engine string) string {
		for _, q := range a.fitted.Parameters {
			if q.Study == study && q.Name == name && q.Engine == engine {
				return fmt.Sprintf("%.2f ± %.2f", q.Value, q.Spread*q.Value)
			}
		}
		return ""
	}
	for _, f := range a.folds {
		fmt.Fprintf(b, "| %s | %s | %s | %s |", f.Key, a.first(f.Key).GPU, value(f.Key, "site_device", ""), value(f.Key, "site_host", ""))
		for _, engine := range []string{"vllm", "sglang", "trtllm"} {
			fmt.Fprintf(b, " %s |", value(f.Key, "site_engine", engine))
		}
		b.WriteString("\n")
	}
}

// blocks writes a row for each block: printed values and held-out errors.
func (a *accuracy) blocks(b *strings.Builder) {
	b.WriteString("\n## Every block\n\nPrinted throughput in tok/s, then errors of predictions held out by study, in percent, `!` where the printed value is outside the range;\nthen throughput (at a rate: E2E) after one block, and in sample; and how much of the block was new to the fit without its study.\n\n")
	b.WriteString("| Block | Engine | Model | GPUs | Load | tok/s | Throughput | TTFT mean | TTFT median | TPOT mean | ITL median | E2E mean | After one | In sample | New |\n|" + strings.Repeat(" --- |", 15) + "\n")
	for i := range a.obs {
		o := &a.obs[i]
		name := o.Config.Model.Name
		fmt.Fprintf(b, "| %s | %s | %s | %d × %s | %s | %.0f |", o.ID, o.Config.Engine, name[strings.LastIndexByte(name, '/')+1:], o.Config.GPUs, o.GPU, o.Workload, o.Figures[Throughput])
		for _, m := range Scored {
			fmt.Fprintf(b, " %s |", a.cell(o.ID, m))
		}
		fmt.Fprintf(b, " %s | %s | %s |\n", off(a.after, o.ID), off(a.inSample, o.ID), a.newOf(o.ID))
	}
	b.WriteString("\n## Notes\n\n")
	for _, o := range a.obs {
		switch {
		case o.Saturated():
			fmt.Fprintf(b, "- %s: more was offered than could be served: of it only the throughput is fitted and scored.\n", o.ID)
		case o.Ambiguous():
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

SIMULATED figures against printed ones. Written by ` + "`make predict-accuracy`" + ` from the files in ` + "`internal/calib/testdata`" + `: the result blocks of thirteen
published studies of one series (vLLM, SGLang and TensorRT-LLM on A100, H100, H200 and DGX Spark), with what is inferred of each in its note.
Fifty more are runs of perflab's own, of the version of vLLM of today on an H100 and an H200 whose boards are known
([real-engine.md](real-engine.md#vllm-on-a-gpu)): ` + "`own.h100`" + ` and ` + "`own.h200`" + `. They have a part in the fit that the program ships, in that of which the
other of the two is held out, and in the column *in sample*, and in no other fit here; goals and the tables' other groups are of the published studies.

**Held out** means: constants fitted without any block of the study, as a user is off whom nobody has measured before. The form of the model and the
weights of its fit were chosen with these blocks in view, so a truly new study may be predicted less well. **After one block** means: that fit, corrected by the first
block of the study (` + "`perflab predict --with RUN`" + `), and the others predicted. Lengths of ShareGPT are drawn: only their totals are printed. The
throughput of a load at a rate is the client's doing: of those, TTFT and E2E latency are scored. Five blocks of SGLang are a study's first with FlashInfer,
which then compiles a kernel (t_compile) while the printed load waits; runs of perflab's client do not meet it, and predictions leave it out.
`
