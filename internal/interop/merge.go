package interop

import (
	"cmp"
	"fmt"
)

// Merge leaves a run that is in several files in one of them: the one with the
// most calls, or else the first. The others say so in a fault. benchmark-runner
// writes each report twice, once without its requests.
func Merge(files []File) []File {
	best := map[string]*Run{}
	for i := range files {
		for j := range files[i].Runs {
			r := &files[i].Runs[j]
			if id := r.identity(); id != "" && (best[id] == nil || len(r.Calls) > len(best[id].Calls)) {
				best[id] = r
			}
		}
	}
	merged := make([]File, len(files))
	for i, f := range files {
		merged[i] = f
		merged[i].Runs, merged[i].Faults = nil, f.Faults[:len(f.Faults):len(f.Faults)]
		for j := range f.Runs {
			r := &f.Runs[j]
			remaining := best[r.identity()]
			if remaining == nil || remaining == r {
				merged[i].Runs = append(merged[i].Runs, *r)
				continue
			}
			with := ""
			if cmp.Compare(len(remaining.Calls), len(r.Calls)) > 0 {
				with = " with its requests"
			}
			merged[i].Faults = append(merged[i].Faults, Fault{Place: r.Place, Text: fmt.Sprintf("the same run is in %s%s: this one is left out", remaining.Place, with)})
		}
	}
	return merged
}

// identity is what two files have in common that tell of one run; "" where the
// format has no such thing.
func (r *Run) identity() string {
	if r.Header.Imported == nil {
		return ""
	}
	if id := r.Header.Label(labelGuideID); id != "" && r.Header.Imported.Format == FormatGuideLLM {
		return FormatGuideLLM + " " + id
	}
	return ""
}
