package otlp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseContext(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, c := range []struct {
		header      string
		ok, sampled bool
	}{
		{good, true, true},
		{" " + good + " ", true, true},
		{good[:53] + "00", true, false},
		{good[:53] + "03", true, true},            // and of a random trace
		{"01" + good[2:] + "-later", true, true},  // of a version to come
		{"01" + good[2:] + "later", false, false}, // which would go on with a dash
		{good + "-more", false, false},            // this version has no more
		{"ff" + good[2:], false, false},
		{strings.ToUpper(good), false, false},
		{good[:54], false, false},
		{"", false, false},
		{"00-00000000000000000000000000000000-00f067aa0ba902b7-01", false, false},
		{"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false, false},
		{strings.ReplaceAll(good, "-", "_"), false, false},
	} {
		got, ok := ParseContext(c.header)
		if ok != c.ok || got.Sampled() != c.sampled {
			t.Errorf("%q: %v, sampled %v", c.header, ok, got.Sampled())
		}
		if ok && (got.TraceID() != "4bf92f3577b34da6a3ce929d0e0e4736" || got.SpanID() != "00f067aa0ba902b7") {
			t.Errorf("%q: trace %s, span %s", c.header, got.TraceID(), got.SpanID())
		}
	}
}

func TestNewContext(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		c := NewContext()
		back, ok := ParseContext(c.Header())
		if !ok || back != c || !c.Sampled() {
			t.Fatalf("%q is not read back", c.Header())
		}
		if seen[c.TraceID()] || seen[c.SpanID()] {
			t.Fatalf("%q was drawn before", c.Header())
		}
		seen[c.TraceID()], seen[c.SpanID()] = true, true
	}
}

// The example of the protocol's own documentation (opentelemetry-proto, examples/trace.json).
const example = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"my.service"}}]},
"scopeSpans":[{"scope":{"name":"my.library","version":"1.0.0","attributes":[{"key":"my.scope.attribute","value":{"stringValue":"some scope attribute"}}]},
"spans":[{"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"EEE19B7EC3C1B174","parentSpanId":"EEE19B7EC3C1B173","name":"I'm a server span",
"startTimeUnixNano":"1544712660000000000","endTimeUnixNano":"1544712661000000000","kind":2,"attributes":[{"key":"my.span.attr","value":{"stringValue":"some value"}}]}]}]}]}`

func TestReadExample(t *testing.T) {
	want := Span{
		TraceID: "5b8efff798038103d269b633813fc60c", SpanID: "eee19b7ec3c1b174", Parent: "eee19b7ec3c1b173", Name: "I'm a server span", Kind: Server,
		Start: 1544712660000000000, End: 1544712661000000000, Service: "my.service",
		Attrs: []Attr{{"my.span.attr", "some value"}, {"service.name", "my.service"}},
	}
	// As it stands, on several lines, and as libraries for the binary form write it.
	other := strings.NewReplacer("5B8EFFF798038103D269B633813FC60C", "W47/95gDgQPSabYzgT/GDA==", "EEE19B7EC3C1B174", "7uGbfsPBsXQ=", "EEE19B7EC3C1B173", "7uGbfsPBsXM=",
		`"1544712660000000000"`, "1544712660000000000", `"kind":2`, `"kind":"SPAN_KIND_SERVER"`).Replace(example)
	for _, text := range []string{example, other} {
		var got []Span
		for s, err := range Read(strings.NewReader(text + "\n" + text)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s)
		}
		if diff := cmp.Diff([]Span{want, want}, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAppend(t *testing.T) {
	spans := []Span{{
		TraceID: "5b8efff798038103d269b633813fc60c", SpanID: "eee19b7ec3c1b174", Name: "chat \"m\"", Kind: Client, Start: 1, End: 1 << 60,
		Attrs:  []Attr{{"text", "a\nb\xff"}, {"none", ""}, {"int", 7}, {"float", 0.25}, {"yes", true}, {"list", []string{"stop", "x"}}},
		Failed: true, Message: "it broke",
	}, {TraceID: "5b8efff798038103d269b633813fc60c", SpanID: "eee19b7ec3c1b175", Parent: "eee19b7ec3c1b174", Name: "queue", Kind: Internal}}
	line := Append(nil, Source{Service: "perflab", Attrs: []Attr{{"run", "r1"}}}, spans)
	const want = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"perflab"}},{"key":"run","value":{"stringValue":"r1"}}]},` +
		`"scopeSpans":[{"scope":{"name":"perflab"},"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"chat \"m\"","kind":3,` +
		`"startTimeUnixNano":"1","endTimeUnixNano":"1152921504606846976","attributes":[{"key":"text","value":{"stringValue":"a\nb\ufffd"}},{"key":"int","value":{"intValue":"7"}},` +
		`{"key":"float","value":{"doubleValue":0.25}},{"key":"yes","value":{"boolValue":true}},{"key":"list","value":{"arrayValue":{"values":[{"stringValue":"stop"},{"stringValue":"x"}]}}}],` +
		`"status":{"code":2,"message":"it broke"}},{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b175","parentSpanId":"eee19b7ec3c1b174","name":"queue","kind":1,` +
		`"startTimeUnixNano":"0","endTimeUnixNano":"0","attributes":[]}]}]}]}`
	if diff := cmp.Diff(want, string(line)); diff != "" {
		t.Error(diff)
	}
	if !json.Valid(line) || bytes.ContainsRune(line, '\n') {
		t.Errorf("%s is not one line of JSON", line)
	}
	var got []Span
	for s, err := range Read(bytes.NewReader(line)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	if len(got) != 2 || !got[0].Failed || got[0].Message != "it broke" || got[0].Start != 1 || got[0].End != 1<<60 || got[1].Parent != got[0].SpanID {
		t.Errorf("read back: %+v", got)
	}
	if v, ok := got[0].Number("float"); v != 0.25 || !ok {
		t.Errorf("float is %g, %v", v, ok)
	}
	if v, ok := got[0].Number("int"); v != 7 || !ok {
		t.Errorf("int is %g, %v", v, ok)
	}
	if _, ok := got[0].Number("text"); ok || !got[0].Yes("yes") || got[0].Yes("text") || got[0].Service != "perflab" {
		t.Errorf("%+v", got[0])
	}
}

func TestReadBroken(t *testing.T) {
	for _, text := range []string{"{", example + "\n{\"resourceSpans\":7}", example + example[:400], `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":7}]}]}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"soon"}]}]}]}`, "spans\n"} {
		var last error
		n := 0
		for _, err := range Read(strings.NewReader(text)) {
			if last = err; err == nil {
				n++
			}
		}
		if last == nil || !strings.Contains(last.Error(), "is no OTLP/JSON") {
			t.Errorf("%.40q: %v after %d spans", text, last, n)
		}
		if want := strings.Count(text, example); n != want {
			t.Errorf("%.40q: %d spans before it, want %d", text, n, want)
		}
	}
}

// What was read can be written, and reads as the same.
func FuzzRead(f *testing.F) {
	f.Add(example)
	f.Add(string(Append(nil, Source{Service: "perflab"}, []Span{{TraceID: "a", Name: "b", Attrs: []Attr{{"c", 1.5}, {"d", true}}, Failed: true}})))
	f.Add(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"x","value":{"doubleValue":"NaN"}},{"key":"y","value":{"intValue":"-1"}}],"status":{"code":"STATUS_CODE_ERROR"}}]}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		for s, err := range Read(strings.NewReader(text)) {
			if err != nil {
				return
			}
			s.Attrs = slices.DeleteFunc(s.Attrs, func(a Attr) bool {
				_, number := a.Value.(float64)
				return number || a.Value == "" || a.Key == "service.name"
			})
			for again, err := range Read(bytes.NewReader(Append(nil, Source{}, []Span{s}))) {
				if !s.Failed {
					s.Message = ""
				}
				s.Service = ""
				if err != nil || !cmp.Equal(clean(s), clean(again)) {
					t.Fatalf("%v: %s", err, cmp.Diff(clean(s), clean(again)))
				}
			}
		}
	})
}

// clean is a span without the difference between no attributes and an empty list of them. An
// identifier of the length of base64 is read as such, so that one which is not is another.
func clean(s Span) Span {
	if len(s.Attrs) == 0 {
		s.Attrs = nil
	}
	for _, id := range []*string{&s.TraceID, &s.SpanID, &s.Parent} {
		*id = strings.ToValidUTF8(*id, "\ufffd")
		if n := len(*id); n == 12 || n == 24 {
			*id = ""
		}
	}
	return s
}

// A trace context costs a call one allocation.
func BenchmarkNewContext(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if c := NewContext(); c.Header() == "" {
			b.Fatal("none")
		}
	}
}
