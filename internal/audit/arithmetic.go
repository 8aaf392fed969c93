package audit

import "perflab/internal/interop"

// arithmeticChecks are the types that arithmetic finds.
func arithmeticChecks() []Check { return nil }

// arithmetic checks the figures of a block against each other.
func arithmetic(*interop.Run) []Finding { return nil }
