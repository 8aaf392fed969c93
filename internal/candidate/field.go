package candidate

import (
	"errors"

	"perflab/internal/engine"
	"perflab/internal/tune"
)

// Field is what may be tried, and what may be tried next.
type Field struct{ o Options }

var _ tune.Guide = (*Field)(nil)

// New returns the field of the options.
func New(o Options) (*Field, error) {
	if o.Resolve == nil {
		return nil, errors.New("candidate: no Resolve")
	}
	return &Field{o: o}, nil
}

// Arms are the configurations that a race begins with.
func (f *Field) Arms() []tune.Arm { return []tune.Arm{{Label: "baseline", Config: f.o.Baseline}} }

// Steps are small changes of a configuration.
func (f *Field) Steps(tune.Config) []tune.Candidate { return nil }

// Removals are the settings of a configuration that may go.
func (f *Field) Removals(tune.Config) []tune.Candidate { return nil }

// Refuse says why a configuration cannot run, or nothing.
func (f *Field) Refuse(c tune.Config) string {
	if _, _, err := f.o.Resolve(c); err != nil {
		return err.Error()
	}
	return ""
}

// Numerics names what decides the answers of the model.
func (f *Field) Numerics(c tune.Config) string { return c["model"] }

// Settings counts what a configuration sets beside the engine's defaults.
func (f *Field) Settings(c tune.Config) int { return len(c) }

// Domain is all that may be set.
func (f *Field) Domain() []tune.Dimension { return nil }

// Moves are what the figures of a run ask for next, best first, at most four. Missed
// names the metrics whose SLO was missed.
func (f *Field) Moves(c tune.Config, figures map[string]float64, missed []string) []tune.Candidate {
	return nil
}

// Repairs are what a failure asks for.
func (f *Field) Repairs(c tune.Config, failure engine.Failure, cmd engine.Command) []tune.Candidate {
	return nil
}
