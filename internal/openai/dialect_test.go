package openai

import (
	"perflab/internal/result"

	"github.com/google/go-cmp/cmp/cmpopts"
)

// unstamped leaves out the stamps that the tests of whole streams below check.
var unstamped = cmpopts.IgnoreFields(result.Call{}, "UsageAt", "Done", "Empty")
