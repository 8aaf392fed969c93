package result

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// GPUStack names the layout of GPUStack's benchmark-runner; the other is VLLM.
const GPUStack = "gpustack"

// Style chooses the layout of a block and what it shows.
type Style struct {
	Layout      string    // "": VLLM
	Sections    []string  // --percentile-metrics; nil: ttft, tpot, itl (GPUStack: e2el first)
	Percentiles []float64 // --metric-percentiles, in percent; nil: 99 (GPUStack: 95, 99)
}

// blockWidth and labelWidth are vLLM's.
const (
	blockWidth = 50
	labelWidth = 40
)

// blockTitle stands in the head of a block.
const blockTitle = " Serving Benchmark Result "

// simulatedLine stands above the block of a simulated run.
const simulatedLine = "SIMULATED: no hardware was measured"

// Validate reports what of the style cannot be printed.
func (st Style) Validate() error {
	if st.Layout != "" && st.Layout != VLLM && st.Layout != GPUStack {
		return fmt.Errorf("block layout %q is unknown: use %s or %s", st.Layout, VLLM, GPUStack)
	}
	known := BlockSections()
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
	sections, p := []string{"ttft", "tpot", "itl"}, []float64{99}
	if st.Layout == GPUStack {
		sections, p = []string{"e2el", "ttft", "tpot", "itl"}, []float64{95, 99}
	}
	if st.Sections == nil {
		st.Sections = sections
	}
	if st.Percentiles == nil {
		st.Percentiles = p
	}
	return st
}

// Block returns the printed block of a summary: head 50 wide, labels 40 wide,
// values left-aligned. A figure that the summary lacks has no line. A
// simulated run says so in a line of its own above the head, and figures by
// another client's definitions in one under the closing rule. A figure that late
// reads leave open has the least and the most that it can be in lines of their
// own. The style is one that Validate accepts.
func Block(s Summary, st Style) string {
	st = st.WithDefaults()
	var b strings.Builder
	if s.Simulated {
		b.WriteString(simulatedLine + "\n")
	}
	b.WriteString(center(blockTitle, '=') + "\n")
	for _, m := range scalars() {
		if m.Section == sectionRun {
			writeScalar(&b, s, m, st.Layout)
		}
	}
	for _, name := range st.sections(&s) {
		if f, ok := familyOf(name); ok {
			writeFamily(&b, s, f, st)
		}
	}
	b.WriteString(strings.Repeat("=", blockWidth) + "\n")
	if s.Compat == VLLM {
		b.WriteString(compatLine + "\n")
	}
	return b.String()
}

// writeScalar writes one line of the first part. GPUStack has no line for
// failures, none for the configured rate, calls the measured maximum of
// requests in flight "Maximum request concurrency", and has its own capitals.
func writeScalar(b *strings.Builder, s Summary, m Metric, layout string) {
	v, ok := s.Figures[m.Name]
	label := m.Label
	if layout == GPUStack {
		switch m.Name {
		case "failed", "request_rate":
			return
		case "max_concurrency":
			if s.Definitions[m.Name] != MeasuredMaximum {
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
func writeFamily(b *strings.Builder, s Summary, f family, st Style) {
	title := f.sectionTitle(s.Definitions[f.name])
	if packed := s.PerEvent(); f.name == familyITL && packed != "" {
		title += " (" + packed + ")"
	}
	head, width, seconds := center(title, '-'), labelWidth, st.Layout == GPUStack && f.name == "e2el"
	if seconds {
		head, width = gpustackLatency, labelWidth+1
	}
	headed := false
	for _, stat := range st.shown() {
		m := f.metric(stat)
		v, ok := s.Figures[m.Name]
		if !ok {
			continue
		}
		if !headed {
			b.WriteString(head + "\n")
			headed = true
		}
		low, high, share, doubt := s.Doubt(m.Name)
		if seconds {
			m.Label = strings.TrimSuffix(m.Label, f.label+" (ms)") + "Latency(s)"
			v, low, high = v/1000, low/1000, high/1000
		}
		writeLine(b, width, m.Label, v, m.Decimals)
		if doubt && share > Doubtful {
			writeBounds(b, width, m, v, low, high)
		}
	}
}

// writeBounds writes the least and the most that a figure can be, under labels that
// no tool takes for the figure's.
func writeBounds(b *strings.Builder, width int, m Metric, v, low, high float64) {
	i := strings.LastIndexByte(m.Label, '(')
	label := func(word string) string { return strings.TrimSpace(m.Label[:i]) + " " + word + " " + m.Label[i:] }
	if low < v {
		writeLine(b, width, label("at least"), low, m.Decimals)
	}
	if high > v {
		writeLine(b, width, label("at most"), high, m.Decimals)
	}
}

func writeLine(b *strings.Builder, width int, label string, v float64, decimals int) {
	fmt.Fprintf(b, "%-*s %s\n", width, label+":", strconv.FormatFloat(v, 'f', decimals, 64))
}

// center pads s to the block's width as Python's format does: the odd one goes
// to the right.
func center(s string, fill byte) string {
	pad := max(0, blockWidth-len(s))
	return strings.Repeat(string(fill), pad/2) + s + strings.Repeat(string(fill), pad-pad/2)
}

// compatLine stands under a block whose figures are vLLM's.
const compatLine = "figures by vllm bench serve's definitions (--compat vllm)"

// shown returns the statistics that a section shows.
func (st Style) shown() []string {
	names := []string{"mean", "median"}
	for _, p := range st.Percentiles {
		names = append(names, PercentileName(p))
	}
	return names
}

// sectionTitle is the title of a family's section in the block, of another
// client's figures where ours would be untrue.
func (f family) sectionTitle(d Definition) string {
	switch {
	case d == E2EPerToken || d == E2EPerTokenWeighted:
		return "Latency per Output Token (incl. 1st token)"
	case f.name == familyITL && (d == DecodePerToken || d == DecodePerTokenWeighted):
		return "Mean Inter-token Latency of a Request"
	}
	return f.section
}
