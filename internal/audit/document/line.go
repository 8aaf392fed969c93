package document

import (
	"strings"

	"perflab/internal/interop"
)

// How many bytes of a line around a number are looked at.
const (
	nameDistance   = 24 // from the name of a throughput to its number
	unitWords      = 12 // behind a rate, for "total" and "output"
	fromWord       = 8  // before "X to Y", for "from"
	directionWords = 80 // behind a ratio, for "faster"
	perGPUWords    = 60 // behind a ratio, for "per GPU"
)

// mostNumbers is how many numbers a line of prose has at most: more are data.
const mostNumbers = 200

// readLine reads the figures of a line of prose: "A = 3.54s, B = 3.66s. A is
// faster by 0.12s (1.03x faster)", "from 44ms to 30ms", "A (12 tok/s) > B".
func (d *document) readLine(t interop.Text) {
	text, names := unquote(t.Text)
	l := statement{line: t.Line, text: t.Text}
	lower := strings.ToLower(strings.TrimLeft(text, " -*•"))
	if strings.HasPrefix(lower, "summary") || strings.HasPrefix(lower, "result") {
		l.kind = inSummary
	}
	if r, ok := readRanking(text, t.Line); ok {
		l.kind = inSummary
		for i := range r.citations {
			d.match(&r.citations[i])
		}
		l.citations = r.citations
		d.rankings = append(d.rankings, r)
		d.statements = append(d.statements, l)
		return
	}
	all := quantities(text)
	if len(all) == 0 || len(all) > mostNumbers {
		return
	}
	l.read(text, all, names)
	for i := range l.citations {
		d.match(&l.citations[i])
	}
	for i := range l.comparisons {
		d.match(&l.comparisons[i].changed)
		d.match(&l.comparisons[i].base)
	}
	if len(l.citations) > 0 {
		d.statements = append(d.statements, l)
	}
}

// quoted is a name in backquotes.
type quoted struct {
	name  string
	start int
}

// unquote blanks the names in backquotes, in which numbers are no figures.
func unquote(s string) (string, []quoted) {
	var names []quoted
	var b strings.Builder
	for rest, at := s, 0; ; {
		i := strings.IndexByte(rest, '`')
		j := -1
		if i >= 0 {
			j = strings.IndexByte(rest[i+1:], '`')
		}
		if j < 0 {
			b.WriteString(rest)
			return b.String(), names
		}
		names = append(names, quoted{rest[i+1 : i+1+j], at + i})
		b.WriteString(rest[:i])
		b.WriteString(strings.Repeat(" ", j+2))
		rest, at = rest[i+j+2:], at+i+j+2
	}
}

// read sorts the numbers of a line into figures, differences and ratios. A
// figure needs the name of a metric before it and a unit, or an equals sign or
// colon between them.
func (l *statement) read(text string, all []quantity, names []quoted) {
	named := namedMetrics(text)
	var last []citation // figures of one metric since the last ratio, in order
	next, end := 0, 0
	for _, q := range all {
		gap := text[end:q.Start]
		if strings.Contains(gap, ";") || strings.Contains(gap, ". ") && !strings.Contains(strings.ToLower(gap), " by ") {
			last = nil
		}
		before := next
		for next < len(named) && named[next].end <= q.Start {
			next++
		}
		switch {
		case q.Unit == inPercent || q.Unit == asFactor:
			last = l.ratio(text, q, gap, last)
		case strings.HasSuffix(strings.ToLower(strings.TrimRight(gap, " ")), " by"):
			l.difference(q, gap, last)
		default:
			m, ok := metricOfNumber(text, q, named[:next], next > before)
			if !ok {
				break
			}
			if m.isRate() {
				q.Unit = perSec
			}
			t := citation{quantity: q, named: m, line: l.line}
			for _, n := range names {
				if n.start < q.Start && n.start >= end {
					t.owner = n.name
				}
			}
			if len(last) > 0 && (!last[0].named.sameAs(m) || last[0].Unit != q.Unit) {
				last = nil
			}
			l.citations, last = append(l.citations, t), append(last, t)
			l.move(text, last, gap)
		}
		end = q.End
	}
}

// metricOfNumber finds the metric of a number of a line: the last one named before
// it, which its unit must fit.
func metricOfNumber(text string, q quantity, named []namedMetric, fresh bool) (namedMetric, bool) {
	if q.Unit == reqSec {
		return namedMetric{}, false
	}
	var m namedMetric
	if len(named) > 0 {
		m = named[len(named)-1]
	}
	if q.Unit == perSec {
		if !m.isRate() || q.Start-m.end > nameDistance {
			m = namedMetric{kind: "throughput"}
		}
		if behind := wordsOf(text[q.End:min(len(text), q.End+unitWords)]); m.kind == "throughput" && len(behind) > 0 && (behind[0].text == "total" || behind[0].text == "output") {
			m.kind = behind[0].text
		}
		return m, true
	}
	if m.kind == "" || m.isRate() && q.Unit != bare || strings.Contains(text[m.end:q.Start], ". ") {
		return m, false
	}
	if q.Unit == bare && (!fresh || !assigns(text[m.end:q.Start])) {
		return m, false
	}
	return m, true
}

// assigns reports whether nothing but a sign, and a unit in parentheses, is
// between a name and its number.
func assigns(s string) bool {
	s = strings.NewReplacer("(ms)", "", "(s)", "", "(tok/s)", "").Replace(s)
	s = strings.TrimSpace(s)
	return s == "=" || s == ":"
}

// move makes a comparison of "from X to Y" and "X vs Y".
func (l *statement) move(text string, last []citation, gap string) {
	if len(last) < 2 {
		return
	}
	a, b := last[len(last)-2], last[len(last)-1]
	head := wordsOf(text[max(0, a.Start-fromWord):a.Start])
	switch strings.ToLower(strings.Trim(gap, " ,.():*")) {
	case "to", "→", "->":
		if len(head) > 0 && head[len(head)-1].text == "from" || !strings.Contains(gap, "to") {
			l.comparisons = append(l.comparisons, comparison{changed: b, base: a, line: l.line})
		}
	default:
		l.comparisons = append(l.comparisons, comparison{changed: a, base: b, line: l.line, label: a.owner})
	}
}

// difference gives the latest comparison the difference that follows it.
func (l *statement) difference(q quantity, gap string, last []citation) {
	if len(last) < 2 || len(l.comparisons) == 0 {
		return
	}
	c := &l.comparisons[len(l.comparisons)-1]
	if words := wordsOf(gap); len(words) >= 2 && c.delta == nil {
		switch v := words[len(words)-2].text; v {
		case "reduced", "increased", "faster", "slower":
			c.verb, c.delta = v, &q
		}
	}
}

// ratio gives the latest comparison the percentage or factor that follows it.
// It returns the figures that a later ratio may still be of: none.
func (l *statement) ratio(text string, q quantity, gap string, last []citation) []citation {
	if len(last) < 2 || len(l.comparisons) == 0 || l.comparisons[len(l.comparisons)-1].ratio != nil {
		return nil
	}
	c := &l.comparisons[len(l.comparisons)-1]
	behind := wordsOf(text[q.End:min(len(text), q.End+directionWords)])
	if len(behind) > 0 {
		c.word = direction(behind[0].text)
	}
	if c.word == "" && !strings.HasSuffix(strings.TrimRight(gap, " "), "(") {
		return nil // a number of something else
	}
	c.ratio = &q
	c.perGPU = perGPU(text[q.End:min(len(text), q.End+perGPUWords)])
	return nil
}

// direction is the word if it tells in which direction a ratio goes.
func direction(w string) string {
	switch w {
	case "faster", "slower", "higher", "lower", "better", "worse", "more", "less":
		return w
	case "reduction", "drop", "decrease":
		return "lower"
	case "improvement", "increase", "gain", "boost", "speedup":
		return "higher"
	}
	return ""
}

// perGPU reports whether the text behind a ratio makes it one per GPU.
func perGPU(s string) bool {
	s, _, _ = strings.Cut(strings.ToLower(s), ". ")
	return strings.Contains(s, "/gpu") || strings.Contains(s, "per gpu")
}
