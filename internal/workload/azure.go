package workload

import (
	"cmp"
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
func readAzure(f io.Reader, s Spec, k promptBuilder) (source, error) {
	var first *time.Time
	return readCSV(f, s, k, azureColumns, func(field []string) (r row, reason string, err error) {
		r, at, err := azureRow(field[0], field[1], field[2])
		if err != nil {
			return r, "", err
		}
		if first == nil {
			first = &at
		}
		if r.at = at.Sub(*first); r.at.Abs() > maxSpan {
			return r, "", errors.New("TIMESTAMP is years away from the first row's")
		}
		return r, "", nil
	})
}

// readCSV reads a trace with its columns named in the first line. read takes
// the fields of a row and may say why to leave it out.
func readCSV(f io.Reader, s Spec, k promptBuilder, names []string, read func(field []string) (r row, reason string, err error)) (source, error) {
	in := csv.NewReader(f)
	in.ReuseRecord = true
	column, err := csvColumns(in, names)
	if err != nil {
		return source{}, err
	}
	src := source{drops: drops{}}
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
