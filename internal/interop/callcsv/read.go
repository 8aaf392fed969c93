package callcsv

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

// tableHead is how a table of calls begins.
const tableHead = "index,target,"

// Is reports whether a file begins as a table of calls.
func Is(data []byte) bool { return bytes.HasPrefix(data, []byte(tableHead)) }

// mostFaults of one table are told one by one; the rest is counted.
const mostFaults = 20

// perflab is the client of a run that names none.
const perflab = "perflab bench"

// Table is what a file holds. Header.Imported says who measured, and nothing of
// the file.
type Table struct {
	Header      result.Header
	Definitions map[string]result.Definition // of figures that are not ours
	Lacks       []string                     // figures that the calls cannot give
	Calls       []result.Call
	Faults      []Fault
}

// Fault is a row that could not be read.
type Fault struct {
	Line int // 0: the whole file
	Text string
}

// tableReader is a table of calls while it is read.
type tableReader struct {
	Table
	columns []*callColumn // by the place in the row; nil: not ours
	run     []*runColumn
	faults  int
}

func (t *tableReader) fault(line int, format string, args ...any) {
	if t.faults++; t.faults <= mostFaults {
		t.Faults = append(t.Faults, Fault{line, fmt.Sprintf(format, args...)})
	}
}

// Read reads what Write writes. Columns that are not ours are left alone.
func Read(data []byte) Table {
	t := tableReader{}
	in := csv.NewReader(bytes.NewReader(data))
	in.ReuseRecord, in.FieldsPerRecord = true, -1
	head, err := in.Read()
	if err != nil {
		t.fault(1, "the head of the table cannot be read (%v): export the run again", err)
		return t.Table
	}
	if !t.head(head) {
		return t.Table
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
	if t.faults > mostFaults {
		t.Faults = append(t.Faults, Fault{0, fmt.Sprintf("%d more rows are not as an export writes them", t.faults-mostFaults)})
	}
	if len(t.Calls) == 0 {
		t.fault(1, "the table has no call")
	}
	return t.Table
}

// head finds the columns.
func (t *tableReader) head(head []string) bool {
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
	t.Header = result.Header{Imported: &result.Imported{Client: perflab}}
	return true
}

// row takes one call.
func (t *tableReader) row(row []string) error {
	var c rowCall
	h := t.Header
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
		case t.run[i] != nil && len(t.Calls) == 0:
			if err := t.run[i].set(&h, text); err != nil {
				return fmt.Errorf("%s %w", t.run[i].name, err)
			}
		}
	}
	if err := c.join(); err != nil {
		return err
	}
	if len(t.Calls) == 0 {
		if h.Imported.Client == perflab {
			h.Imported.Version = h.Version
		}
		t.Header, t.Definitions, t.Lacks = h, h.Imported.Definitions, h.Imported.Lacks
		h.Imported.Definitions = nil // the run's
	}
	if c.model != t.Header.Model {
		c.Model = c.model
	}
	t.Calls = append(t.Calls, c.Call)
	return nil
}

// join makes of lists what they tell of.
func (c *rowCall) join() error {
	if c.said {
		u := c.usage
		c.Usage = &u
	}
	if c.guessed {
		g := c.guesses
		c.Speculation = &g
	} else if len(c.byStep) > 0 {
		return errors.New("spec_by_step tells of guesses and spec_accepted does not")
	}
	for _, l := range []struct {
		name     string
		got, all int
		of       string
	}{
		{"chunk_tokens", len(c.chunkTokens), len(c.chunkNS), "chunk_ns"}, {"chunk_read", len(c.chunkN), len(c.chunkNS), "chunk_ns"},
		{"empty_read", len(c.emptyN), len(c.emptyNS), "empty_ns"}, {"late_read", len(c.lateN), len(c.lateNS), "late_ns"},
	} {
		if (l.got != 0 || l.name == "late_read") && l.got != l.all {
			return fmt.Errorf("%s has %d numbers for %d in %s", l.name, l.got, l.all, l.of)
		}
	}
	for _, v := range slices.Concat(c.chunkTokens, c.chunkN, c.emptyN, c.lateN, c.byStep) {
		if v < math.MinInt32 || v > math.MaxInt32 {
			return fmt.Errorf("%d is too large a number of tokens, reads or steps", v)
		}
	}
	for i, by := range c.lateNS {
		c.Late = append(c.Late, result.LateRead{Read: int32(c.lateN[i]), By: time.Duration(by)})
	}
	for _, n := range c.byStep {
		c.Speculation.ByStep = append(c.Speculation.ByStep, int32(n))
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
