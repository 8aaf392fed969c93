package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// object is one JSON object at the top level of a file.
type object struct {
	file   string
	line   int // where it begins
	end    int
	raw    json.RawMessage
	fields map[string]json.RawMessage
}

// has reports whether the object has all these keys.
func (o object) has(keys ...string) bool {
	for _, k := range keys {
		if _, ok := o.fields[k]; !ok {
			return false
		}
	}
	return true
}

// jsonReader reads the objects of one format.
type jsonReader struct {
	format string
	knows  func(object) bool // by its keys
	read   func(object) ([]Run, []Fault)
}

// jsonReaders are tried in order.
func jsonReaders() []jsonReader {
	return []jsonReader{
		guideReader(),
	}
}

// Read reads a file by what is in it; its name serves only to name places. It
// takes files that begin with { or [ as JSON, one value or several after each
// other, those with the head of a table of ours as that, and everything else as
// text.
func Read(name string, data []byte) File {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if head := bytes.TrimSpace(data); len(head) > 0 && (head[0] == '{' || head[0] == '[') {
		return readJSON(name, data)
	}
	if bytes.HasPrefix(data, []byte(csvHead)) {
		return readCSV(name, data)
	}
	if kind := guideOther(data); kind != "" {
		return File{Name: name, Faults: []Fault{{Place{File: name}, "this is a report of guidellm as " + kind + ", which is not read: give the JSON of the same run (--outputs json)"}}}
	}
	return readText(name, data)
}

// readJSON reads JSON values that follow each other. An array stands for its
// elements.
func readJSON(name string, data []byte) File {
	f := File{Name: name}
	dec := json.NewDecoder(bytes.NewReader(data))
	line, at := 1, 0
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f.Faults = append(f.Faults, Fault{Place{File: name, Line: line + bytes.Count(data[at:int(min(dec.InputOffset(), int64(len(data))))], []byte("\n"))},
				fmt.Sprintf("this is not JSON (%v): what follows is not read", err)})
			break
		}
		end := int(dec.InputOffset())
		begin := end - len(raw)
		line += bytes.Count(data[at:begin], []byte("\n"))
		last := line + bytes.Count(data[begin:end], []byte("\n"))
		f.value(name, line, last, raw)
		at, line = end, last
	}
	if len(f.Runs) == 0 && len(f.Faults) == 0 {
		f.Faults = append(f.Faults, Fault{Place{File: name}, "the file has no result"})
	}
	return f
}

// value reads one top-level value.
func (f *File) value(name string, line, end int, raw json.RawMessage) {
	o := object{file: name, line: line, end: end, raw: raw}
	if raw[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil {
			for _, v := range list {
				f.value(name, line, end, v)
			}
		}
		return
	}
	if err := json.Unmarshal(raw, &o.fields); err != nil {
		f.Faults = append(f.Faults, Fault{Place{File: name, Line: line}, "a result is a JSON object, and this is none"})
		return
	}
	for _, r := range jsonReaders() {
		if r.knows(o) {
			runs, faults := r.read(o)
			f.Runs, f.Faults = append(f.Runs, runs...), append(f.Faults, faults...)
			return
		}
	}
	f.Faults = append(f.Faults, Fault{Place{File: name, Line: line}, "this object is no result of a load generator that is known here"})
}
