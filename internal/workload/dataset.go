package workload

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perflab/internal/field"
	"perflab/internal/stat"
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

	fill  func(s *Spec)                                             // writes defaults
	size  func(s *Spec, n int)                                      // makes it n requests at least, where not any number will do
	check func(s, d Spec, f *faults)                                // of a spec s, d with its defaults, whose numbers are in range
	open  func(s Spec, p promptBuilder) (source, error)             // makes requests up; nil: it needs a file
	read  func(f *os.File, s Spec, p promptBuilder) (source, error) // of a file; nil: it takes none
	hint  string                                                    // where its file comes from, behind a sentence; other fields stand in brackets

	isMadeUp func(s Spec) bool // prompts are made from the seed alone, of given lengths
	ofWords  func(s Spec) bool // and of words that are to be single tokens
	slow     func(s Spec) bool // to make further requests up takes too long during a run
	shares   func(s Spec) bool // requests have the same beginnings on purpose

	title   func(s Spec) string
	lengths func(s Spec) string      // nil or "": the averages say it
	known   func(w *Workload) string // see Workload.Known
}

// Headings of fields in a help text.
const (
	groupMadeUp        = "Made-up prompts"
	groupFile          = "Prompts of a file"
	groupConversations = "Conversations"
)

// param is a field of Spec that applies to a dataset, but not to all.
type param struct {
	key      string // in JSON
	help     string // behind the dataset's name and a colon; behind "..." it follows the name itself; "": nothing is said of it
	standard int    // its default, where it is a whole number
	limit    int    // the greatest whole number; 0: maxTokens
	positive bool   // 0 stands for the default and cannot be asked for
}

// Fields that several datasets have alike.
var (
	keepOrder    = param{key: "disable_shuffle", help: "keep the file's order"}
	groupByGroup = param{key: "disable_shuffle", help: "group by group"}
	noRepeats    = param{key: "no_oversample"}
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

// row is what is kept of one request of a dataset.
type row struct {
	input, output int           // tokens
	at            time.Duration // offset within a trace
	documents     int           // beside the prompt
}

// texts is how many texts the request has.
func (r row) texts() int { return 1 + r.documents }

// source is a dataset cut to the requests of a workload.
type source struct {
	rows   []row
	prompt func(i int) string // builds the prompt of rows[i]; pure
	read   int                // rows of the file that were looked at
	drops  drops

	fill          func(i int, r *Request) // adds what rows[i] has beside its prompt; nil: nothing
	conversations []conversation          // conversations by row; nil: requests stand alone
	chat          string                  // what of the rows only a chat API can send; "": nothing
	first         []int                   // index of each conversation's first turn
	ids           bool                    // of ids in place of text

	estimated bool // lengths are by package token, whatever the tokenizer
}

// load reads or makes up the dataset of a valid spec with its defaults filled in.
func (d dataset) load(s Spec, p promptBuilder) (source, error) {
	if s.Path == "" {
		return d.open(s, p)
	}
	f, err := os.Open(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return source{}, field.Errorf("dataset_path", "%s does not exist"+d.hint, s.Path)
	} else if err != nil {
		return source{}, field.Errorf("dataset_path", "cannot be opened: %v", err)
	}
	defer f.Close()
	src, err := d.read(f, s, p)
	if err != nil {
		return source{}, fmt.Errorf("read %s dataset %s: %w", s.Dataset, s.Path, err)
	}
	if len(src.rows) == 0 {
		return source{}, fmt.Errorf("%s dataset %s has no usable row: %s", s.Dataset, s.Path, src.drops.sentence(src.read))
	}
	return src, nil
}

// drops counts left out rows by reason, a phrase that reads after "rows".
type drops map[string]int

func (d drops) list() []Drop {
	var out []Drop
	for _, reason := range slices.Sorted(maps.Keys(d)) {
		out = append(out, Drop{reason, d[reason]})
	}
	slices.SortStableFunc(out, func(a, b Drop) int { return cmp.Compare(b.Rows, a.Rows) })
	return out
}

func (d drops) sentence(read int) string {
	if read == 0 {
		return "it has no rows at all"
	}
	parts := []string{fmt.Sprintf("%d read", read)}
	for _, x := range d.list() {
		parts = append(parts, fmt.Sprintf("%d %s", x.Rows, x.Reason))
	}
	return strings.Join(parts, ", ")
}

// shuffled returns the indexes below n in random order, or in file order.
func shuffled(s Spec, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if !s.DisableShuffle {
		rng := stat.Stream(s.Seed, "dataset shuffle")
		rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return order
}

// number gives each turn of each conversation its index.
func (src *source) number() {
	if src.conversations == nil {
		return
	}
	src.first = make([]int, len(src.rows)+1)
	for i := range src.rows {
		src.first[i+1] = src.first[i] + len(src.conversations[i].turns)
	}
}

// turns is how many turns all conversations have.
func (src *source) turns() int {
	if src.conversations == nil {
		return 0
	}
	return src.first[len(src.rows)]
}

// reorder makes what rows have beside their prompts that of the rows that
// order names.
func (src *source) reorder(order []int) {
	if fill := src.fill; fill != nil {
		src.fill = func(i int, r *Request) { fill(order[i], r) }
	}
	if all := src.conversations; all != nil {
		src.conversations = make([]conversation, len(order))
		for i, k := range order {
			src.conversations[i] = all[k]
		}
	}
}

// sample makes the requests of src those of its rows that order names, as many
// as the spec asks for: the first ones, and beyond their number, unless told
// not to, again at random.
func sample(s Spec, src source, prompts []string, order []int) source {
	n := len(order)
	count := cmp.Or(s.NumPrompts, n)
	rng := stat.Stream(s.Seed, "dataset oversample")
	for n > 0 && len(order) < count && !s.NoOversample {
		order = append(order, order[rng.IntN(n)])
	}
	order = order[:min(count, len(order))]
	rows := make([]row, len(order))
	for i, k := range order {
		rows[i] = src.rows[k]
	}
	src.rows = rows
	src.prompt = func(i int) string { return prompts[order[i]] }
	src.reorder(order)
	return src
}
