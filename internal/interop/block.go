package interop

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"perflab/internal/interop/markdown"
	"perflab/internal/result"
)

// blockTitles stand between rules in the head of a block, squeezed.
var blockTitles = []string{"serving benchmark result", "embedding/pooling benchmark result", "multi-turn benchmark result"}

// steadyTitle heads what vllm-bench prints under a block of its steady state.
const steadyTitle = "steady-state metrics"

// openBlock is one printed block while it is read.
type openBlock struct {
	line, end int
	figures   []Figure
	other     []Pair
	absent    []Figure // that the block says it has not
	faults    []Fault
	names     map[string]int // index in figures
	backend   bool           // SGLang's first line was there
	seconds   bool           // GPUStack's latency in seconds was there
	blank     bool           // the last line was
	foreign   bool           // in a section of figures that are not of the whole load
	turns     bool           // in the figures of single turns, up to the end
	headless  bool           // its head line is missing
}

// titled reports whether a line is one of the titles between rules.
func titled(line string, titles ...string) bool {
	return strings.HasPrefix(line, "==") && strings.HasSuffix(line, "==") && len(line) < 1000 &&
		slices.Contains(titles, squeeze(strings.Trim(line, "=")))
}

// isHead reports whether a line is the head of a block.
func isHead(line string) bool { return titled(line, blockTitles...) }

// hidesHead reports whether a line has the head of a block beside other text.
func hidesHead(line string) bool {
	if len(line) > 1000 || !strings.Contains(line, "====") {
		return false
	}
	low := squeeze(line)
	return slices.ContainsFunc(blockTitles, func(t string) bool { return strings.Contains(low, "= "+t+" =") })
}

// isRule reports whether a line is the rule that closes a block.
func isRule(line string) bool { return len(line) >= 4 && strings.Trim(line, "=") == "" }

// isSection reports whether a line heads a section of a block.
func isSection(line string) bool {
	return strings.HasPrefix(line, "---") || strings.HasPrefix(line, "--") && strings.HasSuffix(line, "--") ||
		strings.HasPrefix(line, "===") && strings.HasSuffix(line, "===")
}

// takes reports whether a line can be one of the block: what follows a blank
// line without a colon, comments, tables and admonitions are the document's.
func (b *openBlock) takes(line string) bool {
	switch {
	case strings.HasPrefix(line, "#"), strings.HasPrefix(line, "|"), markdown.IsAdmonition(line), markdown.IsFence(line):
		return false
	case isSection(line):
		return true
	}
	_, _, ok := cutLabel(line)
	return ok || !b.blank
}

// read takes in one line.
func (b *openBlock) read(n int, line string) {
	if b.blank = line == ""; b.blank {
		return
	}
	b.end = n
	if isSection(line) {
		title := squeeze(strings.Trim(line, "-="))
		b.turns = b.turns || strings.HasPrefix(title, "turn ")
		b.foreign = b.turns || strings.Contains(title, "probe")
		return
	}
	label, text, ok := cutLabel(line)
	if !ok {
		b.other = append(b.other, Pair{line, "", n})
		return
	}
	key := squeeze(label)
	b.backend = b.backend || key == "backend"
	b.seconds = b.seconds || strings.HasSuffix(key, " latency(s)")
	m := metricOf(key)
	if m.name == "" || b.foreign {
		b.other = append(b.other, Pair{label, text, n})
		return
	}
	b.put(m, Figure{Name: m.name, Label: label, Text: text, Line: n})
}

// put keeps the number of a known metric, or says why it has none.
func (b *openBlock) put(m labelled, f Figure) {
	v, half, ok := number(f.Text)
	f.Value, f.Half = v*m.scale, half*m.scale
	ok = ok && !math.IsInf(f.Value, 0) && !math.IsInf(f.Half, 0)
	if m.count && !strings.ContainsAny(f.Text, ".eE") {
		f.Half = 0
	}
	switch i, twice := b.names[m.name]; {
	case twice:
		if b.figures[i].Text != f.Text {
			b.fault(f.Line, fmt.Sprintf("the block has %q twice, with %s and %s: the first is read", f.Label, b.figures[i].Text, f.Text))
		}
	case !ok && saysAbsent(m.name, f.Text):
		b.absent = append(b.absent, f)
	case !ok:
		b.fault(f.Line, fmt.Sprintf("%q has no number (%s): the figure is left out", f.Label, quoteShort(f.Text)))
	default:
		b.names[m.name] = len(b.figures)
		b.figures = append(b.figures, f)
		return
	}
	b.other = append(b.other, Pair{f.Label, f.Text, f.Line})
}

func (b *openBlock) fault(line int, text string) {
	b.faults = append(b.faults, Fault{Place: Place{Line: line}, Text: text})
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

// quoteShort quotes what may be long.
func quoteShort(s string) string {
	if len(s) > 40 {
		s = strings.ToValidUTF8(s[:40], "") + "..."
	}
	return strconv.Quote(s)
}

// cutLabel cuts "label: value" at the last colon.
func cutLabel(line string) (label, text string, ok bool) {
	line = fullWidth.Replace(line)
	i := strings.LastIndexByte(line, ':')
	if i <= 0 {
		return "", "", false
	}
	return strings.TrimSpace(line[:i]), strings.TrimSpace(line[i+1:]), true
}

// fullWidth puts the punctuation of Chinese and Japanese keyboards in ASCII.
var fullWidth = strings.NewReplacer("：", ":", "（", "(", "）", ")", "／", "/")

// labelled is what a label of a block means.
type labelled struct {
	name  string // of the metric; "" for none of ours
	scale float64
	count bool // in whole requests or tokens
}

// blockLabels maps squeezed labels to metrics, and those of families without the
// statistic to the families.
var blockLabels = sync.OnceValues(func() (metrics map[string]labelled, families map[string]string) {
	metrics = map[string]labelled{}
	families = map[string]string{
		"e2e latency (ms)":             "e2el", // SGLang
		"latency (ms)":                 "e2el",
		"latency(s)":                   "e2el", // GPUStack
		"client queue time (ms)":       "queue",
		"queue-inclusive latency (ms)": "e2el_due",
	}
	for _, m := range result.Metrics() {
		label := squeeze(m.Label)
		metrics[label] = labelled{m.Name, 1, m.Unit == "requests" || m.Unit == "tokens" || m.Unit == "chunks"}
		if m.Stat == "mean" {
			families[strings.TrimPrefix(label, "mean ")] = m.Family
		}
	}
	for label, as := range map[string]string{ // SGLang, and its older spellings
		"max request concurrency":  "maximum request concurrency",
		"max reqeuest concurrency": "maximum request concurrency",
		"traffic request rate":     "request rate configured (rps)",
		"total throughput (tok/s)": "total token throughput (tok/s)",
	} {
		metrics[label] = metrics[as]
	}
	return metrics, families
})

// metricOf returns what a squeezed label means.
func metricOf(label string) labelled {
	metrics, families := blockLabels()
	if m, ok := metrics[label]; ok {
		return m
	}
	stat, rest, _ := strings.Cut(label, " ")
	family, ok := families[rest]
	if !ok {
		return labelled{}
	}
	m, err := result.Lookup(stat + "_" + family + "_ms")
	if err != nil || m.Family != family {
		return labelled{}
	}
	if rest == "latency(s)" {
		return labelled{name: m.Name, scale: 1000}
	}
	return labelled{name: m.Name, scale: 1}
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
func (b *openBlock) client() (string, map[string]result.Definition) {
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
