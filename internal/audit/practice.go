package audit

import "perflab/internal/interop"

// practiceChecks are the types that practice and across find.
func practiceChecks() []Check { return nil }

// practice checks how a document measured and compared.
func practice(*interop.File, Options) []Finding { return nil }

// across checks files against each other.
func across([]interop.File) []Finding { return nil }
