package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// azureColumns head the CSV files of the Azure LLM inference traces.
var azureColumns = []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}

// readAzure reads a trace of arrivals and lengths; the prompts are random
// words of that length.
func readAzure(f io.Reader, s Spec, k kit) (source, error) {
	in := csv.NewReader(f)
	in.ReuseRecord = true
	column, err := csvColumns(in, azureColumns)
	if err != nil {
		return source{}, err
	}
	src := source{drops: drops{}}
	var rows []row
	var first time.Time
	for {
		rec, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return source{}, err // names the line
		}
		line, _ := in.FieldPos(0)
		r, at, err := azureRow(rec[column[0]], rec[column[1]], rec[column[2]])
		if err != nil {
			return source{}, fmt.Errorf("line %d: %w", line, err)
		}
		if src.read++; src.read == 1 {
			first = at
		}
		if r.at = at.Sub(first); r.at.Abs() > maxSpan {
			return source{}, fmt.Errorf("line %d: TIMESTAMP is years away from the first row's", line)
		}
		reason, err := traceFault(r)
		if err != nil {
			return source{}, fmt.Errorf("line %d: %w", line, err)
		} else if reason != "" {
			src.drops[reason]++
			continue
		}
		rows = append(rows, r)
	}
	src.rows, _, err = cutTrace(s, rows)
	src.prompt = func(i int) string { return k.prompt(s.Seed, i, src.rows[i].input) }
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

func azureRow(stamp, input, output string) (r row, at time.Time, err error) {
	// Parse takes a fraction of any length behind the seconds. The traces of
	// 2024 add a zone.
	if at, err = time.Parse("2006-01-02 15:04:05", stamp); err != nil {
		if at, err = time.Parse("2006-01-02 15:04:05Z07:00", stamp); err != nil {
			return r, at, fmt.Errorf("TIMESTAMP %q is not of the form 2023-11-16 18:17:03.9799600", stamp)
		}
	}
	if r.input, err = strconv.Atoi(input); err != nil {
		return r, at, fmt.Errorf("ContextTokens %q is not a whole number", input)
	}
	if r.output, err = strconv.Atoi(output); err != nil {
		return r, at, fmt.Errorf("GeneratedTokens %q is not a whole number", output)
	}
	return r, at, nil
}
