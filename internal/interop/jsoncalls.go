package interop

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/result"
)

// longest is the longest span of time that a run may have.
const longest = 1e8 // s

// span returns seconds as a duration, to the nanosecond.
func span(seconds float64) (d time.Duration, ok bool) {
	if !(seconds >= 0 && seconds <= longest) {
		return 0, false
	}
	return time.Duration(math.Round(seconds * 1e9)), true
}

// column is a list of numbers, one a request; NaN where there is none.
type column []float64

// has reports whether there is a number for request i.
func (c column) has(i int) bool { return i < len(c) && !math.IsNaN(c[i]) }

// wholeAt returns the number of request i as a count, 0 for none.
func (c column) wholeAt(i int) int {
	if !c.has(i) || c[i] < 0 || c[i] > maxCount {
		return 0
	}
	return int(c[i])
}

// numbers reads a list of numbers. What is none is a fault, told once.
func (r *reading) numbers(m member) column {
	out := column{}
	wrong, first, line := 0, "", 0
	for inner := range items(m.raw, m.line) {
		v, err := math.NaN(), error(nil)
		if !null(inner.raw) {
			if v, err = jsonNumber(inner.raw); err != nil {
				if v = math.NaN(); wrong == 0 {
					first, line = fmt.Sprintf("%s[%d] %v", m.key, len(out), err), inner.line
				}
				wrong++
			}
		}
		out = append(out, v)
	}
	if wrong > 0 {
		r.faultf(line, "%s: it is read as missing, as %d in all", first, wrong)
	}
	return out
}

// lists reads a list of lists of numbers.
func (r *reading) lists(m member) []column {
	out := []column{}
	for inner := range items(m.raw, m.line) {
		if k := kind(inner.raw); k != "a list" && k != "null" {
			r.faultf(inner.line, "%s[%d] is %s where a list should be: it is read as empty", m.key, len(out), k)
		}
		inner.key = fmt.Sprintf("%s[%d]", m.key, len(out))
		out = append(out, r.numbers(inner))
	}
	return out
}

// texts reads a list of strings.
func (r *reading) texts(m member) []string {
	out := []string{}
	for inner := range items(m.raw, m.line) {
		text := ""
		if !null(inner.raw) {
			text = string(inner.raw)
			if kind(inner.raw) == "text" {
				text = unquoted(inner.raw)
			}
		}
		out = append(out, text)
	}
	return out
}

// gapChunks returns one chunk for each message: the first at an instant, each
// other one a gap in seconds after the one before.
func gapChunks(first time.Duration, gaps column) ([]result.Chunk, error) {
	chunks := []result.Chunk{{At: first, Tokens: 1}}
	for i, gap := range gaps {
		if math.IsNaN(gap) {
			return nil, fmt.Errorf("gap %d is missing", i)
		}
		d, ok := span(gap)
		if first += d; !ok || first < 0 || first > longest*time.Second {
			return nil, fmt.Errorf("gap %d is %v s", i, gap)
		}
		chunks = append(chunks, result.Chunk{At: first, Tokens: 1, Read: int32(i + 1)})
	}
	return chunks, nil
}

// failed returns what went wrong with a request: a text, or an object that has
// what it was and a message.
func failed(failure member, what, message string) (string, result.Class) {
	text := plain(failure.raw)
	if kind(failure.raw) == "an object" {
		a, _ := at(failure, what)
		b, _ := at(failure, message)
		text = strings.Trim(textOf(a)+": "+lastLine(textOf(b)), ": ")
	}
	return short(text), classOf(text)
}

// classOf returns the class of a failure that a client tells in words.
func classOf(text string) result.Class {
	lower := strings.ToLower(text)
	for _, c := range []struct {
		class result.Class
		words []string
	}{
		{result.Cancelled, []string{"cancel"}},
		{result.TimeoutTotal, []string{"timeout", "timed out"}},
		{result.Connect, []string{"cannot connect", "connection refused", "connectorerror", "name or service", "connecterror", "could not connect", "dns error", "ssl"}},
		{result.EarlyClose, []string{"disconnected", "connection reset", "payload", "incomplete", "closed", "broken pipe"}},
		{result.ZeroTokens, []string{"never received a valid chunk", "no content", "empty response", "no tokens", "invalidinferenceresult"}},
		{result.BadBody, []string{"jsondecode", "keyerror", "not valid json", "expecting value"}},
	} {
		if slices.ContainsFunc(c.words, func(w string) bool { return strings.Contains(lower, w) }) {
			return c.class
		}
	}
	if strings.Contains(text, "Traceback") || strings.Contains(lower, "stream") {
		return result.StreamError
	}
	return result.HTTPStatus // what is left are the reason phrases of answers that were refused
}

// lastLine returns the line of an error that says what happened: of a Python
// traceback the last one.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return short(strings.TrimSpace(lines[len(lines)-1]))
}
