package interop

// fence is a fenced part of a document that is being read.
type fence struct {
	mark    string // "```"
	info    string // "bash"
	line    int    // where it opened
	caption string
	lines   []Text // that are of no block
	block   bool   // a block stands in it
}

// scanner reads a text line by line.
type scanner struct {
	doc     *Document
	name    string
	plain   bool // no Markdown: lines that name a model serve as headings
	n       int  // of the line
	path    []Section
	title   int // line of the document's
	fence   *fence
	caption string // last line of text that was not blank
	open    *openBlock
	note    []string // comment lines since the last block or fence
	sim     bool
	last    *openBlock // that was closed
	orphans orphans
	looked  int // lines below it begin no block without a head
	hidden  int // the last line that has a head beside other text
	events  []event
	faults  []Fault
}

// orphans are lines that follow each other and look like those of a block, but
// stand in none.
type orphans struct {
	first, last int // lines; 0 for none
	label       string
	told        bool
}

// event is what the attribution of facts goes by, in the order of the text.
type event struct {
	line    int
	section *Section
	script  *Script
	profile *profile // defined
	prose   *Text
	tail    *Text // a line of a fence
	block   *found
}

// found is a block with what stood around it.
type found struct {
	*openBlock
	section []string
	caption string
	note    string
	sim     bool
}

// section returns the headings above.
func (s *scanner) section() []string {
	if len(s.path) == 0 {
		return nil
	}
	return s.path[len(s.path)-1].Path
}

// profile is a named load that a fence of YAML defines.
type profile struct {
	name string // of the heading above it
	keys map[string]string
}
