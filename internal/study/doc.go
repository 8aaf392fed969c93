// Package study reads study files: what to tune, on what, under which load, and
// how to search.
//
//	s, err := study.Parse("quickstart.yaml", data)
//	strategy, _, err := s.NewStrategy(nil)
//	c, err := s.Configure(tune.Config{"engine": "vllm", "model": s.Model}, study.Installed{})
//
// A File is what stands in the file. A Study is a file whose values were found
// right, and what follows from them. Every error has the line and column of the
// value that it is of.
//
// Absent: starting anything. Files that a study names are read.
package study
