package measure

import (
	"cmp"
	"fmt"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/interop"
)

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
