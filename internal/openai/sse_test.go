package openai

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// split feeds the pieces and returns the data of every event.
func split(pieces ...string) []string {
	return splitInto(func(_, data []byte) string { return string(data) }, pieces...)
}

func splitInto(show func(kind, data []byte) string, pieces ...string) []string {
	var s splitter
	var got []string
	var buf []byte // reused, as the reader of a body does
	for _, p := range pieces {
		buf = append(buf[:0], p...)
		for rest := buf; ; {
			data, r, ok := s.next(rest)
			if !ok {
				break
			}
			got, rest = append(got, show(s.kind, data)), r
		}
		for i := range buf {
			buf[i] = '#'
		}
	}
	if data, ok := s.end(); ok {
		got = append(got, show(s.kind, data))
	}
	return got
}

func TestSplitter(t *testing.T) {
	big := strings.Repeat("x", 1<<20+3)
	for name, tt := range map[string]struct {
		in   string
		want []string
	}{
		"lf":             {"data: a\n\ndata: b\n\n", []string{"a", "b"}},
		"crlf":           {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		"cr":             {"data: a\r\rdata: b\r\r", []string{"a", "b"}},
		"mixed":          {"data: a\r\n\ndata: b\r\n\r", []string{"a", "b"}},
		"no space":       {"data:a\n\n", []string{"a"}},
		"two spaces":     {"data:  a\n\n", []string{" a"}},
		"comments":       {": ping\n\n:\n\ndata: a\n: x\n\n", []string{"a"}},
		"multi-line":     {"data: a\ndata: b\ndata\ndata: c\n\n", []string{"a\nb\n\nc"}},
		"multi crlf":     {"data: a\r\ndata: b\r\n\r\n", []string{"a\nb"}},
		"other fields":   {"event: m\nid: 1\nretry: 5\ndata: a\ndatax: n\n\n", []string{"a"}},
		"empty data":     {"data\n\ndata:\n\n", []string{"", ""}},
		"no data":        {"event: m\n\n\n\n", nil},
		"bom":            {"\ufeffdata: a\n\n", []string{"a"}},
		"late bom":       {"data: a\n\n\ufeffdata: b\n\n", []string{"a"}},
		"no blank line":  {"data: a\n\ndata: b\n", []string{"a", "b"}},
		"no newline":     {"data: a\n\ndata: b", []string{"a", "b"}},
		"colon in value": {"data: a: b\n\n", []string{"a: b"}},
		"big line":       {"data: " + big + "\n\ndata: a\n\n", []string{big, "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, split(tt.in)); d != "" {
				t.Fatalf("whole (-want +got):\n%s", d)
			}
			if len(tt.in) > 1000 {
				tt.in = "data: " + strings.Repeat("y", 100) + "\n\n"
				tt.want = []string{strings.Repeat("y", 100)}
			}
			for i := range len(tt.in) {
				if d := cmp.Diff(tt.want, split(tt.in[:i], tt.in[i:])); d != "" {
					t.Fatalf("cut at %d (-want +got):\n%s", i, d)
				}
			}
			if d := cmp.Diff(tt.want, split(strings.Split(tt.in, "")...)); d != "" {
				t.Fatalf("byte by byte (-want +got):\n%s", d)
			}
		})
	}
}

func typed(kind, data []byte) string { return string(kind) + ": " + string(data) }

func TestSplitterTypes(t *testing.T) {
	in := "event: error\ndata: a\n\nevent: error\n\ndata: b\n\ndata: c\nevent:m\nevent: n\n\nevent: last\ndata: d"
	want := []string{"error: a", ": b", "n: c", "last: d"} // an event without data has no type to hand on
	if d := cmp.Diff(want, splitInto(typed, in)); d != "" {
		t.Fatalf("-want +got:\n%s", d)
	}
}

func TestSplitterBound(t *testing.T) {
	var s splitter
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range maxEvent>>20 + 1 {
		s.next(piece)
	}
	if !s.long || len(s.line) > maxEvent {
		t.Fatalf("long %v with a line of %d bytes", s.long, len(s.line))
	}
}

// FuzzSplitter: the events do not depend on where the stream is cut, and are
// those of a plain line-by-line reading.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\ndata:b\ndata: c\n\n: x\n\ndata: d"), uint8(3))
	f.Add([]byte("\ufeffdata\r\revent: error\rdata: \xff\n\n"), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		want := splitPlainly(string(in))
		var pieces []string
		for piece := range slices.Chunk(in, int(step)+1) {
			pieces = append(pieces, string(piece))
		}
		if d := cmp.Diff(want, splitInto(typed, pieces...)); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	})
}

func splitPlainly(in string) []string {
	in = strings.TrimPrefix(in, "\ufeff")
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	var events, data []string
	kind := ""
	flush := func() {
		if data != nil {
			events = append(events, kind+": "+strings.Join(data, "\n"))
		}
		data, kind = nil, ""
	}
	for line := range strings.SplitSeq(in, "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch {
		case line == "":
			flush()
		case name == "data":
			data = append(data, strings.TrimPrefix(value, " "))
		case name == "event":
			kind = strings.TrimPrefix(value, " ")
		}
	}
	flush()
	return events
}
