package record

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"perflab/internal/durable"
	"perflab/internal/input"
	"perflab/internal/jsonl"
	"perflab/internal/workload/agents"
	"perflab/internal/workload/blocktrace"
)

// Sessions makes sessions of the lines of recordings: each request waits for those of its session that had ended
// when it came, and for the idle time after the last of them.
func Sessions(rows []blocktrace.Row) []agents.Session {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b blocktrace.Row) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	type group struct {
		rows []blocktrace.Row
		name string
	}
	var groups []*group
	byName := map[string]*group{}
	for i, r := range rows {
		key := r.Session + " " + strconv.Itoa(r.Tokens())
		if r.Session == "" {
			key = "line " + strconv.Itoa(i) // it belongs to none
		}
		g := byName[key]
		if g == nil {
			g = &group{name: cmp.Or(r.Session, "alone-"+strconv.Itoa(i+1))}
			byName[key] = g
			groups = append(groups, g)
		}
		g.rows = append(g.rows, r)
	}
	out := make([]agents.Session, len(groups))
	for i, g := range groups {
		out[i] = session(g.name, g.rows)
	}
	return out
}

// session makes a session of its lines, in the order of their times.
func session(name string, rows []blocktrace.Row) agents.Session {
	s := agents.Session{ID: name, Block: rows[0].Tokens(), Global: true}
	for i, r := range rows {
		t := agents.Turn{Input: r.Input, Output: r.Output, Blocks: r.IDs}
		since := rows[0].Timestamp
		t.After, since = before(rows[:i], r.Timestamp, since)
		t.Idle = time.Duration(max(0, r.Timestamp-since)*1e3) * time.Microsecond
		s.Turns = append(s.Turns, t)
	}
	return s
}

// before are those of the lines that had ended at an instant, without those that others of them waited for,
// and when the last of them ended.
func before(rows []blocktrace.Row, at, since float64) ([]int, float64) {
	latest := 0.0 // start of the last one that had ended
	for _, r := range rows {
		if r.End() <= at {
			latest = max(latest, r.Timestamp)
		}
	}
	var after []int
	for k, r := range rows {
		if r.End() <= at {
			since = max(since, r.End())
			if r.End() > latest {
				after = append(after, k)
			}
		}
	}
	return after, since
}

// Read reads the lines of a recording. A last line that a kill has cut is left out.
func Read(path string) ([]blocktrace.Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	defer f.Close()
	var rows []blocktrace.Row
	for r, err := range jsonl.Read(input.Lines(f, "the recording", maxBody), "a request of a recording", readRow) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func readRow(line []byte, r *blocktrace.Row) error {
	if err := json.Unmarshal(line, r); err != nil {
		return err
	}
	return r.Check()
}

// Converted is what sessions were made of.
type Converted struct {
	Summary
	Sessions int
	AtOnce   int // of them, at most
}

// Convert makes a file of sessions, one a line, of a recording's lines.
func Convert(path, out string) (c Converted, err error) {
	rows, err := Read(path)
	if err != nil {
		return c, err
	}
	if len(rows) == 0 {
		return c, fmt.Errorf("%s has no request", path)
	}
	c.Summary = newSummary(rows[0].Tokens())
	for _, r := range rows {
		c.Summary.add(r)
	}
	all := Sessions(rows)
	c.Sessions, c.AtOnce = len(all), atOnce(rows)
	return c, durable.Replace(out, func(w io.Writer) error { return writeSessions(w, all) })
}

func writeSessions(w io.Writer, all []agents.Session) error {
	b := bufio.NewWriter(w)
	for _, s := range all {
		line, err := s.Native()
		if err != nil {
			return err
		}
		if _, err := b.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return b.Flush()
}
