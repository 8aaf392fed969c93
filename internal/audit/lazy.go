package audit

import (
	"regexp"
	"sync"
)

// lazily compiles a regular expression when it is first used: the program starts
// for every command and audits in one of them.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
