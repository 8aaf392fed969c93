// Package docs holds documents that the program prints, so that what it prints
// and what is published are one file.
package docs

import _ "embed"

// StudySchema is the JSON Schema of study files; make docs writes it.
//
//go:embed study.schema.json
var StudySchema []byte

// History says how a history finds a change; the server's screen of it leads there.
//
//go:embed history.md
var History []byte
