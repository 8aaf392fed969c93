package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"perflab/internal/reuse"
	"perflab/internal/stat"
)

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
	drops  dropCounts

	shared        func(i int) []reuse.Piece // what rows[i] begins with and others too; nil: nothing, or it is not known
	fill          func(i int, r *Request)   // adds what rows[i] has beside its prompt; nil: nothing
	conversations []conversation            // conversations by row; nil: requests stand alone
	chat          string                    // what of the rows only a chat API can send; "": nothing
	first         []int                     // index of each conversation's first turn
	cuts          Cuts                      // requests of sessions of agents
	rounds        int                       // how often the rows go through all sessions of agents
	ids           bool                      // of ids in place of text

	estimated bool // lengths are by package token, whatever the tokenizer
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

// ofIDs returns the source with ids in place of prompts.
func (src source) ofIDs(ids func(i int) []int32) source {
	src.ids = true
	src.prompt = func(int) string { return "" }
	src.fill = func(i int, r *Request) { r.IDs = ids(i) }
	return src
}

// dropCounts counts left out rows by reason, a phrase that reads after "rows".
type dropCounts map[string]int

func (d dropCounts) list() []Drop {
	var out []Drop
	for _, reason := range slices.Sorted(maps.Keys(d)) {
		out = append(out, Drop{reason, d[reason]})
	}
	slices.SortStableFunc(out, func(a, b Drop) int { return cmp.Compare(b.Rows, a.Rows) })
	return out
}

func (d dropCounts) sentence(read int) string {
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

// sample makes the requests of src those of its rows that order names, as many
// as the spec asks for: the first ones, and beyond their number, unless
// no_oversample is set, again at random.
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
