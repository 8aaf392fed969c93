package result

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed intervals.md
var intervalsText string

//go:embed why.md
var whyText string

// MetricsMarkdown returns the reference of all metrics as a Markdown document.
func MetricsMarkdown() string {
	var b strings.Builder
	b.WriteString(`# Metrics

Every figure perflab prints, stores, plots or judges is a row of this table. Names are those of ` + "`vllm bench serve`" + `'s JSON where it has them.

Times count from the sending (Sent: connected, and just before the request was written) unless the name says ` + "`_due`" + `: those count from
when the schedule wanted it sent. n is a call's output tokens, p its prompt tokens, t_first and t_last the stamps of its first and last token,
taken when the bytes arrived (by the kernel) or were read, and before they were decoded. A chunk is one message of the stream that carries
tokens, at least one and possibly several; a message without (role, finish, usage) is none. n is the server's usage, else the run's tokenizer
over the text, else the tokens of the chunks; the verdict's ` + "`tokens`" + ` check says which, and how far the others are from it.
A failed call counts in ` + "`failed`, `success_rate` and `goodput_ratio`" + `, its time in ` + "`duration`" + ` (and so in what is divided by it) and ` + "`drain_s`" + `, and its
place in the full load; it is in no latency and no count of tokens or of other calls. A figure without data is absent, never zero.

In a hurry: [why these figures differ from other clients'](#why-these-figures-differ-from-other-clients) is what a comparison needs.

## Figures of a run

| Name | Label | Unit | Better | Meaning | Formula |
| --- | --- | --- | --- | --- | --- |
`)
	for _, m := range scalars() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", m.Name, m.Label, m.Unit, m.Better, m.Doc, cell(m.Formula))
	}
	b.WriteString(`
## Distributions

Each has, in milliseconds and lower being better, `)
	for _, s := range stats {
		fmt.Fprintf(&b, "`%s_X_ms`, ", s.name)
	}
	b.WriteString("and any percentile `pNN_X_ms` (`p99`, `p99.9`): linear interpolation between order statistics, numpy's default. `std` is the population standard deviation.\n")
	b.WriteString(`
| X | Label | Meaning | Formula |
| --- | --- | --- | --- |
`)
	for _, f := range families() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, f.label, f.doc, cell(f.formula))
	}
	b.WriteString(gaugesMarkdown())
	b.WriteString("\n" + intervalsText)
	b.WriteString("\n## Bounds\n\nEach call of `--goodput` is judged by ")
	for i, name := range goodputBounds {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "`%s`", name)
	}
	b.WriteString("; `--slo` takes any figure of this document. Both take the latency targets of MLPerf Inference's server scenarios: " +
		"`--goodput` applies them to each call, `--slo` to the 99th percentile, as MLPerf does.\n\n| Preset | TTFT | TPOT | E2EL |\n| --- | --- | --- | --- |\n")
	for _, p := range presets() {
		fmt.Fprintf(&b, "| `%s:%s` | %s | %s | %s |\n", presetPrefix, p.name, limitCell(p.ttft), limitCell(p.tpot), limitCell(p.e2el))
	}
	b.WriteString("\n## Other spellings\n\n")
	b.WriteString("`_ms` may be left out (`p99_ttft`). ")
	b.WriteString("`total_throughput` is `total_token_throughput`, `goodput` is `request_goodput`, `max_request_concurrency` is `max_concurrency`; `latency`, `e2e` and `e2e_latency` after a statistic are `e2el` (`mean_latency` is `mean_e2el_ms`).\n")
	b.WriteString("\n" + definitionsMarkdown())
	b.WriteString("\n" + whyText)
	return b.String()
}

// gaugesMarkdown is the table of what is read beside the calls.
func gaugesMarkdown() string {
	var b strings.Builder
	b.WriteString(`
## Readings

What surrounds the calls is read while they last and kept in ` + "`telemetry.jsonl`" + ` of the run directory, a reading a line, its instant on the clock of the calls.
Counters are kept as they are told. Figures are made of the readings over W: the steady window where the run has one, else all of it from the first
sending to the last end. The mean of a gauge is that of straight lines between its readings; it is given where readings cover 90 % of W (two of them
count as neighbours up to three times their usual distance) and at least three lie in it. What a counter grew by is of the whole run, and is given where
it was read before the first sending and after the last end. A value that a source does not tell is absent.

| Gauge | Source | Unit | Counter | Meaning |
| --- | --- | --- | --- | --- |
`)
	for _, g := range Gauges() {
		counter := ""
		if g.Counter {
			counter = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", g.Name, g.Source, g.Unit, counter, g.Doc)
	}
	return b.String()
}

func limitCell(ms float64) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf("%g ms", ms)
}

// cell returns a formula as a code span.
func cell(s string) string { return "`" + strings.ReplaceAll(s, "|", `\|`) + "`" }
