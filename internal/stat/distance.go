package stat

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Distance is the number of bytes to insert, delete or replace that turns one
// name into another (Levenshtein's), ignoring case: what "did you mean" goes
// by.
func Distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			keep := diagonal
			if a[i] != b[j] {
				keep++
			}
			diagonal = row[j+1]
			row[j+1] = min(keep, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// Nearest is the name of those that are known that was likely meant by one that is not: one that
// differs in a letter, the first of which it is the beginning or the end, or one that differs in a
// few letters; "" for none. Dashes before names do not count.
func Nearest(name string, known []string) string {
	bare := strings.TrimLeft(name, "-")
	if bare == "" {
		return ""
	}
	near := func(among []string, most int) string {
		best, least := "", math.MaxInt
		for _, k := range among {
			if d := Distance(bare, strings.TrimLeft(k, "-")); d < least {
				best, least = k, d
			}
		}
		if least > most {
			return ""
		}
		return best
	}
	within := slices.IndexFunc(known, func(k string) bool {
		long := strings.ToLower(strings.TrimLeft(k, "-"))
		short := strings.ToLower(bare)
		return len(bare) > 2 && (strings.HasPrefix(long, short) || strings.HasSuffix(long, "_"+short) || strings.HasSuffix(long, "-"+short))
	})
	part := ""
	if within >= 0 {
		part = known[within]
	}
	return cmp.Or(near(known, 1), part, near(known, max(2, len(bare)/3)))
}
