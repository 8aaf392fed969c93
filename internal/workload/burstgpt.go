package workload

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// burstColumns head the CSV files of the BurstGPT traces; further ones may
// stand beside them.
var burstColumns = []string{"Timestamp", "Model", "Request tokens", "Response tokens"}

// burstGPT is a trace of requests to OpenAI's models.
func burstGPT() dataset {
	return dataset{
		name: "burstgpt", group: groupFile, trace: true,
		params: []param{
			{key: "burstgpt_model", help: "rows of this model only, such as GPT-4, which are those that vLLM takes (default: all)"},
		},
		fill: func(s *Spec) { s.IgnoreEOS = true },
		read: readBurstGPT, isMadeUp: always, ofWords: always,
		hint: ": a CSV file with the columns " + strings.Join(burstColumns, ", ") +
			" as in the BurstGPT traces on GitHub",
		title: func(s Spec) string {
			if s.BurstGPTModel != "" {
				return ofFile("BurstGPT trace", s, s.BurstGPTModel)
			}
			return ofFile("BurstGPT trace", s)
		},
	}
}

// readBurstGPT reads a trace of arrivals and lengths, of one model's rows or
// of all; the prompts are random words of that length. A row without response
// tokens is a request that failed.
func readBurstGPT(f *os.File, s Spec, p promptBuilder) (source, error) {
	first := math.NaN()
	return readCSV(f, s, p, burstColumns, func(field []string) (r row, reason string, err error) {
		r, seconds, err := burstRow(field[0], field[2], field[3])
		if err != nil {
			return r, "", err
		}
		if math.IsNaN(first) {
			first = seconds
		}
		if math.Abs(seconds-first) > maxSpan.Seconds() {
			return r, "", errors.New("the Timestamp is years away from the first row's")
		}
		r.at = time.Duration(math.Round((seconds - first) * 1e9))
		if s.BurstGPTModel != "" && field[1] != s.BurstGPTModel {
			reason = "of another model than " + s.BurstGPTModel
		}
		return r, reason, nil
	})
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
