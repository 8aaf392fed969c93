package document

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"perflab/internal/audit"
)

// unit of a number in a text. Times are held in milliseconds.
type unit string

const (
	bare      unit = ""
	msec      unit = "ms"
	perSec    unit = "tok/s"
	reqSec    unit = "req/s"
	inPercent unit = "%"
	asFactor  unit = "x"
)

// quantity is a number as a text has it.
type quantity struct {
	Text       string // with its sign and unit: "~9k tok/s"
	Value      float64
	Half       float64 // half a unit of its last digit
	Unit       unit
	Scale      float64 // of the unit as printed: 1000 for seconds
	Digits     int     // significant ones
	Approx     bool    // marked by ~, ≈ or a word
	Signed     bool
	Times      int // "3019.19x2"; 1 without
	Start, End int // bytes of its line
}

// lo and hi bound the values that print as the quantity.
func (q quantity) lo() float64 { return q.Value - q.half() }
func (q quantity) hi() float64 { return q.Value + q.half() }

// interval is every value that prints as the quantity.
func (q quantity) interval() audit.Interval { return audit.Between(q.lo(), q.hi()) }

// half is half a unit of the last digit; who writes "about" means a whole one.
func (q quantity) half() float64 {
	if q.Approx {
		return 2 * q.Half
	}
	return q.Half
}

// quantities finds the numbers of a line that stand alone or with a unit that
// is known here; numbers within names (H100, FP8, v0.11.0, 235B) are none.
func quantities(s string) []quantity {
	var out []quantity
	for i := 0; i < len(s); {
		if !isDigit(s[i]) {
			i++
			continue
		}
		q, end, ok := quantityAt(s, i)
		if ok {
			out = append(out, q)
		}
		i = max(end, i+1)
	}
	return out
}

// mostDigits is how many digits a float64 holds: a longer number is a name.
const mostDigits = 15

// quantityAt reads the number that begins at s[i], and says where it ends even
// if it is none of ours.
func quantityAt(s string, i int) (quantity, int, bool) {
	end, digits, decimals := i, 0, -1
	for end < len(s) {
		c := s[end]
		switch {
		case isDigit(c):
			digits++
			if decimals >= 0 {
				decimals++
			}
		case c == '.' && decimals < 0 && end+1 < len(s) && isDigit(s[end+1]):
			decimals = 0
		case c == ',' && decimals < 0 && groupOfThree(s[end+1:]):
		default:
			goto done
		}
		end++
	}
done:
	whole := end
	for whole < len(s) && (isWord(s[whole]) || s[whole] == '.' && whole+1 < len(s) && isWord(s[whole+1])) {
		whole++
	}
	start, signed, ok := numberStart(s, i)
	if !ok || digits > mostDigits {
		return quantity{}, whole, false
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(s[i:end], ",", ""), 64)
	if err != nil {
		return quantity{}, whole, false
	}
	q := quantity{Value: v, Half: 0.5 * math.Pow10(-max(decimals, 0)), Scale: 1, Digits: len(strings.TrimLeft(strings.NewReplacer(".", "", ",", "").Replace(s[i:end]), "0")),
		Signed: signed, Times: 1, Start: start, End: end}
	if !q.suffix(s) {
		return quantity{}, whole, false
	}
	if signed && s[start] != '+' {
		q.Value = -q.Value
	}
	q.Approx = approximate(s[:start])
	q.Text = strings.TrimSpace(s[q.Start:q.End])
	return q, q.End, true
}

// numberStart looks at what stands before a number at s[i]: where its sign begins,
// and whether the number is one at all and not the end of a name.
func numberStart(s string, i int) (start int, signed, ok bool) {
	if i == 0 {
		return 0, false, true
	}
	c := s[i-1]
	if c == '+' || c == '-' {
		if i >= 2 && (isWord(s[i-2]) || s[i-2] == '-' || s[i-2] == ')') {
			return i, false, c == '+' && s[i-2] != '-'
		}
		return i - 1, true, true
	}
	if strings.HasSuffix(s[:i], "−") {
		return i - len("−"), true, true
	}
	return i, false, !isWord(c) && c != '.' && c != '/' && c != '_' && c != '@' && c != '#'
}

// suffix reads what stands behind the digits: thousands, "x2", a unit. It is
// false where letters follow that are none of these.
func (q *quantity) suffix(s string) bool {
	rest := s[q.End:]
	if len(rest) > 0 && (rest[0] == 'k' || rest[0] == 'K') && !wordAt(rest, 1) {
		q.scale(1000)
		rest = rest[1:]
	}
	if n, size := multiplier(rest); n > 0 {
		q.Times = n
		rest = rest[size:]
	}
	after := strings.TrimLeft(rest, " ")
	for _, u := range units() {
		if !strings.HasPrefix(strings.ToLower(after[:min(len(after), len(u.text))]), u.text) || u.text != "%" && wordAt(after, len(u.text)) {
			continue
		}
		if len(after) != len(rest) && u.unit == asFactor {
			continue // "2 x 8"
		}
		q.Unit = u.unit
		q.scale(u.scale)
		q.Scale = u.scale
		q.End = len(s) - len(after) + len(u.text)
		return true
	}
	q.End = len(s) - len(rest)
	return !wordAt(rest, 0)
}

// scale multiplies the quantity.
func (q *quantity) scale(by float64) { q.Value, q.Half = q.Value*by, q.Half*by }

// spelling is a unit as texts have it.
type spelling struct {
	text  string
	unit  unit
	scale float64
}

// units lists the units that are known, the longer spelling first where one
// begins with the other.
func units() []spelling {
	return []spelling{
		{"tokens/second", perSec, 1}, {"tokens/sec", perSec, 1}, {"tokens/s", perSec, 1}, {"tok/sec", perSec, 1}, {"tok/s", perSec, 1}, {"t/s", perSec, 1}, {"tps", perSec, 1},
		{"req/s", reqSec, 1}, {"rps", reqSec, 1}, {"s/req", msec, 1000}, {"seconds", msec, 1000}, {"sec", msec, 1000}, {"ms", msec, 1}, {"s", msec, 1000},
		{"%", inPercent, 1}, {"×", asFactor, 1}, {"x", asFactor, 1},
	}
}

// multiplier reads "x2", which stands directly behind a number.
func multiplier(s string) (n, size int) {
	for _, x := range []string{"x", "×", " x ", " × "} {
		rest, ok := strings.CutPrefix(s, x)
		if !ok || len(rest) == 0 || rest[0] < '2' || rest[0] > '9' || wordAt(rest, 1) || strings.HasPrefix(rest[1:], ".") {
			continue
		}
		return int(rest[0] - '0'), len(x) + 1
	}
	return 0, 0
}

// approximate reports whether a text ends in a mark or word that makes the
// number behind it approximate.
func approximate(s string) bool {
	s = strings.TrimRight(s, " ")
	for _, m := range []string{"~", "≈", "∼", "about", "around", "roughly", "approximately", "nearly", "almost", "over", "up to", "approx.", "some", "circa"} {
		if strings.HasSuffix(strings.ToLower(s[max(0, len(s)-len(m)):]), m) {
			return !unicode.IsLetter(rune(m[0])) || len(s) == len(m) || !isWord(s[len(s)-len(m)-1])
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWord reports whether a byte is of a name.
func isWord(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }

// wordAt reports whether a letter or digit stands at s[i].
func wordAt(s string, i int) bool {
	if i >= len(s) {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// groupOfThree reports whether three digits and no fourth follow a comma.
func groupOfThree(s string) bool {
	return len(s) >= 3 && isDigit(s[0]) && isDigit(s[1]) && isDigit(s[2]) && (len(s) == 3 || !isDigit(s[3]))
}
