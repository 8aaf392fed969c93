package outcome

import "strings"

// Manifests reports whether the script of a trial is manifests for kubectl, and none of a shell.
func Manifests(script string) bool { return strings.HasSuffix(script, ".yaml") }
