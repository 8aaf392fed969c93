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
	"perflab/internal/workload/blocktrace"
)

// mooncake is a trace of arrivals, lengths and shared prefixes.
func mooncake() dataset {
	return dataset{
		name: "mooncake", group: groupFile, trace: true,
		fill: func(s *Spec) { s.IgnoreEOS = true },
		read: readMooncake, isMadeUp: always, ofWords: always, shares: always,
		hint: ": a JSONL file with the keys timestamp, input_length, output_length and hash_ids" +
			" as in the traces that Mooncake publishes, or a recording of perflab record",
		title: func(s Spec) string { return ofFile("Mooncake trace", s) },
	}
}

// readMooncake reads a trace of arrivals, lengths and shared prefixes. Each
// hash id becomes a block of words that depends on the id and the seed alone,
// so prompts share exactly the prefixes that the original ones shared, and
// another seed finds nothing of an earlier run in a server's prefix cache.
func readMooncake(f *os.File, s Spec, p promptBuilder) (source, error) {
	src := source{drops: dropCounts{}}
	var rows []row
	var blocks []blocktrace.Row
	err := eachLine(f, func(line []byte) error {
		src.read++
		var m blocktrace.Row
		if err := strict(line, &m, blocktrace.Keys); err != nil {
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
		}
		if err := m.Check(); err != nil {
			return err
		}
		r.at = time.Duration(math.Round(m.Timestamp * 1e6))
		rows = append(rows, r)
		blocks = append(blocks, blocktrace.Row{IDs: m.IDs, Block: m.Tokens()})
		return nil
	})
	if err != nil {
		return source{}, err
	}
	cut, order, err := cutTrace(s, rows)
	src.rows = cut
	src.prompt = func(i int) string { return p.blocks(s.Seed, blocks[order[i]], cut[i].input) }
	src.shared = func(i int) (all []reuse.Piece) {
		r := blocks[order[i]]
		for k, id := range r.IDs {
			all = append(all, reuse.Piece{ID: reuse.Name("block", id), Tokens: min(r.Block, cut[i].input-k*r.Block)})
		}
		return all
	}
	return src, err
}

// blocks joins the blocks of a row, the last one cut to n words in all.
func (p promptBuilder) blocks(seed uint64, r blocktrace.Row, n int) string {
	var b strings.Builder
	b.Grow(bytesFor(n))
	for _, id := range r.IDs {
		p.writeWords(&b, stat.Stream(seed, "block "+strconv.FormatInt(id, 10)), min(n, r.Block))
		n -= r.Block
	}
	return trimSpace(&b)
}
