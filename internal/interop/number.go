package interop

import (
	"math"
	"strconv"
	"strings"
)

// number parses a decimal number, with thousands separated by commas or not,
// and returns half a unit of its last digit.
func number(s string) (v, half float64, ok bool) {
	if s == "" || len(s) > 64 || strings.Trim(s, "0123456789.,+-eE") != "" {
		return 0, 0, false
	}
	s, ok = ungroup(s)
	if !ok {
		return 0, 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	half = halfDigit(s)
	return v, half, err == nil && !math.IsInf(half, 0)
}

// ungroup removes the commas of 1,234,567.
func ungroup(s string) (string, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	groups := strings.Split(whole, ",")
	for i, g := range groups {
		if len(groups) > 1 && (i > 0 && len(g) != 3 || i == 0 && (len(g) == 0 || len(strings.TrimLeft(g, "+-")) > 3)) {
			return "", false
		}
	}
	return strings.ReplaceAll(whole, ",", "") + strings.TrimPrefix(s, whole), !strings.Contains(fraction, ",")
}

// halfDigit returns half a unit of the last digit of a number's text.
func halfDigit(text string) float64 {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exponent)
	return 0.5 * math.Pow10(e-len(decimals))
}
