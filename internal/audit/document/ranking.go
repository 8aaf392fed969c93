package document

import (
	"fmt"
	"strings"

	"perflab/internal/audit"
)

// readRanking reads a line that is a ranking of two figures or more.
func readRanking(text string, line int) (ranking, bool) {
	r := ranking{line: line}
	head, body, ok := strings.Cut(text, ":")
	if !ok {
		head, body = "", text
	}
	parts, signs := splitSigns(body)
	if len(parts) < 2 || len(parts) > 20 {
		return r, false
	}
	kind := namedMetric{kind: "throughput"}
	if named := namedMetrics(head); len(named) > 0 {
		kind = named[len(named)-1]
	}
	sign := byte('>')
	for i, p := range parts {
		open, shut := strings.LastIndexByte(p, '('), strings.LastIndexByte(p, ')')
		if open < 1 || shut < open || strings.TrimSpace(p[:open]) == "" {
			return r, false
		}
		if i > 0 {
			if r.citations != nil && signs[i-1] != '=' {
				sign = signs[i-1]
			}
		}
		all := quantities(p[open+1 : shut])
		if len(all) != 1 {
			continue
		}
		q := all[0]
		if q.Unit != perSec && q.Unit != msec {
			return r, false
		}
		m := kind
		if q.Unit == msec && m.isRate() {
			m = namedMetric{kind: "time"}
		}
		if len(r.citations) > 0 {
			if q.Unit != r.citations[0].Unit {
				return r, false
			}
			r.signs = append(r.signs, sign)
		}
		r.citations = append(r.citations, citation{quantity: q, named: m, owner: strings.Trim(p[:open], " -*`"), line: line})
	}
	return r, len(r.citations) > 0
}

// splitSigns splits a text at > < and =.
func splitSigns(s string) (parts []string, signs []byte) {
	at := 0
	for i := range len(s) {
		if c := s[i]; c == '>' || c == '<' || c == '=' {
			parts, signs, at = append(parts, s[at:i]), append(signs, c), i+1
		}
	}
	return append(parts, s[at:]), signs
}

// wrongRankings checks that rankings follow their figures.
func wrongRankings(d *document) []audit.Finding {
	var out []audit.Finding
	for _, r := range d.rankings {
		for i, sign := range r.signs {
			a, b := r.citations[i], r.citations[i+1]
			if sign == '>' && a.hi() >= b.lo() || sign == '<' && a.lo() <= b.hi() || sign == '=' {
				continue
			}
			right := map[byte]string{'>': "<", '<': ">"}[sign]
			out = append(out, audit.Finding{Type: "ranking-wrong", Severity: audit.Error, Place: d.place(r.line), Figures: []audit.Cited{a.cited(), b.cited()},
				Expected: fmt.Sprintf("%s %s %s", a.Text, right, b.Text),
				Text:     fmt.Sprintf("%s (%s) is put as %c %s (%s), which its figures contradict", a.owner, a.Text, sign, b.owner, b.Text)})
		}
	}
	return out
}
