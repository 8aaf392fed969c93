package workload

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"perflab/internal/field"
	"perflab/internal/input"
)

// readCSV reads a trace with its columns named in the first line. read takes
// the fields of a row and may say why to leave it out.
func readCSV(f io.Reader, s Spec, p promptBuilder, names []string, read func(field []string) (r row, reason string, err error)) (source, error) {
	in := csv.NewReader(input.Lines(f, "the file", mostLine))
	in.ReuseRecord = true
	column, err := csvColumns(in, names)
	if err != nil {
		return source{}, err
	}
	src := source{drops: dropCounts{}}
	var rows []row
	field := make([]string, len(names))
	for {
		rec, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return source{}, err // names the line
		}
		for i, at := range column {
			field[i] = rec[at]
		}
		line, _ := in.FieldPos(0)
		r, other, err := read(field)
		reason := ""
		if err == nil {
			reason, err = traceFault(r)
		}
		if err != nil {
			return source{}, fmt.Errorf("line %d: %w", line, err)
		}
		src.read++
		if reason = cmp.Or(other, reason); reason != "" {
			src.drops[reason]++
			continue
		}
		rows = append(rows, r)
	}
	src.rows, _, err = cutTrace(s, rows)
	src.prompt = func(i int) string { return p.prompt(s.Seed, i, src.rows[i].input) }
	return src, err
}

// csvColumns reads the first line and returns where the named columns are.
func csvColumns(in *csv.Reader, names []string) ([]int, error) {
	head, err := in.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	at := make([]int, len(names))
	for i, name := range names {
		at[i] = slices.IndexFunc(head, func(h string) bool { return strings.TrimPrefix(h, "\ufeff") == name })
		if at[i] < 0 {
			return nil, fmt.Errorf("its first line must name the columns %s", strings.Join(names, ", "))
		}
	}
	return at, nil
}

// cutTrace keeps the first rows of a trace in order of time, and returns for
// each which row of the file order it was.
func cutTrace(s Spec, rows []row) ([]row, []int, error) {
	if s.NumPrompts > len(rows) && len(rows) > 0 {
		return nil, nil, field.Errorf("num_prompts", "%d is more than its %d usable rows, and a trace is not repeated", s.NumPrompts, len(rows))
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rows[a].at, rows[b].at) })
	if s.NumPrompts > 0 {
		order = order[:min(s.NumPrompts, len(order))]
	}
	cut := make([]row, len(order))
	for i, k := range order {
		cut[i] = rows[k]
	}
	return cut, order, nil
}

// traceFault returns why a row of a trace cannot be replayed; err is for
// numbers that no trace has.
func traceFault(r row) (reason string, err error) {
	switch {
	case r.input < 0 || r.output < 0:
		return "", fmt.Errorf("negative length (%d input, %d output tokens)", r.input, r.output)
	case r.input > maxTokens || r.output > maxTokens:
		return "", fmt.Errorf("%d input and %d output tokens are over the limit of %d", r.input, r.output, maxTokens)
	case r.input == 0:
		return "with no input tokens", nil
	case r.output == 0:
		return "with no output tokens", nil
	}
	return "", nil
}
