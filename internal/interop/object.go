package interop

import (
	"bytes"
	"encoding/json"
	"slices"
)

// object is one JSON object at the top level of a file, or in an array there.
type object struct {
	file    string
	line    int // where it begins
	end     int
	raw     json.RawMessage
	fields  map[string]json.RawMessage
	members []member // in the order of the file, each key once
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

// place returns where the object stands.
func (o object) place() Place { return Place{File: o.file, Line: o.line, End: o.end} }

// jsonReader reads the objects of one format.
type jsonReader struct {
	format string
	knows  func(object) bool // by its keys
	read   func(object) ([]Run, []Fault)
	gather func() gatherer // in place of read, where each object is a request
}

// gatherer makes one run of objects that follow each other.
type gatherer interface {
	add(object)
	run() ([]Run, []Fault)
}

// lineCounter tells the lines of offsets that only grow.
type lineCounter struct {
	data     []byte
	to, line int
}

func (c *lineCounter) at(offset int) int {
	if offset > c.to {
		c.line += bytes.Count(c.data[c.to:offset], []byte("\n"))
		c.to = offset
	}
	return c.line
}

// find returns a member of the object by its key.
func find(o object, key string) (member, bool) {
	i := slices.IndexFunc(o.members, func(m member) bool { return m.key == key })
	if i < 0 {
		return member{}, false
	}
	return o.members[i], true
}
