package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
)

// request is what a collector's file has on each line. In the protocol's JSON names may be in
// either of two spellings; the files that are in use have this one.
type request struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []attribute }
		ScopeSpans []struct{ Spans []span }
	}
}

type span struct {
	TraceID      id `json:"traceId"`
	SpanID       id `json:"spanId"`
	ParentSpanID id `json:"parentSpanId"`
	Name         string
	Kind         kind
	Start        number `json:"startTimeUnixNano"`
	End          number `json:"endTimeUnixNano"`
	Attributes   []attribute
	Status       struct {
		Code    status
		Message string
	}
}

type attribute struct {
	Key   string
	Value struct {
		StringValue *string
		IntValue    *number
		DoubleValue *double
		BoolValue   *bool
	}
}

// Read yields the spans of a stream of objects, one a line or not. An error is the last that it
// yields, and says in which object it is.
func Read(r io.Reader) iter.Seq2[Span, error] {
	return func(yield func(Span, error) bool) {
		d := json.NewDecoder(r)
		for n := 1; ; n++ {
			var q request
			err := d.Decode(&q)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Span{}, fmt.Errorf("object %d is no OTLP/JSON: %w", n, err))
				return
			}
			if !q.each(yield) {
				return
			}
		}
	}
}

// each yields the spans of one object; false: nobody wants more.
func (q *request) each(yield func(Span, error) bool) bool {
	for _, r := range q.ResourceSpans {
		var from Span
		from.take(r.Resource.Attributes)
		for _, scope := range r.ScopeSpans {
			for i := range scope.Spans {
				s := scope.Spans[i].plain()
				for _, a := range from.Attrs {
					if name, ok := a.Value.(string); ok && a.Key == "service.name" {
						s.Service = name
					}
				}
				s.Attrs = append(s.Attrs, from.Attrs...)
				if !yield(s, nil) {
					return false
				}
			}
		}
	}
	return true
}

func (s *span) plain() Span {
	out := Span{
		TraceID: string(s.TraceID), SpanID: string(s.SpanID), Parent: string(s.ParentSpanID), Name: s.Name, Kind: Kind(s.Kind),
		Start: int64(s.Start), End: int64(s.End), Failed: s.Status.Code == 2, Message: s.Status.Message,
	}
	out.take(s.Attributes)
	return out
}

// take keeps the attributes that are of a type that is known here.
func (s *Span) take(attrs []attribute) {
	for _, a := range attrs {
		switch v := a.Value; {
		case v.StringValue != nil:
			s.Attrs = append(s.Attrs, Attr{a.Key, *v.StringValue})
		case v.IntValue != nil:
			s.Attrs = append(s.Attrs, Attr{a.Key, int64(*v.IntValue)})
		case v.DoubleValue != nil:
			s.Attrs = append(s.Attrs, Attr{a.Key, float64(*v.DoubleValue)})
		case v.BoolValue != nil:
			s.Attrs = append(s.Attrs, Attr{a.Key, *v.BoolValue})
		}
	}
}

// number is an integer, as such or as a string.
type number int64

// UnmarshalJSON reads both forms.
func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(unquoted(b), 10, 64)
	*n = number(v)
	return err
}

// double is a number, or a string that names one, as the protocol writes NaN.
type double float64

// UnmarshalJSON reads both forms.
func (d *double) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(unquoted(b), 64)
	*d = double(v)
	return err
}

// kind and status are numbers, or the names that some writers have for them.
type (
	kind   Kind
	status int
)

// UnmarshalJSON reads both forms.
func (k *kind) UnmarshalJSON(b []byte) error {
	return enum(k, b, "SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER", "SPAN_KIND_CLIENT")
}

// UnmarshalJSON reads both forms.
func (s *status) UnmarshalJSON(b []byte) error {
	return enum(s, b, "STATUS_CODE_OK", "STATUS_CODE_ERROR")
}

// enum reads a number, or one of the names from 1 on; another name is 0.
func enum[T ~int](to *T, b []byte, names ...string) error {
	*to = 0
	if text := unquoted(b); len(b) > len(text) {
		for i, name := range names {
			if text == name {
				*to = T(i + 1)
			}
		}
		return nil
	}
	v, err := strconv.Atoi(string(b))
	*to = T(v)
	return err
}

func unquoted(b []byte) string {
	s := string(b)
	if len(s) > 1 && s[0] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// id is an identifier in hexadecimal digits, as the protocol wants it, or in base64, as libraries
// for its binary form write it to JSON.
type id string

// UnmarshalJSON reads both forms.
func (i *id) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	switch len(s) {
	case 24, 12:
		raw, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return fmt.Errorf("%q is no identifier: %w", s, err)
		}
		s = hex.EncodeToString(raw)
	}
	*i = id(strings.ToLower(s))
	return nil
}
