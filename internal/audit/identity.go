package audit

import "perflab/internal/interop"

// identityChecks are the types that identities finds.
func identityChecks() []Check { return nil }

// identities checks what must hold between the sections of a block.
func identities(*interop.Run) []Finding { return nil }
