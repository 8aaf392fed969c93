package filter

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"perflab/internal/expression"
	"perflab/internal/result"
	"perflab/internal/stat"
)

// Error is what is wrong with an expression.
type Error struct {
	At   int // character, from 1
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("filter, character %d: %s", e.At, e.Text) }

// Filter is an expression that was read.
type Filter struct{ terms []term }

// term is one thing that must hold.
type term struct {
	word  string // that stands somewhere; "": a comparison
	field Field
	op    string
	texts []string // of texts and choices, in lower case; any may hold
	from  float64  // of numbers, times and spans
	until float64  // of a day: it is from from up to here
	span  bool     // until is given
	yes   bool
}

// Bounds of an expression: what a page can ask for.
const (
	mostLength = 4096
	mostTerms  = 64
)

// Parse reads an expression; an empty one holds for all. now is what ages are counted from, and its
// zone is that of days.
func Parse(text string, now time.Time) (*Filter, error) {
	if len(text) > mostLength {
		return nil, &Error{mostLength + 1, fmt.Sprintf("an expression has at most %d characters", mostLength)}
	}
	f := &Filter{}
	err := each(text, now, func(_ string, t []term) { f.terms = append(f.terms, t...) })
	if err != nil {
		return nil, err
	}
	return f, nil
}

// each reads the parts of an expression, and gives each as it was written and as what must hold.
func each(text string, now time.Time, take func(written string, t []term)) error {
	r := &reader{text: []rune(text), now: now}
	for n := 0; ; {
		r.skip(" \t\n\r,")
		if r.at == len(r.text) {
			return nil
		}
		begin := r.at
		t, err := r.term()
		if err != nil {
			return err
		}
		if n == mostTerms {
			return r.errorf(r.at, "an expression has at most %d parts", mostTerms)
		}
		if len(t) > 0 { // else it is "and"
			n++
			take(string(r.text[begin:r.at]), t)
		}
	}
}

// Empty reports whether the filter holds for all.
func (f *Filter) Empty() bool { return f == nil || len(f.terms) == 0 }

type reader struct {
	text []rune
	at   int
	now  time.Time
}

func (r *reader) errorf(at int, format string, args ...any) error {
	return &Error{at + 1, fmt.Sprintf(format, args...)}
}

func (r *reader) skip(set string) {
	for r.at < len(r.text) && strings.ContainsRune(set, r.text[r.at]) {
		r.at++
	}
}

const space = " \t\n\r"

func isName(c rune) bool {
	return c == '_' || c == '.' || unicode.IsLetter(c) || unicode.IsDigit(c)
}

// term reads a comparison, a preset of SLOs, or a word; nothing of "and".
func (r *reader) term() ([]term, error) {
	begin := r.at
	for r.at < len(r.text) && isName(r.text[r.at]) {
		r.at++
	}
	name := string(r.text[begin:r.at])
	end := r.at
	r.skip(space)
	if op := r.op(); op != "" {
		return r.comparison(name, op, begin)
	}
	r.at = end
	if name == "mlperf" && r.at < len(r.text) && r.text[r.at] == ':' {
		return r.preset(begin)
	}
	r.at = begin
	word, err := r.value()
	if err != nil {
		return nil, err
	}
	switch strings.ToLower(word) {
	case "and", "&&":
		return nil, nil
	case "or", "||", "not":
		return nil, r.errorf(begin, "there is no %q here, all parts must hold: write several values of one fact as engine=vllm|sglang, and what must not be as engine!=vllm", word)
	case "":
		return nil, r.errorf(begin, "%q begins no comparison and no word: write it as engine=vllm or p99_ttft_ms<=200", string(r.text[begin]))
	}
	return []term{{word: strings.ToLower(strings.ReplaceAll(word, "\x00", ""))}}, nil
}

// ops are the signs, longest first.
var ops = []string{"<=", ">=", "!=", "=~", "!~", "==", "<", ">", "="}

func (r *reader) op() string {
	for _, op := range ops {
		if strings.HasPrefix(string(r.text[r.at:min(len(r.text), r.at+2)]), op) {
			r.at += len(op)
			if op == "==" {
				return "="
			}
			return op
		}
	}
	return ""
}

// value reads what stands in quotes, or up to a comma or a space.
func (r *reader) value() (string, error) {
	r.skip(space)
	if r.at < len(r.text) && (r.text[r.at] == '"' || r.text[r.at] == '\'') {
		quote, begin := r.text[r.at], r.at
		i := slices.Index(r.text[begin+1:], quote)
		if i < 0 {
			return "", r.errorf(begin, "the quote %c is not closed", quote)
		}
		r.at = begin + i + 2
		return string(r.text[begin+1 : begin+1+i]), nil
	}
	begin := r.at
	for r.at < len(r.text) && r.text[r.at] != ',' && !unicode.IsSpace(r.text[r.at]) {
		r.at++
	}
	return string(r.text[begin:r.at]), nil
}

// units may stand apart from their number: "p99_ttft_ms <= 500 ms".
var units = []string{"ms", "s", "m", "h", "d", "%", "tok/s", "req/s", "tokens", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"}

// number reads a value and the unit that may follow it.
func (r *reader) number() (string, error) {
	v, err := r.value()
	if _, bad := strconv.ParseFloat(v, 64); err != nil || bad != nil {
		return v, err
	}
	after := r.at
	if unit, err := r.value(); err == nil && slices.Contains(units, unit) {
		return v + unit, nil
	}
	r.at = after
	return v, nil
}

func (r *reader) comparison(name, op string, begin int) ([]term, error) {
	if name == "" {
		return nil, r.errorf(begin, "%s has no name before it: write it as p99_ttft_ms<=200", op)
	}
	f, wrong := find(strings.ToLower(name))
	if wrong != "" {
		if strings.HasPrefix(wrong, "did") {
			wrong = fmt.Sprintf("there is no fact or figure %q: %s", name, wrong)
		}
		return nil, r.errorf(begin, "%s", wrong)
	}
	r.skip(space)
	at := r.at
	v, err := r.number()
	if err != nil {
		return nil, err
	}
	t := term{field: f, op: op}
	if v == "" && at == r.at {
		return nil, r.errorf(at, "%s%s has no value: write it as %s%s%s", name, op, name, op, f.example())
	}
	if why := t.take(v, r.now); why != "" {
		return nil, r.errorf(at, "%s", why)
	}
	return []term{t}, nil
}

// preset reads the bounds that a name stands for, as an SLO has them.
func (r *reader) preset(begin int) ([]term, error) {
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	slos, err := result.ParseSLOs("mlperf" + v)
	if err != nil {
		return nil, r.errorf(begin, "%v", err)
	}
	var out []term
	for _, o := range slos {
		f, _ := find(o.Metric)
		out = append(out, term{field: f, op: o.Op, from: o.Limit})
	}
	return out, nil
}

func (f Field) example() string {
	switch f.Type {
	case Choice:
		return f.Values[0]
	case Bool:
		return "true"
	case Time:
		return "2026-11-01"
	case Age, Seconds:
		return "7d"
	case Size:
		return "10MB"
	case Number:
		return "100"
	}
	return "WORD"
}

// take reads the value of a comparison; why says what is wrong with it.
func (t *term) take(v string, now time.Time) (why string) {
	text := t.op == "=~" || t.op == "!~"
	ordered := strings.ContainsAny(t.op, "<>")
	switch f := t.field; f.Type {
	case Text, Choice:
		if ordered {
			return fmt.Sprintf("%s is a text, which is compared by = != =~ (contains) and !~", f.Name)
		}
		return t.takeTexts(v)
	case Bool:
		if t.op != "=" && t.op != "!=" {
			return fmt.Sprintf("%s is true or false: write it as %s=true", f.Name, f.Name)
		}
		var ok bool
		if t.yes, ok = truth(v); !ok {
			return fmt.Sprintf("%q is neither true nor false", v)
		}
	default:
		if text {
			return fmt.Sprintf("%s is a number, which is compared by < <= = != >= and >", f.Name)
		}
		return t.takeNumber(v, now)
	}
	return ""
}

func truth(v string) (yes, ok bool) {
	switch strings.ToLower(v) {
	case "true", "yes", "1":
		return true, true
	case "false", "no", "0":
		return false, true
	}
	return false, false
}

// None is what stands for a fact that an entry does not have.
const None = "none"

func (t *term) takeTexts(v string) (why string) {
	for part := range strings.SplitSeq(v, "|") {
		part = lower(strings.ReplaceAll(part, "\x00", ""))
		if part == None && (t.op == "=" || t.op == "!=") {
			part = ""
		}
		if f := t.field; f.Type == Choice && part != "" && !strings.Contains(t.op, "~") && !slices.Contains(f.Values, part) {
			why = fmt.Sprintf("%q is no %s: use %s", part, f.Name, strings.Join(f.Values, ", "))
			if near := stat.Nearest(part, f.Values); near != "" {
				why = fmt.Sprintf("%q is no %s: did you mean %s?", part, f.Name, near)
			}
			return why
		}
		t.texts = append(t.texts, part)
	}
	return ""
}

// lower is what lower() of both databases is: of ASCII alone.
func lower(s string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

func (t *term) takeNumber(v string, now time.Time) (why string) {
	var err error
	switch f := t.field; f.Type {
	case Number:
		t.from, err = expression.Limit(v, f.unit)
		if err == nil && f.unit == "" && !finite(v) {
			err = fmt.Errorf("%q is no number", v)
		}
	case Size:
		t.from, err = parseSize(v)
	case Seconds:
		t.from, err = parseSpan(v)
	case Age:
		var span float64
		span, err = parseSpan(v)
		t.from = float64(now.Add(-time.Duration(span * float64(time.Second))).UnixMilli())
		t.op = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}[t.op]
		if err == nil && t.op == "" {
			err = fmt.Errorf("an age is compared by < and >: age<7d")
		}
	case Time:
		t.from, t.until, t.span, err = parseTime(v, now.Location())
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func finite(v string) bool {
	x, err := strconv.ParseFloat(v, 64)
	return err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
}

// scaled reads a number that may have one of these units.
func scaled(v string, units map[string]float64) (float64, bool) {
	i := strings.LastIndexAny(v, "0123456789.") + 1
	factor, ok := units[strings.TrimSpace(v[i:])]
	x, err := strconv.ParseFloat(strings.TrimSpace(v[:i]), 64)
	return x * factor, ok && err == nil && x >= 0 && x*factor < 1e15
}

func parseSize(v string) (float64, error) {
	x, ok := scaled(v, map[string]float64{"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40})
	if !ok {
		return 0, fmt.Errorf("%q is no size: write it as 10MB or 2GiB", v)
	}
	return x, nil
}

func parseSpan(v string) (float64, error) {
	x, ok := scaled(v, map[string]float64{"": 1, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400})
	if !ok || x > 1e10 {
		return 0, fmt.Errorf("%q is no span of time: write it as 90s, 5m, 2h or 7d", v)
	}
	return x, nil
}

// parseTime reads a day, a minute or an instant: the first and the last millisecond of it.
func parseTime(v string, zone *time.Location) (from, until float64, span bool, err error) {
	for _, l := range []struct {
		layout string
		length time.Duration
	}{{"2006", 0}, {"2006-01", 0}, {time.DateOnly, 0}, {"2006-01-02T15:04", time.Minute}, {"2006-01-02T15:04:05", time.Second}, {time.RFC3339, time.Second}} {
		at, err := time.ParseInLocation(l.layout, v, zone)
		if err != nil {
			continue
		}
		end := at.Add(l.length)
		switch l.layout {
		case "2006":
			end = at.AddDate(1, 0, 0)
		case "2006-01":
			end = at.AddDate(0, 1, 0)
		case time.DateOnly:
			end = at.AddDate(0, 0, 1)
		}
		return float64(at.UnixMilli()), float64(end.UnixMilli()), true, nil
	}
	return 0, 0, false, fmt.Errorf("%q is no time: write it as 2026-11-01 or 2026-11-01T14:30", v)
}
