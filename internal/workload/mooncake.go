package workload

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"perflab/internal/reuse"
	"perflab/internal/stat"
)

// mooncake is a trace of arrivals, lengths and shared prefixes.
func mooncake() dataset {
	return dataset{
		name: "mooncake", group: groupFile, trace: true,
		fill: func(s *Spec) { s.IgnoreEOS = true },
		read: readMooncake, isMadeUp: always, ofWords: always, shares: always,
		hint: ": a JSONL file with the keys timestamp, input_length, output_length and hash_ids" +
			" as in the traces that Mooncake publishes",
		title: func(s Spec) string { return ofFile("Mooncake trace", s) },
	}
}

// mooncakeBlock is how many tokens one hash id stands for in the published
// traces.
const mooncakeBlock = 512

// mooncakeRow is one line of a trace. A hash id names the content of a block
// and of all blocks before it.
type mooncakeRow struct {
	Timestamp float64 `json:"timestamp"` // ms
	Input     int     `json:"input_length"`
	Output    int     `json:"output_length"`
	HashIDs   []int64 `json:"hash_ids"`
}

// readMooncake reads a trace of arrivals, lengths and shared prefixes. Each
// hash id becomes a block of words that depends on the id and the seed alone,
// so prompts share exactly the prefixes that the original ones shared, and
// another seed finds nothing of an earlier run in a server's prefix cache.
func readMooncake(f *os.File, s Spec, p promptBuilder) (source, error) {
	src := source{drops: dropCounts{}}
	var rows []row
	var ids [][]int64
	err := eachLine(f, func(line []byte) error {
		src.read++
		var m mooncakeRow
		if err := strict(line, &m, "timestamp, input_length, output_length, hash_ids"); err != nil {
			return err
		}
		r := row{input: m.Input, output: m.Output}
		reason, err := traceFault(r)
		switch ms := m.Timestamp; {
		case err != nil:
			return err
		case reason != "":
			src.drops[reason]++
			return nil
		case math.Abs(ms) > float64(maxSpan/time.Millisecond):
			return fmt.Errorf("timestamp %g ms is out of range", ms)
		case len(m.HashIDs) != (m.Input+mooncakeBlock-1)/mooncakeBlock:
			return fmt.Errorf("%d hash_ids of %d tokens each do not make an input_length of %d",
				len(m.HashIDs), mooncakeBlock, m.Input)
		}
		r.at = time.Duration(math.Round(m.Timestamp * 1e6))
		rows = append(rows, r)
		ids = append(ids, m.HashIDs)
		return nil
	})
	if err != nil {
		return source{}, err
	}
	cut, order, err := cutTrace(s, rows)
	src.rows = cut
	src.prompt = func(i int) string { return p.blocks(s.Seed, ids[order[i]], cut[i].input) }
	src.shared = func(i int) (all []reuse.Piece) {
		for k, id := range ids[order[i]] {
			all = append(all, reuse.Piece{ID: reuse.Name("block", id), Tokens: min(mooncakeBlock, cut[i].input-k*mooncakeBlock)})
		}
		return all
	}
	return src, err
}

// blocks joins the blocks of ids, the last one cut to n words in all.
func (p promptBuilder) blocks(seed uint64, ids []int64, n int) string {
	var b strings.Builder
	b.Grow(bytesFor(n))
	for _, id := range ids {
		p.writeWords(&b, stat.Stream(seed, "block "+strconv.FormatInt(id, 10)), min(n, mooncakeBlock))
		n -= mooncakeBlock
	}
	return trimSpace(&b)
}
