package audit

import (
	"regexp"
	"sync"
)

// Pattern compiles a regular expression when it is first used: the program starts
// for every command and audits in one of them.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
