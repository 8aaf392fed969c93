package audit

import "perflab/internal/interop"

// commandChecks are the types that commands finds.
func commandChecks() []Check { return nil }

// commands checks the commands of a document against its headings and blocks.
func commands(*interop.File, Options) []Finding { return nil }
