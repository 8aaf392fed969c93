package plot

import (
	"math"
	"strconv"
	"strings"
)

// Milli writes a duration in ms with three digits: 4.21 ms, 13.4 s.
func Milli(v float64) string {
	unit := " ms"
	switch {
	case v >= 1000:
		v, unit = v/1000, " s"
	case v > 0 && v < 1:
		v, unit = v*1000, " µs"
	}
	digits := 0
	if v > 0 {
		digits = min(max(0, 2-int(math.Floor(math.Log10(v)))), 2)
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + unit
}

// Grouped puts a comma between thousands: 12,345.5.
func Grouped(s string) string {
	whole, rest, _ := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return sign + whole
}

// Tally writes a number of things: 12,345.
func Tally(n int) string { return Grouped(strconv.Itoa(n)) }

// Times writes a ratio.
func Times(v float64) string {
	switch {
	case v >= 1000 || v > 0 && v < 0.001:
		return strconv.FormatFloat(v, 'g', 3, 64) + "x"
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64) + "x"
	}
	return strconv.FormatFloat(v, 'f', 3, 64) + "x"
}

// plainLabel prints a tick of a logarithmic axis.
func plainLabel(v float64) string {
	if v >= 1e6 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return Grouped(strconv.FormatFloat(v, 'f', -1, 64))
}

// TickLabel prints a tick with as many decimals as the step needs.
func TickLabel(v float64, t []float64) string {
	d := 0
	if len(t) > 1 {
		d = max(0, int(math.Ceil(-math.Log10(t[1]-t[0])-1e-9)))
	}
	return Grouped(strconv.FormatFloat(v, 'f', d, 64))
}

// TextWidth estimates the width of s at 12 px: no font is at hand here, and
// 6.6 px is the mean advance of common sans-serif faces, rounded up.
func TextWidth(s string) float64 { return 6.6 * float64(len([]rune(s))) }

// Clip shortens s to n runes.
func Clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return strings.TrimSpace(string(r[:n-1])) + "…"
}

// Count writes a number of things: 1 replica, 2 replicas.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
