// Package otlp has the spans of OpenTelemetry: it writes them in the JSON of its protocol
// (OTLP), reads them back from what collectors write, and has the trace context that a request
// carries to a server.
//
//	line := otlp.Append(nil, otlp.Source{Service: "perflab"}, spans)
//	for span, err := range otlp.Read(file) { ... }
//
// Invariants: what Append writes is one object on one line, as a collector's file exporter writes
// and its HTTP receiver takes; Read keeps of a span what is here and skips what it does not know.
//
// Deliberately absent: the protocol's library, whose modules are larger than all of this program's
// own code, gRPC, metrics and logs, links and events of spans.
package otlp

import (
	"encoding/json"
	"math"
	"strconv"
)

// Kind is the role of a span, by the protocol's numbers.
type Kind int

// The kinds in use.
const (
	Internal Kind = 1
	Server   Kind = 2
	Client   Kind = 3
)

// Span is a piece of work with its place in a trace. Times are nanoseconds since 1970.
type Span struct {
	TraceID, SpanID, Parent string // hexadecimal digits, lower case; no parent: ""
	Name                    string
	Kind                    Kind
	Start, End              int64
	Attrs                   []Attr
	Failed                  bool
	Message                 string // why it failed

	Service string // who made it: service.name; of spans that were read
}

// Attr is a named fact: a string, an int, an int64, a float64, a bool or a []string.
type Attr struct {
	Key   string
	Value any
}

// Source is who made spans.
type Source struct {
	Service, Version string
	Attrs            []Attr
}

// Number is the value of a numeric attribute. ok is false where there is none that is a number.
func (s *Span) Number(key string) (v float64, ok bool) {
	for _, a := range s.Attrs {
		if a.Key != key {
			continue
		}
		switch x := a.Value.(type) {
		case float64:
			return x, !math.IsNaN(x) && !math.IsInf(x, 0)
		case int64:
			return float64(x), true
		}
	}
	return 0, false
}

// Yes reports whether an attribute is true.
func (s *Span) Yes(key string) bool {
	for _, a := range s.Attrs {
		if yes, ok := a.Value.(bool); a.Key == key && ok {
			return yes
		}
	}
	return false
}

// Append appends spans of one source as one object, without a newline.
func Append(dst []byte, from Source, spans []Span) []byte {
	who := append([]Attr{{"service.name", from.Service}, {"service.version", from.Version}}, from.Attrs...)
	dst = append(dst, `{"resourceSpans":[{"resource":{"attributes":`...)
	dst = append(appendAttrs(dst, who), `},"scopeSpans":[{"scope":{"name":`...)
	dst = append(appendText(dst, from.Service), `},"spans":[`...)
	for i := range spans {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = spans[i].append(dst)
	}
	return append(dst, `]}]}]}`...)
}

func (s *Span) append(dst []byte) []byte {
	dst = appendText(append(dst, `{"traceId":`...), s.TraceID)
	dst = appendText(append(dst, `,"spanId":`...), s.SpanID)
	if s.Parent != "" {
		dst = appendText(append(dst, `,"parentSpanId":`...), s.Parent)
	}
	dst = appendText(append(dst, `,"name":`...), s.Name)
	dst = strconv.AppendInt(append(dst, `,"kind":`...), int64(s.Kind), 10)
	// Numbers of 64 bits are strings, since not every reader of JSON keeps them.
	dst = strconv.AppendInt(append(dst, `,"startTimeUnixNano":"`...), s.Start, 10)
	dst = strconv.AppendInt(append(dst, `","endTimeUnixNano":"`...), s.End, 10)
	dst = appendAttrs(append(dst, `","attributes":`...), s.Attrs)
	if s.Failed {
		dst = appendText(append(dst, `,"status":{"code":2,"message":`...), s.Message)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendAttrs leaves out texts that are empty: nothing is known there.
func appendAttrs(dst []byte, attrs []Attr) []byte {
	dst = append(dst, '[')
	for _, a := range attrs {
		if a.Value == "" {
			continue
		}
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, `{"key":`...), a.Key)
		dst = append(appendValue(append(dst, `,"value":`...), a.Value), '}')
	}
	return append(dst, ']')
}

func appendValue(dst []byte, v any) []byte {
	switch x := v.(type) {
	case string:
		dst = appendText(append(dst, `{"stringValue":`...), x)
	case int:
		return appendValue(dst, int64(x))
	case int64:
		dst = append(strconv.AppendInt(append(dst, `{"intValue":"`...), x, 10), '"')
	case float64:
		dst = strconv.AppendFloat(append(dst, `{"doubleValue":`...), x, 'g', -1, 64)
	case bool:
		dst = strconv.AppendBool(append(dst, `{"boolValue":`...), x)
	case []string:
		dst = append(dst, `{"arrayValue":{"values":[`...)
		for i, s := range x {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, s)
		}
		dst = append(dst, `]}`...)
	default:
		panic("otlp: an attribute of a type that is not written") // ours, and none of a user's
	}
	return append(dst, '}')
}

func appendText(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("otlp: " + err.Error()) // a string can be marshalled
	}
	return append(dst, b...)
}
