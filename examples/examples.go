// Package examples holds the study files that the project publishes, so that a server can offer them
// to begin with.
package examples

import "embed"

// Studies are the study files, by their names.
//
//go:embed *.yaml
var Studies embed.FS

// Quickstart is the study to begin with: simulated engines on any machine, in under two minutes.
//
//go:embed quickstart.yaml
var Quickstart string
