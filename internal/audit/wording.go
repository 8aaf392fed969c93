package audit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// num prints a number for a reader: as many digits as tell something.
func num(v float64) string {
	switch a := math.Abs(v); {
	case a == math.Round(a) && a < 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 1000:
		return group(strconv.FormatFloat(v, 'f', 0, 64))
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// group parts the digits of a whole number in threes.
func group(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// percent prints a share.
func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" }

// Lines writes line numbers: "line 4", "lines 4, 7 and 12".
func Lines(numbers []int) string {
	const most = 8
	var words []string
	for _, n := range numbers {
		words = append(words, strconv.Itoa(n))
	}
	if len(words) > most {
		words = append(words[:most-1:most-1], fmt.Sprintf("%d more", len(words)-most+1))
	}
	switch len(words) {
	case 0:
		return "no line"
	case 1:
		return "line " + words[0]
	}
	return "lines " + strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Counted writes a number with its noun.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// ShortList joins the first few of a list.
func ShortList(all []string) string {
	const most = 8
	if len(all) > most {
		return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", len(all)-most)
	}
	return strings.Join(all, ", ")
}

// BlocksRepeat writes how many blocks repeat.
func BlocksRepeat(n int) string {
	if n == 1 {
		return "one block repeats"
	}
	return fmt.Sprintf("%d blocks repeat", n)
}

// comma puts a comma before a text that is not empty.
func comma(text string) string {
	if text == "" {
		return ""
	}
	return ", " + text
}
