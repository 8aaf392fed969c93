package audit

import "perflab/internal/interop"

// physicsChecks are the types that physics finds.
func physicsChecks() []Check { return nil }

// physics checks a run against what its hardware can do, where model and
// hardware are known.
func physics(*interop.File, *interop.Run, Options) []Finding { return nil }
