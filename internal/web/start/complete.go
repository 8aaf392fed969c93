package start

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"perflab/docs"
	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// choice is what may stand where the cursor is.
type choice struct {
	Text   string `json:"text"`
	Detail string `json:"detail,omitempty"`
}

// mostChoices is how many are offered.
const mostChoices = 60

// schema is a part of the JSON Schema of study files, as far as a completion needs it.
type schema struct {
	Properties  map[string]*schema `json:"properties"`
	Additional  json.RawMessage    `json:"additionalProperties"` // false, or a schema
	Items       *schema            `json:"items"`
	OneOf       []*schema          `json:"oneOf"`
	AnyOf       []*schema          `json:"anyOf"`
	Type        string             `json:"type"`
	Enum        []any              `json:"enum"`
	Description string             `json:"description"`
}

// theSchema is that of study files.
var theSchema = sync.OnceValue(func() *schema {
	var s schema
	if err := json.Unmarshal(docs.StudySchema, &s); err != nil {
		panic(err) // what is inside of a program is right
	}
	return &s
})

// item stands for an element of a list in a path.
const item = "[]"

// ways are the schema and those that it may also be.
func (s *schema) ways() []*schema {
	out := []*schema{s}
	for _, other := range slices.Concat(s.OneOf, s.AnyOf) {
		out = append(out, other.ways()...)
	}
	return out
}

// below is the schema of what a key or an item leads to; nil where nobody knows.
func (s *schema) below(step string) *schema {
	for _, w := range s.ways() {
		if step == item {
			if w.Items != nil {
				return w.Items
			}
			continue
		}
		if p := w.Properties[step]; p != nil {
			return p
		}
		var other schema
		if len(w.Additional) > 0 && json.Unmarshal(w.Additional, &other) == nil {
			return &other
		}
	}
	return nil
}

// kind is what a value of the schema is.
func (s *schema) kind() string {
	for _, w := range s.ways() {
		if w.Type != "" {
			return w.Type
		}
	}
	return ""
}

// at is the schema at a path.
func (s *schema) at(path []string) *schema {
	for _, step := range path {
		if s = s.below(step); s == nil {
			return nil
		}
	}
	return s
}

// place is where a cursor is in a file.
type place struct {
	path  []string // of the mapping, or of the value
	value bool     // a value is being written, not a key
	word  string   // its beginning
	taken map[string]bool
}

// frame is a mapping's key or a list's item that lines belong to which begin further right.
type frame struct {
	indent int
	step   string
}

var (
	keyLine  = regexp.MustCompile(`^["']?([\w./-]+)["']?:(?:\s+(.*))?$`)
	wordLine = regexp.MustCompile(`^[\w./-]*$`)
)

// outline follows the lines of a file, whether or not they are right.
type outline struct {
	frames []frame
	keys   map[string]bool // of the mapping that is open, by path and key
}

// walk takes one line, and gives what follows its dashes: with its indent.
func (o *outline) walk(line string) (rest string, indent int) {
	line = strings.TrimRight(line, "\r\n")
	rest = strings.TrimLeft(line, " ")
	indent = len(line) - len(rest)
	for strings.HasPrefix(rest, "- ") || rest == "-" {
		o.leave(func(f frame) bool { return f.indent > indent || f.indent == indent && f.step == item })
		o.frames = append(o.frames, frame{indent, item})
		head := strings.Join(o.path(), "\x00") + "\x00" // an element begins, with no key yet
		maps.DeleteFunc(o.keys, func(key string, _ bool) bool { return strings.HasPrefix(key, head) })
		after := strings.TrimLeft(strings.TrimPrefix(rest, "-"), " ")
		if after == "" {
			return "", indent + 2
		}
		indent, rest = indent+len(rest)-len(after), after
	}
	return rest, indent
}

// leave ends what lines of this indent do not belong to.
func (o *outline) leave(ended func(frame) bool) {
	for len(o.frames) > 0 && ended(o.frames[len(o.frames)-1]) {
		o.frames = o.frames[:len(o.frames)-1]
	}
}

// line takes a whole line.
func (o *outline) line(line string) {
	if t := strings.TrimSpace(line); t == "" || strings.HasPrefix(t, "#") || len(line) > mostLine {
		return
	}
	rest, indent := o.walk(line)
	m := keyLine.FindStringSubmatch(rest)
	if m == nil {
		return
	}
	o.leave(func(f frame) bool { return f.indent >= indent })
	o.keys[strings.Join(o.path(), "\x00")+"\x00"+m[1]] = true
	o.frames = append(o.frames, frame{indent, m[1]})
}

func (o *outline) path() []string {
	out := make([]string, len(o.frames))
	for i, f := range o.frames {
		out[i] = f.step
	}
	return out
}

// Bounds of what is completed. The work grows with the square of both: no study comes near them.
const (
	mostLines = 5000
	mostLine  = 2000 // bytes
)

// placeAt is where a cursor is, in a text that may be half written.
func placeAt(text string, line, column int) (place, bool) {
	lines := strings.Split(text, "\n")
	if line > len(lines) || len(lines) > mostLines || len(lines[line-1]) > mostLine {
		return place{}, false
	}
	o := outline{keys: map[string]bool{}}
	for _, l := range lines[:line-1] {
		o.line(l)
	}
	now := []rune(lines[line-1])
	before := string(now[:min(column-1, len(now))])
	if strings.Contains(before, "#") {
		return place{}, false
	}
	rest, indent := o.walk(before)
	o.leave(func(f frame) bool { return f.indent >= indent && !(f.step == item && f.indent < indent) })
	p := place{path: o.path(), taken: map[string]bool{}}
	switch m := keyLine.FindStringSubmatch(rest); {
	case m != nil && (strings.HasPrefix(m[2], "{") || strings.HasPrefix(m[2], "[")):
		p.path = append(p.path, m[1])
		return p, p.flow(m[2])
	case strings.HasPrefix(rest, "{"), strings.HasPrefix(rest, "["):
		return p, p.flow(rest)
	case m != nil:
		p.path, p.value, p.word = append(p.path, m[1]), true, m[2]
	case wordLine.MatchString(rest):
		p.word = rest
	default:
		return place{}, false
	}
	if !p.value {
		for _, l := range lines[line:] {
			if t := strings.TrimLeft(l, " "); strings.TrimSpace(t) != "" && len(l)-len(t) < indent {
				break // it belongs to what is around
			}
			o.line(l)
		}
		head := strings.Join(p.path, "\x00") + "\x00"
		for key := range o.keys {
			if k, ok := strings.CutPrefix(key, head); ok && !strings.Contains(k, "\x00") {
				p.taken[k] = true
			}
		}
	}
	return p, true
}

// flow goes into what stands between brackets on one line.
func (p *place) flow(text string) bool {
	base := slices.Clone(p.path)
	type open struct {
		list bool
		key  string
		keys map[string]bool
	}
	var stack []open
	word := ""
	for _, r := range text {
		switch top := len(stack) - 1; {
		case r == '{' || r == '[':
			stack = append(stack, open{list: r == '[', keys: map[string]bool{}})
			word = ""
		case top < 0:
			return false
		case r == '}' || r == ']':
			stack, word = stack[:top], ""
		case r == ',':
			stack[top].key, word = "", ""
		case r == ':' && !stack[top].list && stack[top].key == "":
			stack[top].key = strings.Trim(strings.TrimSpace(word), `"'`)
			stack[top].keys[stack[top].key] = true
			word = ""
		default:
			word += string(r)
		}
	}
	if len(stack) == 0 {
		return false
	}
	for _, s := range stack {
		if s.list {
			base = append(base, item)
		} else if s.key != "" {
			base = append(base, s.key)
		}
	}
	top := stack[len(stack)-1]
	p.path, p.value, p.word, p.taken = base, top.list || top.key != "", strings.TrimSpace(word), top.keys
	return wordLine.MatchString(p.word)
}

// complete says what may stand at a place of a study file.
func complete(text string, line, column int) []choice {
	p, ok := placeAt(text, line, column)
	if !ok {
		return []choice{}
	}
	var all []choice
	s := theSchema().at(p.path)
	if p.value {
		all = values(p.path, s)
	} else if all = keys(p, s); len(all) == 0 { // an element of a list of plain values
		all = values(p.path, s)
	}
	word := strings.ToLower(p.word)
	all = slices.DeleteFunc(all, func(c choice) bool { return !strings.Contains(strings.ToLower(c.Text), word) })
	slices.SortStableFunc(all, func(a, b choice) int {
		return count(strings.HasPrefix(strings.ToLower(b.Text), word)) - count(strings.HasPrefix(strings.ToLower(a.Text), word))
	})
	if len(all) == 0 {
		return []choice{}
	}
	return all[:min(len(all), mostChoices)]
}

// keys are those that a mapping does not have yet.
func keys(p place, s *schema) []choice {
	if s == nil {
		return nil
	}
	var out []choice
	add := func(name, detail, kind string) {
		if p.taken[name] {
			return
		}
		text := name + ": "
		if kind == "object" || kind == "array" {
			text = name + ":"
		}
		out = append(out, choice{text, detail})
	}
	for _, w := range s.ways() {
		for _, name := range slices.Sorted(maps.Keys(w.Properties)) {
			add(name, short(w.Properties[name].Description), w.Properties[name].kind())
		}
	}
	kind := ""
	if other := s.below("*"); other != nil {
		kind = other.kind()
	}
	for _, c := range openKeys(p.path) {
		add(c.Text, c.Detail, kind)
	}
	return out
}

// openKeys are the usual keys of mappings that take any.
func openKeys(path []string) []choice {
	switch last := lastOf(path); {
	case last == "engines":
		return engines()
	case last == "set", last == "space" && len(path) == 1:
		var out []choice
		for _, p := range engine.All()[0].Params { // every engine has a row for each
			out = append(out, choice{Text: p.Name})
		}
		if last == "space" {
			out = append(out, choice{"engine", "names of engines"}, choice{"model", "checkpoints"})
		}
		return out
	}
	return nil
}

// values are those that a key may have.
func values(path []string, s *schema) []choice {
	if out := named(path); len(out) > 0 || s == nil {
		return out
	}
	var out []choice
	for _, w := range s.ways() {
		for _, v := range w.Enum {
			if text, ok := v.(string); ok {
				out = append(out, choice{Text: text})
			}
		}
		if w.Type == "boolean" {
			out = append(out, choice{Text: "true"}, choice{Text: "false"})
		}
	}
	return out
}

// named are values that have names in a table of ours.
func named(path []string) (out []choice) {
	if lastOf(path) == item {
		path = path[:len(path)-1]
	}
	switch lastOf(path) {
	case "gpu":
		for _, a := range arch.Accelerators() {
			out = append(out, choice{Text: a.Name})
		}
	case "model":
		for _, m := range arch.Models() {
			out = append(out, choice{Text: m.Name})
		}
	case "metric", "until_metric":
		for _, m := range result.Metrics() {
			out = append(out, choice{m.Name, short(m.Doc)})
		}
	case "engine":
		out = engines()
	case "dataset_name":
		for _, name := range workload.Datasets() {
			out = append(out, choice{Text: name})
		}
	}
	return out
}

func engines() []choice {
	var out []choice
	for _, e := range engine.All() {
		out = append(out, choice{Text: e.Name})
	}
	return out
}

func lastOf(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}

// short is the beginning of a description.
func short(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if r := []rune(text); len(r) > 110 {
		text = strings.TrimRight(string(r[:107]), " ,.;:") + "..."
	}
	return cmp.Or(text, "")
}
