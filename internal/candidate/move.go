package candidate

import (
	"perflab/internal/engine"
	"perflab/internal/tune"
)

func (f *Field) Moves(c tune.Config, figures map[string]float64, missed []string) []tune.Candidate {
	return nil
}
func (f *Field) Repairs(c tune.Config, failure engine.Failure, cmd engine.Command) []tune.Candidate {
	return nil
}
