package workload

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// azureColumns head the CSV files of the Azure LLM inference traces.
var azureColumns = []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}

// azure is a trace of Azure's LLM inference service.
func azure() dataset {
	return dataset{
		name: "azure", group: groupFile, trace: true,
		fill: func(s *Spec) { s.IgnoreEOS = true },
		read: readAzure, isMadeUp: always, ofWords: always,
		hint: ": a CSV file with the columns " + strings.Join(azureColumns, ", ") +
			" as in AzurePublicDataset on GitHub",
		title: func(s Spec) string { return ofFile("Azure trace", s) },
	}
}

// readAzure reads a trace of arrivals and lengths; the prompts are random
// words of that length.
func readAzure(f *os.File, s Spec, p promptBuilder) (source, error) {
	var first *time.Time
	return readCSV(f, s, p, azureColumns, func(field []string) (r row, reason string, err error) {
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
