// Package block prints the figures of a run as text: the "Serving Benchmark Result" block in the layouts of
// vLLM and GPUStack, and what stands between a block and its verdict.
//
//	fmt.Print(block.Text(sum, block.Style{}), block.Precision(sum, block.Style{}), block.Telemetry(sum), sum.Verdict.Text())
//
// Invariants: labels, rounding and order are those of the metric table (package result); a figure that
// the summary lacks has no line; a block's lines are those that tools parse, and no other line has their
// colon; what a simulator made says SIMULATED.
//
// Deliberately absent: reading blocks (package interop), reports (package report), and every computation.
package block

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/result"
)

// GPUStack names the layout of GPUStack's benchmark-runner; the other is result.VLLM.
const GPUStack = "gpustack"

// Style chooses the layout of a block and what it shows.
type Style struct {
	Layout      string    // "": result.VLLM
	Sections    []string  // --percentile-metrics, of result.Families; nil: ttft, tpot, itl (GPUStack: e2el first)
	Percentiles []float64 // --metric-percentiles, in percent; nil: 99 (GPUStack: 95, 99)
}

// width and labelWidth are vLLM's.
const (
	width      = 50
	labelWidth = 40
)

// headTitle stands in the head of a block.
const headTitle = " Serving Benchmark Result "

// simulatedLine stands above the block of a simulated run.
const simulatedLine = "SIMULATED: no hardware was measured"

// compatLine stands under a block whose figures are vLLM's.
const compatLine = "figures by vllm bench serve's definitions (--compat vllm)"

// Families of which a block says more than their figures.
const (
	itl      = "itl"
	itlToken = "itl_token"
)

// Validate reports what of the style cannot be printed.
func (st Style) Validate() error {
	if st.Layout != "" && st.Layout != result.VLLM && st.Layout != GPUStack {
		return fmt.Errorf("block layout %q is unknown: use %s or %s", st.Layout, result.VLLM, GPUStack)
	}
	known := result.Families()
	for _, name := range st.Sections {
		if !slices.Contains(known, name) {
			return fmt.Errorf("block section %q is unknown: use %s", name, strings.Join(known, ", "))
		}
	}
	for _, p := range st.Percentiles {
		if !(p >= 0 && p <= 100) {
			return fmt.Errorf("metric percentile %v is not between 0 and 100", p)
		}
	}
	return nil
}

// WithDefaults returns the style with what it leaves open.
func (st Style) WithDefaults() Style {
	sections, p := []string{"ttft", "tpot", itl}, []float64{99}
	if st.Layout == GPUStack {
		sections, p = []string{"e2el", "ttft", "tpot", itl}, []float64{95, 99}
	}
	if st.Sections == nil {
		st.Sections = sections
	}
	if st.Percentiles == nil {
		st.Percentiles = p
	}
	return st
}

// Text returns the printed block of a summary: head 50 wide, labels 40 wide,
// values left-aligned. A figure that the summary lacks has no line. A
// simulated run says so in a line of its own above the head, and figures by
// another client's definitions in one under the closing rule. A figure that late
// reads leave open has the least and the most that it can be in lines of their
// own. The style is one that Validate accepts.
func Text(s result.Summary, st Style) string {
	st = st.WithDefaults()
	var b strings.Builder
	if s.Simulated {
		b.WriteString(simulatedLine + "\n")
	}
	b.WriteString(center(headTitle, '=') + "\n")
	for _, m := range firstPart() {
		writeScalar(&b, s, m, st.Layout)
	}
	for _, name := range st.sections(&s) {
		writeFamily(&b, s, name, st)
	}
	b.WriteString(strings.Repeat("=", width) + "\n")
	if s.Compat == result.VLLM {
		b.WriteString(compatLine + "\n")
	}
	return b.String()
}

// firstPart is the rows of the metric table that a block has no section for.
func firstPart() []result.Metric {
	return slices.DeleteFunc(result.Metrics(), func(m result.Metric) bool { return m.Section != "" })
}

// writeScalar writes one line of the first part. GPUStack has no line for
// failures, none for the configured rate, calls the measured maximum of
// requests in flight "Maximum request concurrency", and has its own capitals.
func writeScalar(b *strings.Builder, s result.Summary, m result.Metric, layout string) {
	v, ok := s.Figures[m.Name]
	label := m.Label
	if layout == GPUStack {
		switch m.Name {
		case "failed", "request_rate":
			return
		case "max_concurrency":
			if s.Definitions[m.Name] != result.MeasuredMaximum {
				v, ok = s.Figures["max_concurrent_requests"]
			}
		case "total_token_throughput":
			label = "Total Token throughput (tok/s)"
		}
	}
	if ok {
		writeLine(b, labelWidth, label, v, m.Decimals)
	}
}

// gpustackLatency is the rule above GPUStack's first section, off the centre
// by one as GPUStack has it.
const gpustackLatency = "----------------------Latency---------------------"

// writeFamily writes one ruled section. GPUStack's is titled Latency and in
// seconds for the end-to-end latency, with the labels one column wider.
func writeFamily(b *strings.Builder, s result.Summary, family string, st Style) {
	labels, seconds := labelWidth, st.Layout == GPUStack && family == "e2el"
	if seconds {
		labels++
	}
	headed := false
	for _, m := range st.shown(family) {
		v, ok := s.Figures[m.Name]
		if !ok {
			continue
		}
		if !headed {
			head := center(sectionTitle(&s, m), '-')
			if seconds {
				head = gpustackLatency
			}
			b.WriteString(head + "\n")
			headed = true
		}
		low, high, share, doubt := s.Doubt(m.Name)
		if seconds {
			m.Label = strings.TrimSuffix(m.Label, "E2EL (ms)") + "Latency(s)"
			v, low, high = v/1000, low/1000, high/1000
		}
		writeLine(b, labels, m.Label, v, m.Decimals)
		if doubt && share > result.Doubtful {
			writeBounds(b, labels, m, v, low, high)
		}
	}
}

// writeBounds writes the least and the most that a figure can be, under labels that
// no tool takes for the figure's.
func writeBounds(b *strings.Builder, labels int, m result.Metric, v, low, high float64) {
	i := strings.LastIndexByte(m.Label, '(')
	label := func(word string) string { return strings.TrimSpace(m.Label[:i]) + " " + word + " " + m.Label[i:] }
	if low < v {
		writeLine(b, labels, label("at least"), low, m.Decimals)
	}
	if high > v {
		writeLine(b, labels, label("at most"), high, m.Decimals)
	}
}

func writeLine(b *strings.Builder, labels int, label string, v float64, decimals int) {
	fmt.Fprintf(b, "%-*s %s\n", labels, label+":", strconv.FormatFloat(v, 'f', decimals, 64))
}

// center pads s to the block's width as Python's format does: the odd one goes
// to the right.
func center(s string, fill byte) string {
	pad := max(0, width-len(s))
	return strings.Repeat(string(fill), pad/2) + s + strings.Repeat(string(fill), pad-pad/2)
}

// sections returns the sections that a block shows of a summary: beside an ITL
// whose gaps are of several tokens stands the one by token.
func (st Style) sections(s *result.Summary) []string {
	i := slices.Index(st.Sections, itl)
	if i < 0 || s.PerEvent() == "" || slices.Contains(st.Sections, itlToken) {
		return st.Sections
	}
	return slices.Insert(slices.Clone(st.Sections), i+1, itlToken)
}

// shown returns the statistics of a family that its section shows.
func (st Style) shown(family string) []result.Metric {
	names := []string{"mean", "median"}
	for _, p := range st.Percentiles {
		names = append(names, result.PercentileName(p))
	}
	var rows []result.Metric
	for _, name := range names {
		if m, err := result.Lookup(name + "_" + family + "_ms"); err == nil && m.Family == family {
			rows = append(rows, m)
		}
	}
	return rows
}

// sectionTitle is the title of a figure's section, of another client's figures where ours
// would be untrue, and says of how many tokens the gaps of an ITL are.
func sectionTitle(s *result.Summary, m result.Metric) string {
	title := m.Section
	switch d := s.Definitions[m.Family]; {
	case d == result.E2EPerToken || d == result.E2EPerTokenWeighted:
		title = "Latency per Output Token (incl. 1st token)"
	case m.Family == itl && (d == result.DecodePerToken || d == result.DecodePerTokenWeighted):
		title = "Mean Inter-token Latency of a Request"
	}
	if packed := s.PerEvent(); m.Family == itl && packed != "" {
		title += " (" + packed + ")"
	}
	return title
}
