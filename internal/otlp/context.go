package otlp

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// Context is a W3C trace context: a trace, and the span in it under which a server puts its own.
// It is kept as the value of the header traceparent. The zero value is none.
type Context struct{ header string }

// The parts of a header of version 00: 00-TRACE-SPAN-FLAGS.
const (
	traceFrom, traceTo = 3, 35
	spanFrom, spanTo   = 36, 52
	headerLen          = 55
)

// NewContext draws a trace and a span that no other has: many runs, those of one seed among them,
// write to one collector. Sampled, so that a server that goes by its caller exports its spans.
func NewContext() Context {
	var b [24]byte
	rand.Read(b[:]) // never fails
	var h [headerLen]byte
	copy(h[:], "00-")
	hex.Encode(h[traceFrom:traceTo], b[:16])
	h[traceTo] = '-'
	hex.Encode(h[spanFrom:spanTo], b[16:])
	copy(h[spanTo:], "-01")
	return Context{string(h[:])}
}

// Header is the value of the header traceparent.
func (c Context) Header() string { return c.header }

// TraceID is the trace in 32 hexadecimal digits.
func (c Context) TraceID() string {
	if c.header == "" {
		return ""
	}
	return c.header[traceFrom:traceTo]
}

// SpanID is the span in 16 hexadecimal digits.
func (c Context) SpanID() string {
	if c.header == "" {
		return ""
	}
	return c.header[spanFrom:spanTo]
}

// Sampled reports whether the caller records its trace.
func (c Context) Sampled() bool {
	if c.header == "" {
		return false
	}
	return strings.IndexByte("13579bdf", c.header[headerLen-1]) >= 0
}

// ParseContext reads the value of a header traceparent. As the specification asks, a value that is
// not of its form is none, and of a later version the parts of this one are read.
func ParseContext(header string) (c Context, ok bool) {
	header = strings.TrimSpace(header)
	if len(header) < headerLen || header[:2] == "ff" || len(header) > headerLen && (header[:2] == "00" || header[headerLen] != '-') {
		return Context{}, false
	}
	header = header[:headerLen]
	for i, r := range []byte(header) {
		dash := i == traceFrom-1 || i == traceTo || i == spanTo
		if dash != (r == '-') || !dash && !isHex(r) {
			return Context{}, false
		}
	}
	c = Context{header}
	if strings.Trim(c.TraceID(), "0") == "" || strings.Trim(c.SpanID(), "0") == "" {
		return Context{}, false
	}
	return c, true
}

// isHex tells lower-case hexadecimal digits.
func isHex(r byte) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' }
