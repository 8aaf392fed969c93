package telemetry

import (
	"math"
	"strconv"
	"strings"

	"perflab/internal/engine"
)

// maxSamples bounds what is kept of a page: engines have some hundred series, a
// gateway may have any number.
const maxSamples = 20_000

// parseMetrics reads the samples of a page in Prometheus's text format. Buckets of
// histograms are left out: they are most of a page, and nothing here is made of
// them. A line that is no sample is passed over, as is a value that is not finite.
func parseMetrics(page string) []engine.Sample {
	var out []engine.Sample
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || len(out) >= maxSamples {
			continue
		}
		end := strings.IndexAny(line, "{ \t")
		if end <= 0 || strings.HasSuffix(line[:end], "_bucket") {
			continue
		}
		s := engine.Sample{Name: line[:end]}
		rest, ok := line[end:], true
		if rest[0] == '{' {
			if s.Labels, rest, ok = parseLabels(rest[1:]); !ok {
				continue
			}
		}
		value, _, _ := strings.Cut(strings.TrimSpace(rest), " ") // a time may follow
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		s.Value = v
		out = append(out, s)
	}
	return out
}

// parseLabels reads `name="value",...}` and returns what follows it.
func parseLabels(s string) (labels map[string]string, rest string, ok bool) {
	labels = map[string]string{}
	for {
		s = strings.TrimLeft(s, ", \t")
		if strings.HasPrefix(s, "}") {
			return labels, s[1:], true
		}
		name, after, found := strings.Cut(s, "=")
		after = strings.TrimLeft(after, " \t")
		if !found || !strings.HasPrefix(after, `"`) {
			return nil, "", false
		}
		end := closingQuote(after)
		if end < 0 {
			return nil, "", false
		}
		labels[strings.TrimSpace(name)] = unescape(after[1:end])
		s = after[end+1:]
	}
}

// closingQuote finds the quote that ends the one s begins with; -1 for none.
func closingQuote(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// unescape undoes what the format escapes in a label's value.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(s)
}
