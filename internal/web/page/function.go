package page

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"perflab/internal/result"
)

// None stands for what is not known.
const None = "-"

// functions are those of all templates.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"asset":   p.o.Asset,
		"date":    Date,
		"instant": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"age":     func(t time.Time) string { return Age(now(), t) },
		"span":    result.SpanText,
		"size":    Size,
		"figure":  Figure,
		"unit":    unit,
		"label":   label,
		"about":   about,
		"percent": Percent,
		"plural":  Plural,
		"short":   Short,
		"none": func(s string) string {
			if s == "" {
				return None
			}
			return s
		},
		"join": strings.Join,
	}
}

// Date writes when something was, to the minute.
func Date(t time.Time) string {
	if t.IsZero() {
		return None
	}
	return t.UTC().Format("2006-01-02 15:04")
}

// Age says how long ago something was, in the largest unit that it fills.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return None
	}
	d := now.Sub(t)
	switch {
	case d < 0: // a clock of another machine
		return Date(t)
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return Plural(int(d/time.Minute), "minute") + " ago"
	case d < 24*time.Hour:
		return Plural(int(d/time.Hour), "hour") + " ago"
	case d < 60*24*time.Hour:
		return Plural(int(d/(24*time.Hour)), "day") + " ago"
	}
	return Plural(int(d/(30*24*time.Hour)), "month") + " ago"
}

// Size writes bytes.
func Size(n int64) string {
	if n < 1000 {
		return Plural(int(n), "byte")
	}
	v := float64(n)
	for _, unit := range []string{"KB", "MB", "GB"} {
		if v /= 1000; v < 1000 {
			return strconv.FormatFloat(v, 'f', 1, 64) + " " + unit
		}
	}
	return strconv.FormatFloat(v/1000, 'f', 1, 64) + " TB"
}

// Figure writes a figure by its row of the metric table, without its unit; None where there
// is none. values are by metric name.
func Figure(values map[string]float64, name string) string {
	v, ok := values[name]
	if !ok || math.IsNaN(v) {
		return None
	}
	m, err := result.Lookup(name)
	if err != nil {
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	return strconv.FormatFloat(v, 'f', m.Decimals, 64)
}

// label is what a metric is called in tables: that of the block.
func label(name string) string {
	m, err := result.Lookup(name)
	if err != nil {
		return name
	}
	return m.Label
}

// about is one sentence on a metric.
func about(name string) string {
	m, err := result.Lookup(name)
	if err != nil {
		return ""
	}
	return m.Doc
}

func unit(name string) string {
	m, err := result.Lookup(name)
	if err != nil {
		return ""
	}
	return m.Unit
}

// Percent writes a share or a change with its sign: +12.3 %.
func Percent(share float64) string {
	if math.IsNaN(share) {
		return None
	}
	return fmt.Sprintf("%+.1f %%", 100*share)
}

// Plural writes "1 run", "2 runs".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Short is the beginning of an identity: enough for the eye.
func Short(id string) string { return id[:min(len(id), 10)] }

// Capital begins a sentence.
func Capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
