package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/block"
	"perflab/internal/interop"
	"perflab/internal/report/doc"
	"perflab/internal/seriesdoc"
)

// seriesView shows a series in the forms there are. dir is where its runs are;
// st says which latencies and percentiles.
func seriesView(facts *bench.SeriesFacts, dir string, st block.Style) view {
	if facts.Kind == bench.KindRepeat {
		r := seriesdoc.Repeat(facts, dir)
		v := viewOf(r.Document(st))
		v.page = func() doc.Document { return seriesdoc.AddCalls(r, dir).Document(st) }
		v.html = func(w io.Writer) error { return doc.HTML(w, v.page()) }
		return v
	}
	c := seriesdoc.Curve(facts)
	c.Percentiles = st.Percentiles
	return viewOf(c.Document())
}

// seriesFiles writes the result files of a series as its runs end.
type seriesFiles struct {
	f     *benchFlags
	names map[string]bool
	notes map[string]bool // what was said of a run before
	err   error           // the first that failed; the runs go on
}

// add writes the result file of a run, under a name that no other has.
func (s *seriesFiles) add(out *bench.Outcome) {
	if !s.f.save {
		return
	}
	name := cmp.Or(s.f.resultFile, interop.VLLMFileName(out.Header, s.f.vllm()))
	for n := 2; s.names[name] && !s.f.appendResult; n++ {
		name = strings.TrimSuffix(interop.VLLMFileName(out.Header, s.f.vllm()), ".json") + fmt.Sprintf("-%d.json", n)
	}
	s.names[name] = true
	if _, err := s.f.saveResult(out, name); err != nil {
		s.err = cmp.Or(s.err, err)
	}
}

// newNotes are the notes of a run that no run before had.
func (s *seriesFiles) newNotes(out *bench.Outcome) []string {
	var fresh []string
	for _, n := range out.Notes {
		if !s.notes[n] {
			s.notes[n] = true
			fresh = append(fresh, n)
		}
	}
	return fresh
}
