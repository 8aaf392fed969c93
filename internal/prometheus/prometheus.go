// Package prometheus reads metrics in Prometheus's text format, as engines
// publish them. It is a package because the client, which knows no engine, reads
// such pages as well as telemetry does.
//
//	for _, s := range prometheus.Parse(page, nil) {
//		fmt.Println(s.Name, s.Labels["engine"], s.Value)
//	}
//
// A line that is no sample is passed over: pages come from servers of all kinds.
// Absent: types and help texts, exemplars, and names in quotes.
package prometheus

import (
	"strconv"
	"strings"
)

// Sample is one series of a page at one moment.
type Sample struct {
	Name   string
	Labels map[string]string // nil for none
	Value  float64           // may be infinite or NaN
}

// maxSamples bounds what is kept of a page: engines have some hundred series, a
// gateway may have any number.
const maxSamples = 20_000

const blanks = " \t"

// Parse returns the samples of a page in their order. With keep, those whose name
// it refuses are left out unread: buckets of histograms are most of a page.
func Parse(page string, keep func(name string) bool) []Sample {
	var out []Sample
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		end := strings.IndexAny(line, "{"+blanks)
		if end <= 0 || line[0] == '#' || keep != nil && !keep(line[:end]) {
			continue
		}
		if s, ok := parseSample(line[:end], line[end:]); ok {
			out = append(out, s)
		}
		if len(out) == maxSamples {
			break
		}
	}
	return out
}

// parseSample reads what follows a name: labels, a value, and perhaps a time.
func parseSample(name, rest string) (s Sample, ok bool) {
	s.Name = name
	rest = strings.TrimLeft(rest, blanks)
	if strings.HasPrefix(rest, "{") {
		if s.Labels, rest, ok = parseLabels(rest[1:]); !ok {
			return s, false
		}
		rest = strings.TrimLeft(rest, blanks)
	}
	if i := strings.IndexAny(rest, blanks); i >= 0 {
		rest = rest[:i]
	}
	var err error
	s.Value, err = strconv.ParseFloat(rest, 64)
	return s, err == nil
}

// parseLabels reads `name="value",...}` and returns what follows it.
func parseLabels(s string) (labels map[string]string, rest string, ok bool) {
	for {
		s = strings.TrimLeft(s, ","+blanks)
		if strings.HasPrefix(s, "}") {
			return labels, s[1:], true
		}
		name, after, found := strings.Cut(s, "=")
		after = strings.TrimLeft(after, blanks)
		end := closingQuote(after)
		if !found || end < 0 {
			return nil, "", false
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[strings.TrimSpace(name)] = unescape(after[1:end])
		s = after[end+1:]
	}
}

// closingQuote finds the quote that ends the text s begins with; -1 for none.
func closingQuote(s string) int {
	if !strings.HasPrefix(s, `"`) {
		return -1
	}
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

var escapes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// unescape undoes what the format escapes in a label's value.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return escapes.Replace(s)
}
