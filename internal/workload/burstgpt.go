package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// burstColumns head the CSV files of the BurstGPT traces; further ones may
// stand beside them.
var burstColumns = []string{"Timestamp", "Model", "Request tokens", "Response tokens"}

// readBurstGPT reads a trace of arrivals and lengths, of one model's rows or
// of all; the prompts are random words of that length. A row without response
// tokens is a request that failed.
func readBurstGPT(f io.Reader, s Spec, k kit) (source, error) {
	in := csv.NewReader(f)
	in.ReuseRecord = true
	column, err := csvColumns(in, burstColumns)
	if err != nil {
		return source{}, err
	}
	src := source{drops: drops{}}
	var rows []row
	var first float64
	for {
		rec, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return source{}, err // names the line
		}
		line, _ := in.FieldPos(0)
		r, seconds, err := burstRow(rec[column[0]], rec[column[2]], rec[column[3]])
		if err != nil {
			return source{}, fmt.Errorf("line %d: %w", line, err)
		}
		if src.read++; src.read == 1 {
			first = seconds
		}
		if math.Abs(seconds-first) > maxSpan.Seconds() {
			return source{}, fmt.Errorf("line %d: Timestamp is years away from the first row's", line)
		}
		r.at = time.Duration(math.Round((seconds - first) * 1e9))
		reason, err := traceFault(r)
		switch {
		case err != nil:
			return source{}, fmt.Errorf("line %d: %w", line, err)
		case s.BurstGPTModel != "" && rec[column[1]] != s.BurstGPTModel:
			reason = "of another model than " + s.BurstGPTModel
		}
		if reason != "" {
			src.drops[reason]++
			continue
		}
		rows = append(rows, r)
	}
	src.rows, _, err = cutTrace(s, rows)
	src.prompt = func(i int) string { return k.prompt(s.Seed, i, src.rows[i].input) }
	return src, err
}

func burstRow(stamp, input, output string) (r row, seconds float64, err error) {
	seconds, err = strconv.ParseFloat(stamp, 64)
	if err != nil || math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return r, 0, fmt.Errorf("the Timestamp %q is not a number of seconds", stamp)
	}
	if r.input, err = strconv.Atoi(input); err != nil {
		return r, 0, fmt.Errorf("the Request tokens %q are not a whole number", input)
	}
	if r.output, err = strconv.Atoi(output); err != nil {
		return r, 0, fmt.Errorf("the Response tokens %q are not a whole number", output)
	}
	return r, seconds, nil
}
