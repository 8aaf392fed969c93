package study

import (
	"errors"
	"strings"

	"perflab/internal/engine"
)

// startable checks that the baseline breaks no rule of its engine and of the hardware: no launch
// would follow, and no gain could be given of anything. What is up already is measured
// whatever our rules say of it.
func (c *checker) startable(s *Study) {
	if s.Baseline == nil || s.Attached() {
		return
	}
	_, err := s.Configure(s.BaselineConfig(), Installed{})
	if r, ok := errors.AsType[*engine.Rejection](err); ok && s.refusedThroughout() {
		c.add("baseline", "the baseline would not start: %s. Every gain is counted from it, so it must start on this hardware", strings.TrimSuffix(r.Reason, "."))
	}
}

// refusedThroughout reports whether the baseline, which is refused by what the file alone says,
// is so whichever version of its engine is installed.
func (s *Study) refusedThroughout() bool {
	name := s.Baseline.Engine
	if !s.Runtime.StartsEngines() || s.Engines[name].Version != "" {
		return true
	}
	e, err := engine.ByName(name)
	if err != nil {
		return true
	}
	for _, version := range e.Versions() {
		if _, err := s.Configure(s.BaselineConfig(), Installed{Version: version}); err == nil {
			return false
		}
	}
	return true
}
