package audit

import "perflab/internal/interop"

// placed is a place of a file, with the section of the nearest thing there.
func placed(f *interop.File, line int, section []string) interop.Place {
	return interop.Place{File: f.Name, Line: line, Section: section}
}

// lookback bounds how many earlier steps one step is compared with.
const lookback = 64
