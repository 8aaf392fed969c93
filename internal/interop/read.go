package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"perflab/internal/interop/callcsv"
	"perflab/internal/result"
)

// jsonReaders are tried in order.
func jsonReaders() []jsonReader {
	return []jsonReader{
		guideReader(),
		{format: FormatAIPerf, knows: knowsAIPerf, read: readAIPerf},
		{format: FormatAIPerf, knows: knowsAIPerfRequest, gather: func() gatherer { return &aiperfRequests{} }},
		{format: FormatInferencePerf, knows: knowsInferencePerf, read: readInferencePerf},
		{format: FormatInferencePerf, knows: knowsInferencePerfRequest, gather: func() gatherer { return &inferencePerfRequests{} }},
		{format: FormatSGLang, knows: knowsSGLang, read: readSGLang},
		{format: FormatVLLM, knows: knowsVLLM, read: readVLLM},
	}
}

// Read reads a file by what is in it; its name serves only to name places. It
// takes files that begin with an object or an array as JSON, one value or
// several after each other, those with the head of a table of ours as that, and
// everything else as text.
func Read(name string, data []byte) File {
	data = Decode(data)
	if isJSON(data) {
		return readJSON(name, data)
	}
	if callcsv.Is(data) {
		return readCSV(name, data)
	}
	if kind := guideOther(data); kind != "" {
		return File{Name: name, Faults: []Fault{{Place: Place{File: name}, Text: "this is a report of guidellm as " + kind + ", which is not read: give the JSON of the same run (--outputs json)"}}}
	}
	return readText(name, data)
}

// readCSV reads a table of calls that perflab wrote.
func readCSV(name string, data []byte) File {
	t := callcsv.Read(data)
	f := File{Name: name}
	for _, x := range t.Faults {
		f.Faults = append(f.Faults, Fault{Place: Place{File: name, Line: x.Line}, Text: x.Text})
	}
	if len(t.Calls) == 0 {
		return f
	}
	r := Run{Place: Place{File: name}, Header: t.Header, Defs: t.Definitions, Lacks: t.Lacks, Calls: t.Calls}
	r.Header.Imported.Format, r.Header.Imported.File = FormatCSV, name
	r.Sim = r.Header.Simulated || r.Header.Predicted || slices.ContainsFunc(t.Calls, func(c result.Call) bool { return c.Sim })
	f.Runs = []Run{r}
	return f
}

// jsonFile is a JSON file while it is read.
type jsonFile struct {
	File
	readers []jsonReader
	current int // reader that gathers, an index
	gather  gatherer
	missing []int // where NaN and infinities stood that no value is read of yet
}

// readJSON reads JSON values that follow each other. An array stands for its
// elements. After what is no JSON it goes on at the next line that begins a
// value: the lines of a pretty-printed value do not.
func readJSON(name string, data []byte) File {
	data, missing := finite(data)
	f := jsonFile{File: File{Name: name}, readers: jsonReaders(), missing: missing}
	lines := lineCounter{data: data, line: 1}
	for start, ok := 0, false; !ok; {
		start, ok = f.values(data, start, &lines)
	}
	f.finish()
	if len(f.Runs) == 0 && len(f.Faults) == 0 {
		f.Faults = append(f.Faults, Fault{Place: Place{File: name}, Kind: NoResult, Text: "the file has no result"})
	}
	f.Faults = fold(f.Faults)
	return f.File
}

// values reads the values from an offset on, up to the end or to what is no
// JSON. It returns where to go on.
func (f *jsonFile) values(data []byte, start int, lines *lineCounter) (next int, done bool) {
	dec := json.NewDecoder(bytes.NewReader(data[start:]))
	for end := start; ; {
		var v rawValue
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return end, true
		}
		if err != nil {
			next = f.broken(data, end, start, lines, err)
			return next, next == len(data)
		}
		end = start + int(dec.InputOffset())
		begin := end - v.length
		line := lines.at(begin)
		f.tellMissing(data, begin, end, line)
		f.value(data[begin:end], line, 0)
	}
}

// tellMissing says how many NaN and infinities a value has.
func (f *jsonFile) tellMissing(data []byte, begin, end, line int) {
	n := sort.SearchInts(f.missing, end)
	if n > 0 {
		first := line + bytes.Count(data[begin:max(begin, f.missing[0])], []byte("\n"))
		f.fault(Place{f.Name, first, 0, nil}, fmt.Sprintf("%d values here and below are NaN or infinite: they are read as missing", n))
	}
	f.missing = f.missing[n:]
}

// broken tells of what is no JSON behind the value that ended last, as the
// decoder that began at start found it. It returns where the next value begins.
func (f *jsonFile) broken(data []byte, end, start int, lines *lineCounter, err error) int {
	begin := len(data) - len(bytes.TrimLeft(data[end:], " \t\r\n"))
	line, at, from := lines.at(begin), len(data), begin
	if bad := (*json.SyntaxError)(nil); errors.As(err, &bad) {
		at = max(begin, start+int(bad.Offset)-1)
	}
	if strings.Contains(err.Error(), "max depth") {
		from = at // the lines before nest as deep
	}
	next := nextValue(data, from)
	broke, last := line+bytes.Count(data[begin:min(at, len(data))], []byte("\n")), lines.at(next)
	text := fmt.Sprintf("this is not JSON (line %d: %v): what follows is not read", broke, err)
	if next < len(data) {
		text = fmt.Sprintf("this is not JSON (line %d: %v): reading goes on at line %d", broke, err, last)
		last--
	}
	f.missing = f.missing[sort.SearchInts(f.missing, next):]
	f.fault(Place{f.Name, line, last, nil}, text)
	return next
}

// nextValue returns the offset of the next line that begins with a bracket, or
// the end.
func nextValue(data []byte, at int) int {
	for {
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			return len(data)
		}
		if at += n + 1; at < len(data) && (data[at] == '{' || data[at] == '[') {
			return at
		}
	}
}

func (f *jsonFile) fault(p Place, text string) {
	f.Faults = append(f.Faults, Fault{Place: p, Text: text})
}

// finish takes over what was gathered.
func (f *jsonFile) finish() {
	if f.gather != nil {
		runs, faults := f.gather.run()
		f.Runs, f.Faults = append(f.Runs, runs...), append(f.Faults, faults...)
		f.gather = nil
	}
}

// value reads one top-level value, or one in an array there, or in an array of
// such arrays.
func (f *jsonFile) value(raw []byte, line, depth int) {
	end := line + bytes.Count(raw, []byte("\n"))
	switch {
	case raw[0] == '[' && depth < 2:
		for m := range items(raw, line) {
			f.value(m.raw, m.line, depth+1)
		}
		return
	case raw[0] != '{':
		f.fault(Place{f.Name, line, end, nil}, "a result is a JSON object, and this is none")
		return
	}
	o := object{file: f.Name, line: line, end: end, raw: raw, fields: map[string]json.RawMessage{}}
	at := map[string]int{} // in o.members
	for m := range items(raw, line) {
		o.fields[m.key] = m.raw
		if i, twice := at[m.key]; twice {
			f.fault(Place{f.Name, m.line, 0, nil}, fmt.Sprintf("key %q is there twice: the last one counts", m.key))
			o.members[i] = m
			continue
		}
		at[m.key] = len(o.members)
		o.members = append(o.members, m)
	}
	f.object(o)
}

// object gives an object to the reader that knows it.
func (f *jsonFile) object(o object) {
	for i, r := range f.readers {
		if !r.knows(o) {
			continue
		}
		if r.gather == nil {
			f.finish()
			runs, faults := r.read(o)
			f.Runs, f.Faults = append(f.Runs, runs...), append(f.Faults, faults...)
			return
		}
		if f.gather == nil || f.current != i {
			f.finish()
			f.gather, f.current = r.gather(), i
		}
		f.gather.add(o)
		return
	}
	f.Faults = append(f.Faults, Fault{Place: o.place(), Kind: NoResult, Text: "this object is no result of a load generator that is known here"})
}

// mostAlike is how many faults of one text are told one by one.
const mostAlike = 5

// mostFaults is how many faults of one file are told.
const mostFaults = 100

// fold puts further faults of the same text into the last one that is told, so
// that a file of something else is not as many faults as it has lines.
func fold(faults []Fault) []Fault {
	var remaining []Fault
	seen := map[string]int{}
	last := map[string]int{} // index in kept
	for _, f := range faults {
		if seen[f.Text]++; seen[f.Text] <= mostAlike {
			last[f.Text] = len(remaining)
			remaining = append(remaining, f)
		}
	}
	for i, f := range remaining {
		if more := seen[f.Text] - mostAlike; more > 0 && last[f.Text] == i {
			remaining[i].Text = fmt.Sprintf("%s (and so in %d more places below)", f.Text, more)
		}
	}
	if more := len(remaining) - mostFaults; more > 0 {
		remaining = append(remaining[:mostFaults:mostFaults], Fault{Place: remaining[mostFaults].Place, Text: fmt.Sprintf("%d more faults from here on are not told", more)})
	}
	return remaining
}
