package interop

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"perflab/internal/result"
)

// reading is a run while it is read from an object.
type reading struct {
	run    Run
	faults []Fault
	names  map[string]bool // of the figures
	exact  bool            // the writer prints every number in full

	derived string // the figure that is made of two instants, whose half is its own
}

// newReading returns a run without figures that stands at the object's place.
func newReading(o object, client, format string) *reading {
	return &reading{
		run: Run{
			Place: o.place(),
			Header: result.Header{Schema: "perflab.run/1", Imported: &result.Imported{
				Client: client, Format: format, File: path.Base(o.file), Line: o.line, End: o.end, Labels: result.Labels{},
			}},
			Defs: map[string]result.Definition{},
		},
		names: map[string]bool{},
	}
}

// fullDecimals is how many decimals no one rounds to: where one figure has as
// many, the file has all its numbers in full.
const fullDecimals = 8

// done returns what a reader returns.
func (r *reading) done() ([]Run, []Fault) {
	figures := r.run.Figures
	full := r.exact || slices.ContainsFunc(figures, func(f Figure) bool {
		_, decimals, _ := strings.Cut(f.Text, ".")
		return len(decimals) >= fullDecimals
	})
	for i := range figures {
		if f := &figures[i]; full && f.Half > 0 && f.Name != r.derived {
			f.Half = 1e-12 * math.Abs(f.Value) // what arithmetic leaves
		}
	}
	r.faults = append(r.faults, r.run.dropUnmeasured()...)
	return []Run{r.run}, r.faults
}

// faultf adds a fault at a line of the object's file.
func (r *reading) faultf(line int, format string, args ...any) {
	r.faults = append(r.faults, Fault{Place: Place{File: r.run.Place.File, Line: line}, Text: fmt.Sprintf(format, args...)})
}

// labels returns the run's labels.
func (r *reading) labels() result.Labels { return r.run.Header.Imported.Labels }

// figure adds a figure under the name of a metric of ours, the file's number
// times scale. A name that is there already, or that is none of ours, makes
// another line of it; null is absent; what is no number is a fault.
func (r *reading) figure(name, label string, m member, scale float64) {
	if null(m.raw) {
		return
	}
	metric, err := result.Lookup(name)
	if err != nil || r.names[metric.Name] {
		r.other(label, m)
		return
	}
	v, err := jsonNumber(m.raw)
	if err == nil && math.IsInf(v*scale, 0) {
		err = errTooLarge
	}
	if err != nil {
		r.faultf(m.line, "%s %v: it is read as missing", label, err)
		return
	}
	text := string(m.raw)
	half := halfDigit(text)
	if slices.Contains([]string{"requests", "tokens", "chunks"}, metric.Unit) && v == math.Trunc(v) || math.IsInf(half*scale, 0) {
		half = 0
	}
	r.names[metric.Name] = true
	r.run.Figures = append(r.run.Figures, Figure{
		Name: metric.Name, Label: label, Text: text, Value: v * scale, Half: half * scale, Line: m.line,
	})
}

// longList is how many elements of a list are shown as they are.
const longList = 16

// flatDepth is how deep values are taken apart: each step looks at all that is
// below it.
const flatDepth = 10

// flat yields what a value holds, each under its path: objects are taken apart
// down to those that hold values alone, which stay whole, as lists do.
func flat(label string, m member, yield func(label, text string, line int)) {
	flatTo(flatDepth, label, m, yield)
}

func flatTo(depth int, label string, m member, yield func(label, text string, line int)) {
	switch {
	case null(m.raw):
		return
	case depth == 0 && (m.raw[0] == '{' || m.raw[0] == '['):
		yield(label, compact(m.raw), m.line)
	case m.raw[0] == '{':
		nested, n := false, 0
		for inner := range items(m.raw, m.line) {
			n++
			nested = nested || len(inner.raw) > 0 && (inner.raw[0] == '{' || inner.raw[0] == '[')
		}
		if n == 0 {
			return
		}
		if !nested {
			yield(label, compact(m.raw), m.line)
			return
		}
		for inner := range items(m.raw, m.line) {
			flatTo(depth-1, label+"."+inner.key, inner, yield)
		}
	case m.raw[0] == '[':
		n, objects := 0, 0
		for inner := range items(m.raw, m.line) {
			if n++; inner.raw[0] == '{' {
				objects++
			}
		}
		switch {
		case n == 0:
		case n > longList:
			yield(label, fmt.Sprintf("a list of %d", n), m.line)
		case objects == 0:
			yield(label, compact(m.raw), m.line)
		default:
			i := 0
			for inner := range items(m.raw, m.line) {
				flatTo(depth-1, fmt.Sprintf("%s[%d]", label, i), inner, yield)
				i++
			}
		}
	default:
		yield(label, plain(m.raw), m.line)
	}
}

// other keeps what is no figure of ours.
func (r *reading) other(label string, m member) {
	flat(label, m, func(label, text string, line int) {
		r.run.Other = append(r.run.Other, Pair{label, text, line})
	})
}

// rest keeps the members of an object but for some.
func (r *reading) rest(label string, m member, but ...string) {
	rest := []byte{'{'}
	for inner := range items(m.raw, m.line) {
		if slices.Contains(but, inner.key) {
			continue
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		key, _ := json.Marshal(inner.key)
		rest = append(append(append(rest, key...), ':'), inner.raw...)
	}
	r.other(label, member{label, append(rest, '}'), m.line})
}

// label keeps configuration. What looks like a secret is not kept.
func (r *reading) label(key string, m member) {
	flat(key, m, func(key, text string, _ int) {
		lower := strings.ToLower(key)
		for _, secret := range []string{"api_key", "apikey", "password", "secret", "hf_token", "authorization"} {
			if strings.Contains(lower, secret) {
				text = "***"
			}
		}
		r.labels()[key] = text
	})
}

// rate takes the request rate: a number, or a word such as "inf" or "trace".
func (r *reading) rate(m member) {
	if null(m.raw) {
		return
	}
	r.labels()[result.LabelRate] = plain(m.raw)
	if v, err := jsonNumber(m.raw); err == nil && v > 0 {
		r.run.Header.Rate = v
		r.figure("request_rate", m.key, m, 1)
	}
}

// limit takes the bound on calls in flight; null where there was none.
func (r *reading) limit(m member) {
	if null(m.raw) {
		r.labels()[result.LabelLimit] = "none"
		return
	}
	if v, ok := r.count(m); ok && v > 0 {
		r.run.Header.Limit = v
		r.figure("max_concurrency", m.key, m, 1)
	}
}

// maxCount bounds what a file may say it sent.
const maxCount = 1 << 40

// count returns a whole number; ok is false for null, and after a fault.
func (r *reading) count(m member) (n int, ok bool) {
	if null(m.raw) {
		return 0, false
	}
	v, err := jsonNumber(m.raw)
	if err != nil {
		r.faultf(m.line, "%s %v: it is read as missing", m.key, err)
		return 0, false
	}
	if v < 0 || v > maxCount || v != math.Trunc(v) {
		r.faultf(m.line, "%s is %s, which is no count: it is read as missing", m.key, m.raw)
		return 0, false
	}
	return int(v), true
}

// started takes the instant of the run in one of the layouts that clients use.
func (r *reading) started(m member) {
	if null(m.raw) {
		return
	}
	text := plain(m.raw)
	for _, layout := range []string{"20060102-150405", "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			r.run.Header.Started = t
			return
		}
	}
	r.faultf(m.line, "%s %q is no date that is known here: it is read as missing", m.key, text)
}
