package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/interop/command"
	"perflab/internal/redact"
)

// client is a load client: its commands, its flags, and what it does by default.
type client struct {
	name     string     // "guidellm"
	versions string     // whose flags the rows are
	starts   [][]string // words that begin a command
	example  string     // one of them as text
	rows     []row

	settings func(c *client, words []string, d *draft) []setting
	finish   func(*draft) // makes flags of the facts, and tells of defaults
}

// title is the name with the versions.
func (c *client) title() string { return c.name + " " + c.versions }

// row is one flag of a client, or several that are alike.
type row struct {
	flags  string // spellings, separated by |
	to     string // of perflab bench, as the tables show it; carried over as it is where nothing else is said
	fact   string // kept under this name for the client's finish, in place of being carried over
	says   string // one sentence: what differs, why it is not needed, or why it is refused
	kind   kind
	bare   bool   // takes no value
	many   bool   // takes the words up to the next flag
	unless string // value that asks for nothing, separated by |
}

// kind is what becomes of a flag.
type kind string

const (
	carried  kind = ""         // perflab bench has it
	unneeded kind = "unneeded" // it has none, and the load is the same without
	refused  kind = "refused"  // it has none, and the load would be another one
)

// setting is a flag as it was given.
type setting struct {
	flag  string
	value string
}

// clients are all of them, those whose names are part of others' last.
func clients() []*client {
	return []*client{guidellm(), aiperf(), genaiperf(), sglang()}
}

// find returns the row of a flag.
func (c *client) find(flag string) (row, bool) {
	for _, r := range c.rows {
		if slices.Contains(strings.Split(r.flags, "|"), flag) {
			return r, true
		}
	}
	return row{}, false
}

// draft is a translation in the making.
type draft struct {
	client  *client
	facts   map[string]string // values by the rows' facts
	given   map[string]string // the flags that gave them
	flags   []Flag
	notes   []Note
	refused []error
}

// plainSettings splits the words of a command into flags and values.
func plainSettings(c *client, words []string, d *draft) []setting {
	var out []setting
	for i := 0; i < len(words); i++ {
		if !command.IsFlag(words[i]) {
			d.refuse(words[i], "belongs to no flag: is a line missing its \\ at the end?")
			continue
		}
		name, value, joined := strings.Cut(words[i], "=")
		r, known := c.find(name)
		if joined || known && r.bare {
			out = append(out, setting{name, value})
			continue
		}
		for i+1 < len(words) && !command.IsFlag(words[i+1]) {
			i++
			value = strings.TrimSpace(value + " " + words[i])
			if known && !r.many {
				break
			}
		}
		out = append(out, setting{name, value})
	}
	return out
}

// take goes through the settings by the client's table.
func (d *draft) take(settings []setting) {
	for _, s := range settings {
		r, ok := d.client.find(s.flag)
		switch {
		case !ok:
			d.refuse(s.flag, fmt.Sprintf("is no flag of %s that is known here: check its spelling, or leave it out", d.client.title()))
		case s.value != "" && slices.Contains(strings.Split(r.unless, "|"), s.value):
		case r.kind == refused:
			d.refuse(d.as(s), r.says)
		case r.kind == unneeded:
			d.note(d.as(s), r.says)
		default:
			d.carry(r, s)
		}
	}
}

// carry keeps a fact, or gives perflab's flag the same value.
func (d *draft) carry(r row, s setting) {
	if !r.bare && s.value == "" {
		d.refuse(s.flag, "has no value")
		return
	}
	if r.says != "" {
		d.note(d.as(s), r.says)
	}
	if r.fact != "" {
		if earlier, twice := d.facts[r.fact]; twice && r.many {
			s.value = earlier + " " + s.value
		}
		d.facts[r.fact], d.given[r.fact] = cmp.Or(s.value, "true"), d.as(s)
		return
	}
	to := r.to
	if !strings.HasPrefix(to, "--") {
		to = s.flag // the same
	}
	d.put(to, s.value, r.bare)
}

// as is a setting as it was given, without secrets.
func (d *draft) as(s setting) string {
	value := shown(s.value)
	if value != "" && redact.IsSecret(strings.TrimLeft(strings.TrimSuffix(s.flag, "="), "-")) {
		value = redact.Mark
	}
	text := s.flag
	if value != "" && !strings.HasSuffix(text, "=") {
		text += " "
	}
	return redact.Text(text + clip(value))
}

// put gives a flag of perflab bench.
func (d *draft) put(name, value string, bare bool) {
	d.flags = append(d.flags, Flag{Name: name, Value: value, Bare: bare})
}

// secrets refuses values that no command should show.
func (d *draft) secrets() {
	for _, f := range d.flags {
		if redact.Field(strings.TrimLeft(f.Name, "-"), f.Value) != f.Value {
			d.refuse(f.Name, "would show a secret: take it out, and give the key by OPENAI_API_KEY")
		}
	}
}

// set gives a flag with a value.
func (d *draft) set(name, value string) { d.put(name, value, false) }

// note tells of a flag.
func (d *draft) note(flag, text string) {
	n := Note{Flag: flag, Text: text}
	if !slices.Contains(d.notes, n) {
		d.notes = append(d.notes, n)
	}
}

// refuse tells of a flag that stands in the way.
func (d *draft) refuse(flag, text string) {
	d.refused = append(d.refused, fmt.Errorf("%s %s", redact.Text(shown(flag)), text))
}

// of is the flag that gave a fact.
func (d *draft) of(fact string) string { return d.given[fact] }

// order is that of the flags in a command: the server, what is sent, when.
var order = []string{
	"--base-url", "--host", "--port", "--backend", "--endpoint", "--model", "--served-model-name", "--header", "--extra-body", "--temperature", "--top-p", "--insecure",
	"--dataset-name", "--dataset-path", "--random-input-len", "--random-output-len", "--random-range-ratio", "--scenario", "--random-prefix-len",
	"--prefix-repetition-prefix-len", "--prefix-repetition-suffix-len", "--prefix-repetition-num-prefixes", "--prefix-repetition-output-len", "--ignore-eos",
	"--num-prompts", "--request-rate", "--arrival", "--burstiness", "--max-concurrency", "--duration", "--sweep", "--sweep-points",
}

// place is where a flag stands in a command; those without a place come last.
func place(name string) int {
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
}
