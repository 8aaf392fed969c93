package result

import (
	"math"
	"strconv"
	"strings"
)

// ParsedBlock is one printed block, read back. Its figures stand under our names
// and in our units, but a foreign client made them by its own definitions:
// GPUStack's TPOT includes the TTFT, its ITL is what we call TPOT, its peak is
// the inverse of the smallest gap.
type ParsedBlock struct {
	Line      int                // of its head, from 1
	Dialect   string             // VLLM, GPUStack, SGLang
	Simulated bool               // the line above says so
	Figures   map[string]float64 // by metric name
	Other     map[string]string  // lines that are no figure of ours: label -> text
}

// ParseBlocks finds every block in a text. It goes by the labels, case and
// spacing aside, so indentation, padding and unknown lines do no harm. A block
// ends at its closing rule, at a code fence, or where the next begins.
func ParseBlocks(text string) []ParsedBlock {
	names := labelNames()
	var blocks []ParsedBlock
	open, simulated := false, false
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		switch {
		case isHead(line):
			blocks = append(blocks, ParsedBlock{
				Line: n, Dialect: VLLM, Simulated: simulated,
				Figures: map[string]float64{}, Other: map[string]string{},
			})
			open = true
		case isRule(line) || strings.HasPrefix(line, "```"):
			open = false
		case open && !strings.HasPrefix(line, "---"):
			blocks[len(blocks)-1].read(line, names)
		}
		simulated = strings.HasPrefix(line, "SIMULATED")
	}
	return blocks
}

// isHead reports whether a line is the head of a block: the title between
// rules.
func isHead(line string) bool {
	return strings.HasPrefix(line, "==") && strings.HasSuffix(line, "==") &&
		squeeze(strings.Trim(line, "=")) == squeeze(title)
}

// isRule reports whether a line is the rule that closes a block.
func isRule(line string) bool { return len(line) >= 10 && strings.Trim(line, "=") == "" }

// read takes in one "label: value" line. The first line with a label counts.
func (b *ParsedBlock) read(line string, names map[string]string) {
	i := strings.LastIndexByte(line, ':')
	if i < 0 {
		return
	}
	label, text := squeeze(line[:i]), strings.TrimSpace(line[i+1:])
	switch {
	case label == "backend":
		b.Dialect = SGLang
	case strings.HasSuffix(label, " latency(s)"):
		b.Dialect = GPUStack
		// What was read above as the limit is the measured maximum here.
		if v, ok := b.Figures["max_concurrency"]; ok {
			delete(b.Figures, "max_concurrency")
			b.put("max_concurrent_requests", v)
		}
	}
	name, scale := figureOf(label, names)
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if v *= scale; name == "" || err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		b.Other[label] = text
		return
	}
	b.put(name, v)
}

func (b *ParsedBlock) put(name string, v float64) {
	if _, ok := b.Figures[name]; !ok {
		b.Figures[name] = v
	}
}

// labelNames maps the squeezed labels of scalars, and those of families
// without the statistic, to names.
func labelNames() map[string]string {
	names := map[string]string{
		"max request concurrency":      "max_concurrency", // SGLang
		"traffic request rate":         "request_rate",
		"e2e latency (ms)":             "e2el",
		"latency (ms)":                 "e2el",
		"client queue time (ms)":       "queue",
		"queue-inclusive latency (ms)": "e2el_due",
	}
	for _, m := range scalars() {
		names[squeeze(m.Label)] = m.Name
	}
	for _, f := range families() {
		names[squeeze(f.label+" (ms)")] = f.name
	}
	return names
}

// figureOf returns the metric that a squeezed label names, and the factor from
// its unit to ours; "" for none.
func figureOf(label string, names map[string]string) (name string, scale float64) {
	if name, ok := names[label]; ok {
		if _, isFamily := familyOf(name); !isFamily {
			return name, 1
		}
		return "", 1
	}
	stat, rest, _ := strings.Cut(label, " ")
	scale = 1
	if rest == "latency(s)" {
		rest, scale = "latency (ms)", 1000
	}
	f, ok := familyOf(names[rest])
	if !ok {
		return "", 1
	}
	for _, s := range stats {
		if strings.EqualFold(s.label, stat) {
			return f.metric(s.name).Name, scale
		}
	}
	if p, ok := percentile(stat); ok {
		return f.metric(pName(p)).Name, scale
	}
	return "", 1
}

// squeeze lowers the case and collapses white space.
func squeeze(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
