package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/field"
)

// dataset is a row of the registry: all that is known of one kind of dataset.
// Functions that are nil do nothing, say no, or have nothing to say. Those that
// take one spec are given it with its defaults filled in.
type dataset struct {
	name     string
	group    string  // heading under which its fields stand in a help text
	params   []param // fields of Spec that apply to it, but not to all
	trace    bool    // its rows have arrival times of their own, and are not repeated
	sessions bool    // its requests are turns of conversations
	whole    bool    // and each turn has its whole prompt as one text, which any API takes
	unit     string  // what its sessions are called; "": a conversation

	fill  func(s *Spec)                                             // writes defaults
	size  func(s *Spec, n int)                                      // makes it n requests at least, where not any number will do
	check func(s, d Spec, f *faults)                                // of a spec s, d with its defaults, whose numbers are in range
	open  func(s Spec, p promptBuilder) (source, error)             // makes requests up; nil: it needs a file
	read  func(f *os.File, s Spec, p promptBuilder) (source, error) // of a file; nil: it takes none
	find  func(s Spec, p promptBuilder) (source, error)             // of what the path names, which need not be a file, in place of read
	hint  string                                                    // where its file comes from, behind a sentence; other fields stand in brackets

	isMadeUp func(s Spec) bool // prompts are made from the seed alone, of given lengths
	ofWords  func(s Spec) bool // and of words that are to be single tokens
	slow     func(s Spec) bool // to make further requests up takes too long during a run
	shares   func(s Spec) bool // requests have the same beginnings on purpose

	title   func(s Spec) string
	lengths func(s Spec) string                          // nil or "": the averages say it
	known   func(s Spec, t Totals, tok Tokenizer) string // see Workload.Known; the totals are without a nonce
}

// Headings of fields in a help text.
const (
	groupMadeUp        = "Made-up prompts"
	groupFile          = "Prompts of a file"
	groupConversations = "Conversations"
	groupAgents        = "Agent sessions"
)

// param is a field of Spec that applies to a dataset, but not to all.
type param struct {
	key      string // in JSON
	help     string // behind the dataset's name and a colon; behind "..." it follows the name itself; "": nothing is said of it
	standard int    // its default, where it is a whole number
	limit    int    // the greatest whole number; 0: maxTokens
	positive bool   // 0 stands for the default and cannot be asked for
	minusOne bool   // -1 has a meaning of its own
}

// Fields that several datasets have alike.
var (
	keepOrder    = param{key: "disable_shuffle", help: "keep the file's order"}
	groupByGroup = param{key: "disable_shuffle", help: "group by group"}
	noRepeats    = param{key: "no_oversample", help: "send fewer requests rather than repeat some"}
	madeUpImages = param{key: "random_images", help: "made-up images in each request", limit: maxImages}
)

func always(Spec) bool { return true }

func withoutFile(s Spec) bool { return s.Path == "" }

// is asks the dataset of a spec a question that it may not know.
func is(question func(Spec) bool, s Spec) bool { return question != nil && question(s) }

// param is the dataset's field with a key.
func (d dataset) param(key string) (param, bool) {
	i := slices.IndexFunc(d.params, func(p param) bool { return p.key == key })
	if i < 0 {
		return param{}, false
	}
	return d.params[i], true
}

// ofFile is a title with the name of a file.
func ofFile(title string, s Spec, more ...string) string {
	return title + " (" + strings.Join(append([]string{filepath.Base(s.Path)}, more...), ", ") + ")"
}

// load reads or makes up the dataset of a valid spec with its defaults filled in.
func (d dataset) load(s Spec, p promptBuilder) (source, error) {
	if s.Path == "" {
		return d.open(s, p)
	}
	src, err := d.readPath(s, p)
	if _, ok := errors.AsType[*field.Error](err); ok {
		return source{}, err
	}
	if err != nil {
		return source{}, fmt.Errorf("read %s dataset %s: %w", s.Dataset, s.Path, err)
	}
	if len(src.rows) == 0 {
		return source{}, fmt.Errorf("%s dataset %s has no usable row: %s", s.Dataset, s.Path, src.drops.sentence(src.read))
	}
	return src, nil
}

// takesPath reports whether the dataset can be read.
func (d dataset) takesPath() bool { return d.read != nil || d.find != nil }

// readPath reads what the path of a spec names.
func (d dataset) readPath(s Spec, p promptBuilder) (source, error) {
	if d.find != nil {
		return d.find(s, p)
	}
	f, err := os.Open(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return source{}, field.Errorf("dataset_path", "%s does not exist"+d.hint, s.Path)
	} else if err != nil {
		return source{}, field.Errorf("dataset_path", "cannot be opened: %v", err)
	}
	defer f.Close()
	return d.read(f, s, p)
}
