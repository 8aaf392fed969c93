package audit

import (
	"strconv"
	"strings"

	"perflab/internal/interop"
)

// figureText is a figure as printed, "" where the run lacks it.
func figureText(r *interop.Run, name string) string {
	f, _ := r.Figure(name)
	return f.Text
}

// figureValue is a figure's value; 0 where the run lacks it.
func figureValue(r *interop.Run, name string) float64 {
	f, _ := r.Figure(name)
	return f.Value
}

// perRequest is a total per completed request; 0 where the run lacks either.
func perRequest(r *interop.Run, total string) float64 {
	if n := figureValue(r, "completed"); n > 0 {
		return figureValue(r, total) / n
	}
	return 0
}

// fingerprint is equal for runs that print the same figures.
func fingerprint(r *interop.Run) string {
	var b strings.Builder
	for _, f := range r.Figures {
		b.WriteString(f.Name + "=" + strconv.FormatFloat(f.Value, 'g', -1, 64) + ";")
	}
	return b.String()
}

// sameFigures reports whether two runs print the same, figure by figure.
func sameFigures(a, b *interop.Run) bool { return fingerprint(a) == fingerprint(b) }

// fewestFigures is how many figures two blocks need to have in common to be
// called copies.
const fewestFigures = 6
