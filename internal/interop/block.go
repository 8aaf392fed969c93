package interop

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"perflab/internal/result"
)

// blockTitle stands between rules in the head of a block.
const blockTitle = "serving benchmark result"

// block is one printed block while it is read.
type block struct {
	line, end int
	figures   []Figure
	other     []Pair
	faults    []Fault
	names     map[string]int // index in figures
	backend   bool           // SGLang's first line was there
	seconds   bool           // GPUStack's latency in seconds was there
	blank     bool           // the last line was
	foreign   bool           // in a section of figures that are not of the load
}

// isHead reports whether a line is the head of a block: the title between
// rules.
func isHead(line string) bool {
	return strings.HasPrefix(line, "==") && strings.HasSuffix(line, "==") &&
		len(line) < 1000 && squeeze(strings.Trim(line, "=")) == blockTitle
}

// isRule reports whether a line is the rule that closes a block.
func isRule(line string) bool { return len(line) >= 10 && strings.Trim(line, "=") == "" }

// isSection reports whether a line heads a section of a block.
func isSection(line string) bool {
	return strings.HasPrefix(line, "---") || strings.HasPrefix(line, "===") && strings.HasSuffix(line, "===")
}

// takes reports whether a line can be one of the block: what follows a blank
// line without a colon, comments, tables and admonitions are the document's.
func (b *block) takes(line string) bool {
	switch {
	case strings.HasPrefix(line, "#"), strings.HasPrefix(line, "|"), isAdmonition(line), isFence(line):
		return false
	case isSection(line):
		return true
	}
	_, _, ok := cutLabel(line)
	return ok || !b.blank
}

// read takes in one line.
func (b *block) read(n int, line string) {
	if b.blank = line == ""; b.blank {
		return
	}
	if isSection(line) {
		b.foreign = strings.Contains(strings.ToLower(line), "probe")
		return
	}
	b.end = n
	label, text, ok := cutLabel(line)
	if !ok {
		b.other = append(b.other, Pair{line, "", n})
		return
	}
	key := squeeze(label)
	b.backend = b.backend || key == "backend"
	b.seconds = b.seconds || strings.HasSuffix(key, " latency(s)")
	name, scale := metricOf(key)
	if name == "" || b.foreign {
		b.other = append(b.other, Pair{label, text, n})
		return
	}
	b.put(name, scale, Figure{Label: label, Text: text, Line: n})
}

// put keeps the number of a known metric, or says why it has none.
func (b *block) put(name string, scale float64, f Figure) {
	v, half, ok := number(f.Text)
	f.Name, f.Value, f.Half = name, v*scale, half*scale
	m, err := result.Lookup(name)
	if err == nil && isCount(m.Unit) && !strings.ContainsAny(f.Text, ".eE") {
		f.Half = 0
	}
	switch i, twice := b.names[name]; {
	case twice:
		if b.figures[i].Text != f.Text {
			b.fault(f.Line, fmt.Sprintf("the block has %q twice, with %s and %s: the first is read", f.Label, b.figures[i].Text, f.Text))
		}
	case !ok && saysAbsent(name, f.Text):
	case !ok:
		b.fault(f.Line, fmt.Sprintf("%q has no number (%s): the figure is left out", f.Label, quoteShort(f.Text)))
	default:
		b.names[name] = len(b.figures)
		b.figures = append(b.figures, f)
		return
	}
	b.other = append(b.other, Pair{f.Label, f.Text, f.Line})
}

func (b *block) fault(line int, text string) {
	b.faults = append(b.faults, Fault{Place{Line: line}, text})
}

// saysAbsent reports whether a text says that there is no such figure, so that
// its absence is no fault.
func saysAbsent(name, text string) bool {
	switch strings.ToLower(text) {
	case "n/a", "not set", "none", "null", "-":
		return true
	case "inf", "infinity":
		return name == "request_rate"
	}
	return false
}

func isCount(unit string) bool { return unit == "requests" || unit == "tokens" || unit == "chunks" }

// quoteShort quotes what may be long.
func quoteShort(s string) string {
	if len(s) > 40 {
		s = strings.ToValidUTF8(s[:40], "") + "..."
	}
	return strconv.Quote(s)
}

// cutLabel cuts "label: value" at the last colon.
func cutLabel(line string) (label, text string, ok bool) {
	i := strings.LastIndexByte(line, ':')
	if i <= 0 {
		return "", "", false
	}
	return strings.TrimSpace(line[:i]), strings.TrimSpace(line[i+1:]), true
}

// number parses a decimal number, with thousands separated by commas or not,
// and returns half a unit of its last digit.
func number(s string) (v, half float64, ok bool) {
	if s == "" || len(s) > 64 || strings.Trim(s, "0123456789.,+-eE") != "" {
		return 0, 0, false
	}
	s, ok = ungroup(s)
	if !ok {
		return 0, 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	e, _ := strconv.Atoi(exponent)
	if _, decimals, ok := strings.Cut(mantissa, "."); ok {
		e -= len(decimals)
	}
	half = 0.5 * math.Pow10(e)
	return v, half, err == nil && !math.IsInf(half, 0)
}

// ungroup removes the commas of 1,234,567.
func ungroup(s string) (string, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	groups := strings.Split(whole, ",")
	for i, g := range groups {
		if len(groups) > 1 && (i > 0 && len(g) != 3 || i == 0 && (len(g) == 0 || len(strings.TrimLeft(g, "+-")) > 3)) {
			return "", false
		}
	}
	return strings.ReplaceAll(whole, ",", "") + strings.TrimPrefix(s, whole), !strings.Contains(fraction, ",")
}

// blockLabels maps squeezed labels to metric names, and those of families
// without the statistic to family names.
var blockLabels = sync.OnceValues(func() (scalars, families map[string]string) {
	scalars = map[string]string{
		"max request concurrency": "max_concurrency", // SGLang
		"traffic request rate":    "request_rate",
	}
	families = map[string]string{
		"e2e latency (ms)":             "e2el", // SGLang
		"latency (ms)":                 "e2el",
		"latency(s)":                   "e2el", // GPUStack
		"client queue time (ms)":       "queue",
		"queue-inclusive latency (ms)": "e2el_due",
	}
	for _, m := range result.Metrics() {
		if m.Family == "" {
			scalars[squeeze(m.Label)] = m.Name
		} else if m.Stat == "mean" {
			families[strings.TrimPrefix(squeeze(m.Label), "mean ")] = m.Family
		}
	}
	return scalars, families
})

// metricOf returns the metric that a squeezed label names, and the factor from
// its unit to ours; "" for none.
func metricOf(label string) (name string, scale float64) {
	scalars, families := blockLabels()
	if name, ok := scalars[label]; ok {
		return name, 1
	}
	stat, rest, _ := strings.Cut(label, " ")
	family, ok := families[rest]
	if !ok {
		return "", 1
	}
	m, err := result.Lookup(stat + "_" + family + "_ms")
	if err != nil || m.Family != family {
		return "", 1
	}
	if rest == "latency(s)" {
		return m.Name, 1000
	}
	return m.Name, 1
}

// squeeze lowers the case and collapses white space.
func squeeze(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

// Clients by what their blocks look like.
const (
	clientVLLM     = "vllm bench serve"
	clientSGLang   = "sglang.bench_serving"
	clientGPUStack = "guidellm via benchmark-runner"
	clientPerflab  = "perflab bench"
)

// client returns who printed a block of another tool, and by which definitions.
func (b *block) client() (string, map[string]result.Definition) {
	switch {
	case b.seconds:
		return clientGPUStack, map[string]result.Definition{
			"ttft": result.FirstIteration, "tpot": result.E2EPerTokenWeighted, "itl": result.DecodePerTokenWeighted, "e2el": result.StreamEnd,
			"max_output_tokens_per_s": result.InverseGapPeak, "max_concurrency": result.MeasuredMaximum,
			"request_throughput": result.RateWeighted, "output_throughput": result.RateWeighted, "total_token_throughput": result.RateWeighted,
		}
	case b.backend:
		return clientSGLang, map[string]result.Definition{
			"ttft": result.FirstText, "tpot": result.DecodePerToken, "itl": result.ChunkGap, "e2el": result.StreamEnd,
			"max_output_tokens_per_s": result.MessageBuckets, "max_concurrent_requests": result.SecondBuckets,
		}
	}
	return clientVLLM, result.DefinitionsOf(result.VLLM)
}
