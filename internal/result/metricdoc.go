package result

import (
	"fmt"
	"strings"
)

// MetricsMarkdown returns the reference of all metrics as a Markdown document.
func MetricsMarkdown() string {
	var b strings.Builder
	b.WriteString(`# Metrics

Every figure perflab prints, stores, plots or judges is a row of this table. Names are those of ` + "`vllm bench serve`" + `'s JSON where it has them.

Times count from the sending (Sent) unless the name says ` + "`_due`" + `. n is a call's output tokens, p its prompt tokens,
t_first and t_last the stamps of its first and last token, taken when the bytes were read and before they were decoded.
Failed calls count in ` + "`failed`, `success_rate`, `goodput_ratio` and `duration`" + `, and in nothing else.
A figure without data is absent, never zero.

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
	b.WriteString("\n## Other spellings\n\n")
	b.WriteString("`_ms` may be left out (`p99_ttft`). ")
	b.WriteString("`total_throughput` is `total_token_throughput`, `goodput` is `request_goodput`, `max_request_concurrency` is `max_concurrency`; `latency`, `e2e` and `e2e_latency` after a statistic are `e2el` (`mean_latency` is `mean_e2el_ms`).\n")
	return b.String()
}

// cell returns a formula as a code span.
func cell(s string) string { return "`" + strings.ReplaceAll(s, "|", `\|`) + "`" }
