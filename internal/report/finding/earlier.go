package finding

import (
	"fmt"
	"strings"

	"perflab/internal/outcome"
)

// Earlier says what a study takes of one that was made before, and how alike they are.
func Earlier(e outcome.Earlier) string {
	var b strings.Builder
	b.WriteString("Earlier study " + e.Name)
	if e.Path != e.Name {
		b.WriteString(" (" + e.Path + ")")
	}
	if e.Simulated {
		b.WriteString(", SIMULATED")
	}
	if e.Configurations == 0 {
		b.WriteString(": nothing is learned from it")
	} else {
		fmt.Fprintf(&b, ": %s, likeness %.2f", counted(e.Configurations, "configuration"), e.Likeness)
	}
	if len(e.Differences) > 0 {
		b.WriteString("; " + strings.Join(e.Differences, "; "))
	}
	b.WriteString(".")
	for _, text := range e.Unused {
		b.WriteString(" " + text + ".")
	}
	return b.String()
}

// Learned says in one sentence what earlier studies were to a study; "" where it has none.
func Learned(all []outcome.Earlier) string {
	n, studies := 0, 0
	for _, e := range all {
		if n += e.Configurations; e.Configurations > 0 {
			studies++
		}
	}
	switch {
	case len(all) == 0:
		return ""
	case n == 0:
		return "No earlier study directed the search: nothing could be learned from those that are named."
	}
	from := "an earlier study"
	if studies > 1 {
		from = fmt.Sprintf("%d earlier studies", studies)
	}
	return fmt.Sprintf("%s of %s directed the search. None of their figures is in a result: only launches of this study count.", counted(n, "configuration"), from)
}
