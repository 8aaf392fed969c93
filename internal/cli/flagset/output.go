package flagset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// AddFiles adds the flags of the files that bench and report write of a run.
func AddFiles(fs *pflag.FlagSet, html, parquet *string) {
	fs.StringVar(html, "html", "", "write the report as one self-contained HTML file")
	fs.StringVar(parquet, "parquet", "", "write the calls of the run as a Parquet file, one row a call")
}

// Percentiles reads --metric-percentiles.
func Percentiles(text string) ([]float64, error) {
	var out []float64
	for part := range strings.SplitSeq(text, ",") {
		p, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return nil, fmt.Errorf("--metric-percentiles has %q: write numbers such as 50,95,99.9", part)
		}
		if !(p > 0 && p < 100) { // nor NaN
			return nil, fmt.Errorf("--metric-percentiles has %g: percentiles lie between 0 and 100", p)
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out, nil
}
