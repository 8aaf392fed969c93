package document

import (
	"slices"
	"strings"

	"perflab/internal/result"
)

// namedMetric is a metric as a text names it.
type namedMetric struct {
	kind string // "ttft", "tpot", "itl", "e2el", "total", "output", "request", "input"; "throughput" or "time" where not more is said
	stat string // "mean", "p99", ...; "" where none is said
	unit unit   // that the name itself gives: "Mean TPOT(ms)"; bare for none
	end  int    // where its word ends

	seconds bool // the unit is seconds
}

// isRate reports whether more of it is better.
func (m namedMetric) isRate() bool {
	switch m.kind {
	case "total", "output", "input", "request", "throughput":
		return true
	}
	return false
}

// metrics are the names of our metrics that the text may mean, the likeliest
// first.
func (m namedMetric) metrics() []string {
	switch m.kind {
	case "total":
		return []string{"total_token_throughput"}
	case "output":
		return []string{"output_throughput"}
	case "request":
		return []string{"request_throughput"}
	case "throughput":
		return []string{"total_token_throughput", "output_throughput", "max_output_tokens_per_s"}
	case "time":
		return slices.Concat(namedMetric{kind: "e2el"}.metrics(), namedMetric{kind: "ttft"}.metrics(), namedMetric{kind: "tpot"}.metrics(), namedMetric{kind: "itl"}.metrics())
	case "ttft", "tpot", "itl", "e2el":
		if m.stat != "" {
			return []string{m.stat + "_" + m.kind + "_ms"}
		}
		var out []string
		for _, s := range []string{"mean", "median", "p90", "p95", "p99"} {
			out = append(out, s+"_"+m.kind+"_ms")
		}
		return out
	}
	return nil
}

// String is the metric in words.
func (m namedMetric) String() string {
	names := m.metrics()
	if len(names) > 0 && m.kind != "time" && m.kind != "throughput" {
		if m.kind == "e2el" {
			return strings.ToUpper(names[0][:1]) + strings.TrimSuffix(names[0][1:], "_e2el_ms") + " latency"
		}
		if row, err := result.Lookup(names[0]); err == nil {
			label, _, _ := strings.Cut(row.Label, " (")
			return label
		}
	}
	switch m.kind {
	case "time":
		return "time"
	case "input":
		return "input token throughput"
	}
	return "token throughput"
}

// sameAs reports whether two texts may speak of the same metric.
func (m namedMetric) sameAs(o namedMetric) bool {
	if m.kind == o.kind {
		return m.stat == o.stat || m.stat == "" || o.stat == ""
	}
	return m.isRate() && o.isRate() && (m.kind == "throughput" || o.kind == "throughput")
}

// word is a word of a line, in lower case.
type word struct {
	text       string
	start, end int
}

// wordsOf splits a line into runs of letters and digits.
func wordsOf(s string) []word {
	var out []word
	for i := 0; i < len(s); {
		if !isWord(s[i]) {
			i++
			continue
		}
		j := i
		for j < len(s) && isWord(s[j]) {
			j++
		}
		out = append(out, word{strings.ToLower(s[i:j]), i, j})
		i = j
	}
	return out
}

// namedMetrics finds the metrics that a line names.
func namedMetrics(s string) []namedMetric {
	var out []namedMetric
	words := wordsOf(s)
	for i, w := range words {
		kind := kindOf(words, i)
		if kind == "" {
			continue
		}
		if kind == "e2el" && i+1 < len(words) && (words[i+1].text == "latency" || words[i+1].text == "time") {
			w.end = words[i+1].end
		}
		m := namedMetric{kind: kind, end: w.end}
		for j := i - 1; j >= max(0, i-3) && m.stat == ""; j-- {
			m.stat = statOf(words[j].text)
		}
		rest := strings.TrimLeft(s[w.end:], " ")
		switch {
		case strings.HasPrefix(rest, "(ms)"):
			m.unit = msec
		case strings.HasPrefix(rest, "(s)"), strings.HasPrefix(rest, "(sec)"), strings.HasPrefix(rest, "(seconds)"):
			m.unit, m.seconds = msec, true
		case strings.HasPrefix(rest, "(tok/s)"), strings.HasPrefix(rest, "(tokens/s)"):
			m.unit = perSec
		}
		out = append(out, m)
	}
	return out
}

// kindOf returns the metric that the word is the name of, "" for none.
func kindOf(words []word, i int) string {
	before := func(n int) string {
		if i-n < 0 {
			return ""
		}
		return words[i-n].text
	}
	switch words[i].text {
	case "ttft", "tpot", "itl":
		return words[i].text
	case "e2el", "e2e":
		if i+1 < len(words) && words[i+1].text == "per" {
			return "" // a definition: e2e_per_token
		}
		return "e2el"
	case "latency":
		switch before(1) {
		case "token":
			return "itl"
		case "e2e", "ttft", "tpot", "itl", "low", "high", "for", "optimizing":
			return ""
		}
		return "e2el"
	case "tps", "throughput":
		switch before(1) {
		case "low", "high", "for", "optimizing": // an aim
			return ""
		}
		for n := 1; n <= 2; n++ {
			switch before(n) {
			case "total":
				return "total"
			case "output", "generation", "decode":
				return "output"
			case "input", "prompt", "prefill":
				return "input"
			case "request":
				return "request"
			}
		}
		return "throughput"
	}
	return ""
}

// statOf returns the statistic that a word names.
func statOf(w string) string {
	switch w {
	case "mean", "average", "avg":
		return "mean"
	case "median", "p50":
		return "median"
	case "p90", "p95", "p99":
		return w
	}
	return ""
}
