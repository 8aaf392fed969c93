package dirdoc

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"perflab/internal/input"
	"perflab/internal/otlp"
	"perflab/internal/report/doc"
	"perflab/internal/report/spent"
	"perflab/internal/rundir"
	"perflab/internal/trace"
)

// SpansFile is the file of a run directory that may hold the engine's spans. perflab does not
// write it: whoever has them puts them there, and report and the pages of a laboratory show them.
const SpansFile = "engine-spans.jsonl"

// mostSpanLine is the longest line of spans that is read. Collectors write batches of some MiB.
const mostSpanLine = 256 << 20

// addSpans adds what the engine's spans say of a run's calls, where there are spans. damage says
// what of the run directory's own file could not be read; one that was asked for is read whole or
// is an error.
func (o Options) addSpans(d *doc.Document, r *rundir.Run) (damage string, err error) {
	asked := o.Spans != ""
	path := cmp.Or(o.Spans, r.Path(SpansFile))
	f, err := os.Open(path)
	switch {
	case !asked && errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil && asked:
		return "", option("spans", "cannot be read: %v", err)
	case err != nil:
		return fmt.Sprintf("%s: %v", SpansFile, err), nil
	}
	defer f.Close()
	engine, err := trace.Engine(otlp.Read(input.Lines(f, "the file", mostSpanLine)), trace.IDs(slices.Values(r.Calls)))
	if err != nil {
		if asked {
			return "", option("spans", "%s: %v", path, err)
		}
		damage = fmt.Sprintf("%s: %v", SpansFile, err)
	}
	name := SpansFile
	if asked {
		name = path
	}
	spent.Add(d, r.Header, r.Calls, r.Every, engine, name)
	return damage, nil
}
