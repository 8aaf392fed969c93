package result

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/gauge"
	"perflab/internal/profile/preset"
)

var update = flag.Bool("update", false, "write the reference")

//go:embed intervals.md
var intervalsText string

//go:embed speculation.md
var speculationText string

//go:embed verdict.md
var verdictText string

//go:embed why.md
var whyText string

// metricsMarkdown returns the reference of all metrics as a Markdown document.
func metricsMarkdown() string {
	var b strings.Builder
	b.WriteString(`# Metrics

Every figure perflab prints, stores, plots or judges is a row of this table. Names are those of ` + "`vllm bench serve`" + `'s JSON where it has them.

Times count from the sending (Sent: connected, and just before the request was written) unless the name says ` + "`_due`" + `: those count from
when the schedule wanted it sent. n is a call's output tokens, p its prompt tokens, t_first and t_last the stamps of its first and last token,
taken when the bytes arrived (by the kernel) or were read, and before they were decoded. A chunk is one message of the stream that carries
tokens, at least one and possibly several; a message without (role, finish, usage) is none. n is the server's usage, else the run's tokenizer
over the text, else the tokens of the chunks; the verdict's ` + "`tokens`" + ` check says which, and how far the others are from it.
How many of the n came with one chunk is known where usage comes with each; else chunks are counted, and where that falls short of n
([several tokens in a chunk](#several-tokens-in-a-chunk)) it is inferred.
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
	for _, s := range familyStats {
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
	b.WriteString("\n" + verdictText)
	b.WriteString("\n" + intervalsText)
	b.WriteString("\n" + speculationText)
	b.WriteString("\n## Bounds\n\nEach call of `--goodput` is judged by ")
	for i, name := range goodputBounds {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "`%s`", name)
	}
	b.WriteString("; `--slo` takes any figure of this document. Both take the latency targets of MLPerf Inference's server scenarios: " +
		"`--goodput` applies them to each call, `--slo` to the 99th percentile, as MLPerf does.\n\n| Preset | TTFT | TPOT | E2EL |\n| --- | --- | --- | --- |\n")
	for _, p := range preset.All() {
		fmt.Fprintf(&b, "| `%s:%s` | %s | %s | %s |\n", preset.Prefix, p.Name, limitCell(p.TTFT), limitCell(p.TPOT), limitCell(p.E2EL))
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

What surrounds the calls is read while they last and kept in ` + "`telemetry.jsonl`" + ` of the run directory, a reading a line, its instant on the clock of the calls. They are written as they come: a run
that was killed has those until a second before.
Counters are kept as they are told. Figures are made of the readings over W: the steady window where the run has one, else all of it from the first
sending to the last end. The mean of a gauge is that of straight lines between its readings; it is given where readings cover 90 % of W (two of them
count as neighbours up to three times their usual distance) and at least three lie in it. What a counter grew by is of the whole run, and is given where
it was read before the first sending and after the last end. A value that a source does not tell is absent.

| Gauge | Source | Unit | Counter | Meaning |
| --- | --- | --- | --- | --- |
`)
	for _, g := range gauges() {
		counter := ""
		if g.Counter {
			counter = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", g.Name, g.Source, g.Unit, counter, g.Doc)
	}
	b.WriteString("\nWhere prefill and decode are apart, readings of engines that only compute prompts have the source `" + gauge.SourcePrefill +
		"` and the gauges of an engine;\n`" + gauge.SourceEngine + "` is then one that generates. `prefix_hit_ratio` and `mean_engine_queue_ms` are those of the first.\n")
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

// gaugeRow is one row of the table of what readings may hold.
type gaugeRow struct {
	Name    string // key in gauge.Reading.Values
	Source  string
	Unit    string // "ratio", "bytes", "W", "Hz", "C", "requests", "tokens", "steps", "s", "yes"
	Counter bool   // since the source started: only differences say something
	Doc     string // one sentence
}

// gauges returns the table of gauges.
func gauges() []gaugeRow {
	return []gaugeRow{
		{Name: "running", Source: gauge.SourceEngine, Unit: "requests", Doc: "Requests that are being computed."},
		{Name: "waiting", Source: gauge.SourceEngine, Unit: "requests", Doc: "Requests that wait for room."},
		{Name: "kv_usage", Source: gauge.SourceEngine, Unit: "ratio", Doc: "Share of the KV cache in use."},
		{Name: "preemptions", Source: gauge.SourceEngine, Unit: "requests", Counter: true, Doc: "Requests that gave their KV cache up again for lack of room."},
		{Name: "prefix_queries", Source: gauge.SourceEngine, Unit: "tokens", Counter: true, Doc: "Prompt tokens looked up in the prefix cache."},
		{Name: "prefix_hits", Source: gauge.SourceEngine, Unit: "tokens", Counter: true, Doc: "Prompt tokens that were found there."},
		{Name: "host_queries", Source: gauge.SourceEngine, Unit: "tokens", Counter: true, Doc: "Prompt tokens, not found in the devices' cache, that were looked up in what lies below it: a host's memory, a disk, another machine."},
		{Name: "host_hits", Source: gauge.SourceEngine, Unit: "tokens", Counter: true, Doc: "Prompt tokens that were found there; of vLLM they are not in `prefix_hits`, of SGLang they are."},
		{Name: "prefix_share", Source: gauge.SourceEngine, Unit: "ratio", Doc: "Share of the prompts found in the prefix cache, over the engine's own span of time."},
		{Name: "prompt_tokens", Source: gauge.SourceEngine, Unit: "tokens", Counter: true, Doc: "Prompt tokens that the engine took in."},
		{Name: "generation_tokens", Source: gauge.SourceEngine, Unit: "tokens", Counter: true, Doc: "Tokens that the engine generated."},
		{Name: "finished", Source: gauge.SourceEngine, Unit: "requests", Counter: true, Doc: "Requests that ended, whatever the reason."},
		{Name: "spec_drafts", Source: gauge.SourceEngine, Unit: "steps", Counter: true, Doc: "Guesses of speculation that the model verified."},
		{Name: "spec_draft_tokens", Source: gauge.SourceEngine, Unit: "tokens", Counter: true, Doc: "Tokens guessed in them."},
		{Name: "spec_accepted", Source: gauge.SourceEngine, Unit: "tokens", Counter: true, Doc: "Guessed tokens that were accepted."},
		{Name: "spec_length", Source: gauge.SourceEngine, Unit: "tokens", Doc: "Tokens that a verified guess yields, the model's own among them, over the engine's own span of time."},
		{Name: "queue_seconds", Source: gauge.SourceEngine, Unit: "s", Counter: true, Doc: "Time that requests waited before they were computed, all together."},
		{Name: "queued", Source: gauge.SourceEngine, Unit: "requests", Counter: true, Doc: "Requests that queue_seconds is of."},
		{Name: "kv_tokens", Source: gauge.SourceEngine, Unit: "tokens", Doc: "Room of the KV cache."},
		{Name: "kv_block", Source: gauge.SourceEngine, Unit: "tokens", Doc: "Tokens of a block of the KV cache."},

		{Name: gauge.GPUUtilization, Source: gauge.SourceGPU, Unit: "ratio", Doc: "Share of the time in which a kernel ran, over the driver's last sampling period (up to 1 s)."},
		{Name: gauge.MemoryUsed, Source: gauge.SourceGPU, Unit: "bytes", Doc: "Device memory in use, by whatever program."},
		{Name: gauge.MemoryTotal, Source: gauge.SourceGPU, Unit: "bytes", Doc: "Device memory there is."},
		{Name: gauge.GPUPower, Source: gauge.SourceGPU, Unit: "W", Doc: "Power of the whole board, which newer devices average over 1 s."},
		{Name: gauge.GPUClock, Source: gauge.SourceGPU, Unit: "Hz", Doc: "Clock of the multiprocessors."},
		{Name: gauge.GPUMemoryClock, Source: gauge.SourceGPU, Unit: "Hz", Doc: "Clock of the device memory."},
		{Name: gauge.GPUTemperature, Source: gauge.SourceGPU, Unit: "C", Doc: "Temperature of the device."},
		{Name: gauge.ThrottlePower, Source: gauge.SourceGPU, Unit: "yes", Doc: "1 while clocks are lowered to keep to the power limit, or by a power brake."},
		{Name: gauge.ThrottleThermal, Source: gauge.SourceGPU, Unit: "yes", Doc: "1 while clocks are lowered because the device or its memory is too hot."},
		{Name: gauge.ThrottleHW, Source: gauge.SourceGPU, Unit: "yes", Doc: "1 while the hardware lowers clocks by half or more, for heat, power or an external brake."},

		{Name: gauge.CPUUtilization, Source: gauge.SourceHost, Unit: "ratio", Doc: "Share of all processors' time that was used since the reading before, the load generator's on the same machine included."},
		{Name: gauge.MemoryUsed, Source: gauge.SourceHost, Unit: "bytes", Doc: "Memory that is not available to new programs."},
		{Name: gauge.MemoryTotal, Source: gauge.SourceHost, Unit: "bytes", Doc: "Memory there is."},
	}
}

// definitionsMarkdown is the table of definitions for docs/metrics.md.
func definitionsMarkdown() string {
	var b strings.Builder
	b.WriteString("## Definitions of other clients\n\n" +
		"A figure that was imported from another client's file, or computed with `--compat`, keeps the definition of that client: summaries have it under\n" +
		"`definitions`, by family or figure, and figures of different definitions never share a row. What is not named there is by our definition above.\n\n" +
		"| Tag | Of | Formula | Clients |\n| --- | --- | --- | --- |\n")
	for _, d := range definitions() {
		fmt.Fprintf(&b, "| `%s` | `%s` | `%s` | %s |\n", d.Tag, strings.ReplaceAll(d.Of, ", ", "`, `"), strings.ReplaceAll(d.Formula, "|", `\|`), d.Clients)
	}
	b.WriteString("\n### Comparing with another client\n\n" +
		"`perflab compare RUN FILE` puts a run of perflab beside the result file of vLLM, SGLang, guidellm (and GPUStack's benchmark-runner), AIPerf or inference-perf. The file has\n" +
		"figures by its client's definitions, and no more; the run has its calls. So perflab's figures are computed anew from the calls by the definitions of the file, and both\n" +
		"stand in one row. A note says which figures are so made, and below the table each definition stands with perflab's own beside it. What the calls leave open is\n" +
		"not compared, and the row says what is not known:\n\n" +
		"- `token_gap_mean` and `token_gap_zeros` need the tokens of every message: a server that speculates and sends no usage with each does not tell them.\n" +
		"- `first_iteration` counts the message of the role in some handlers and not in others: it is given where that message came with the first token.\n" +
		"- Runs of so many calls that one in several is kept have no figures by other definitions.\n\n" +
		"What is counted by another tokenizer than the server's usage (AIPerf without `--use-server-token-count`, inference-perf) may still differ by it.\n")
	return b.String()
}

// The reference in docs is the table's own text.
func TestMetricsReference(t *testing.T) {
	const path = "../../docs/metrics.md"
	if *update {
		if err := os.WriteFile(path, []byte(metricsMarkdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), metricsMarkdown()); diff != "" {
		t.Errorf("%s is not what the table says: -file +table (run with -update)\n%s", path, diff)
	}
}

func TestMetricsMarkdown(t *testing.T) {
	doc := metricsMarkdown()
	for _, m := range scalars() {
		if !strings.Contains(doc, "| `"+m.Name+"` | "+m.Label) {
			t.Errorf("%s is not in the document", m.Name)
		}
	}
	for _, f := range families() {
		if !strings.Contains(doc, "| `"+f.name+"` | "+f.label) {
			t.Errorf("%s is not in the document", f.name)
		}
	}
	for to, from := range aliases {
		if name := strings.TrimPrefix(to, "*"); len(name) < len(to) {
			to = "mean_" + name
			from = "mean_" + from
		}
		if m, err := Lookup(to); err != nil || m.Name != from {
			t.Errorf("alias %s leads to %q, %v; want %s", to, m.Name, err, from)
		}
	}
}

// TestGaugesAreDistinct: a source has each name once, and every row says what it is.
func TestGaugesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range gauges() {
		if key := g.Source + " " + g.Name; seen[key] || g.Unit == "" || !strings.HasSuffix(g.Doc, ".") {
			t.Errorf("gauge %s is there twice or says too little: %+v", key, g)
		} else {
			seen[key] = true
		}
	}
}
