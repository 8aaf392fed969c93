package audit

import "perflab/internal/interop"

// claimChecks are the types that claims finds.
func claimChecks() []Check { return nil }

// claims checks what tables, summaries and prose say of the blocks.
func claims(*interop.File, Options) []Finding { return nil }
