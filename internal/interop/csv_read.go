package interop

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/result"
)

// csvHead is how a table of calls begins.
const csvHead = "index,target,session,"

// mostCSVFaults of one table are told one by one; the rest is counted.
const mostCSVFaults = 20

// csvReader is a table of calls while it is read.
type csvReader struct {
	name    string
	columns []*callColumn // by the place in the row; nil: not ours
	run     []*runColumn
	f       File
	r       Run
	faults  int
}

func (t *csvReader) fault(line int, format string, args ...any) {
	if t.faults++; t.faults <= mostCSVFaults {
		t.f.Faults = append(t.f.Faults, Fault{Place{File: t.name, Line: line}, fmt.Sprintf(format, args...)})
	}
}

// readCSV reads what CSV writes. A row that cannot be read is a fault and left
// out; columns that are not ours are left alone.
func readCSV(name string, data []byte) File {
	t := csvReader{name: name, f: File{Name: name}}
	in := csv.NewReader(bytes.NewReader(data))
	in.ReuseRecord, in.FieldsPerRecord = true, -1
	head, err := in.Read()
	if err != nil {
		t.fault(1, "the head of the table cannot be read (%v): export the run again", err)
		return t.f
	}
	if !t.head(head) {
		return t.f
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			t.fault(bad.Line, "the row cannot be read (%v): it is left out", bad.Err)
			continue
		}
		if err != nil {
			t.fault(0, "the table cannot be read to its end (%v)", err)
			break
		}
		line, _ := in.FieldPos(0)
		if len(row) != len(t.columns) {
			t.fault(line, "the row has %d fields and the head %d: it is left out", len(row), len(t.columns))
			continue
		}
		if err := t.row(row); err != nil {
			t.fault(line, "%v: the row is left out", err)
		}
	}
	if t.faults > mostCSVFaults {
		t.f.Faults = append(t.f.Faults, Fault{Place{File: name}, fmt.Sprintf("%d more rows are not as an export writes them", t.faults-mostCSVFaults)})
	}
	if len(t.r.Calls) == 0 {
		t.fault(1, "the table has no call")
		return t.f
	}
	t.r.Place = Place{File: name}
	t.r.Sim = t.r.Header.Simulated || t.r.Header.Predicted || slices.ContainsFunc(t.r.Calls, func(c result.Call) bool { return c.Sim })
	t.f.Runs = []Run{t.r}
	return t.f
}

// head finds the columns.
func (t *csvReader) head(head []string) bool {
	columns, constant := callColumns(), runColumns()
	t.columns, t.run = make([]*callColumn, len(head)), make([]*runColumn, len(head))
	found := map[string]bool{}
	for i, name := range head {
		found[name] = true
		if k := slices.IndexFunc(columns, func(c callColumn) bool { return c.name == name }); k >= 0 {
			t.columns[i] = &columns[k]
		}
		if k := slices.IndexFunc(constant, func(c runColumn) bool { return c.name == name }); k >= 0 {
			t.run[i] = &constant[k]
		}
	}
	var missing []string
	for _, c := range columns {
		if c.needed && !found[c.name] {
			missing = append(missing, c.name)
		}
	}
	if len(missing) > 0 {
		t.fault(1, "the table has no column %s: export the run again", strings.Join(missing, " and none "))
		return false
	}
	t.r.Header = result.Header{Imported: &result.Imported{Client: clientPerflab, Format: FormatCSV, File: t.name}}
	return true
}

// row takes one call.
func (t *csvReader) row(row []string) error {
	var c csvCall
	h := t.r.Header
	for i, text := range row {
		col := t.columns[i]
		switch {
		case text == "" && col != nil && col.needed:
			return fmt.Errorf("%s is empty", col.name)
		case text == "":
		case col != nil:
			if err := col.set(&c, text); err != nil {
				return fmt.Errorf("%s %w", col.name, err)
			}
		case t.run[i] != nil && len(t.r.Calls) == 0:
			if err := t.run[i].set(&h, text); err != nil {
				return fmt.Errorf("%s %w", t.run[i].name, err)
			}
		}
	}
	if err := c.join(); err != nil {
		return err
	}
	if len(t.r.Calls) == 0 {
		if h.Imported.Client == clientPerflab {
			h.Imported.Version = h.Version
		}
		t.r.Header, t.r.Defs, t.r.Lacks = h, h.Imported.Definitions, h.Imported.Lacks
		h.Imported.Definitions = nil // the run's
	}
	if c.model != t.r.Header.Model {
		c.Model = c.model
	}
	t.r.Calls = append(t.r.Calls, c.Call)
	return nil
}

// join makes of lists what they tell of.
func (c *csvCall) join() error {
	if c.said {
		u := c.usage
		c.Usage = &u
	}
	for _, l := range []struct {
		name     string
		got, all int
		of       string
	}{
		{"chunk_tokens", len(c.chunkTokens), len(c.chunkNS), "chunk_ns"}, {"chunk_read", len(c.chunkN), len(c.chunkNS), "chunk_ns"},
		{"empty_read", len(c.emptyN), len(c.emptyNS), "empty_ns"},
	} {
		if l.got != 0 && l.got != l.all {
			return fmt.Errorf("%s has %d numbers for %d in %s", l.name, l.got, l.all, l.of)
		}
	}
	for _, v := range slices.Concat(c.chunkTokens, c.chunkN, c.emptyN) {
		if v < math.MinInt32 || v > math.MaxInt32 {
			return fmt.Errorf("%d is too large a number of tokens or reads", v)
		}
	}
	for i, at := range c.chunkNS {
		k := result.Chunk{At: time.Duration(at), Tokens: 1}
		if len(c.chunkTokens) > 0 {
			k.Tokens = int32(c.chunkTokens[i])
		}
		if len(c.chunkN) > 0 {
			k.Read = int32(c.chunkN[i])
		}
		c.Chunks = append(c.Chunks, k)
	}
	for i, at := range c.emptyNS {
		s := result.Stamp{At: time.Duration(at)}
		if len(c.emptyN) > 0 {
			s.Read = int32(c.emptyN[i])
		}
		c.Empty = append(c.Empty, s)
	}
	return nil
}
