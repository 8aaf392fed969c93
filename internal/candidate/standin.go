package candidate

import (
	"perflab/internal/engine"
	"perflab/internal/tune"
)

// Field stands in.
type Field struct{ o Options }

// New stands in.
func New(o Options) (*Field, error) { return &Field{o}, nil }

func (f *Field) Arms() []tune.Arm {
	var out []tune.Arm
	for _, c := range f.o.Changes {
		out = append(out, tune.Arm{Label: c.Label, Config: c.Apply(f.o.Baseline)})
	}
	out = append(out, f.o.Arms...)
	for i := range out {
		out[i].Refused = f.Refuse(out[i].Config)
	}
	return out
}
func (f *Field) Steps(tune.Config) []tune.Candidate    { return nil }
func (f *Field) Removals(tune.Config) []tune.Candidate { return nil }
func (f *Field) Refuse(c tune.Config) string {
	if _, _, err := f.o.Resolve(c); err != nil {
		return err.Error()
	}
	return ""
}
func (f *Field) Numerics(c tune.Config) string { return c["model"] }
func (f *Field) Settings(c tune.Config) int    { return len(c) }
func (f *Field) Domain() []tune.Dimension      { return nil }
func (f *Field) Moves(c tune.Config, figures map[string]float64, missed []string) []tune.Candidate {
	return nil
}
func (f *Field) Repairs(c tune.Config, failure engine.Failure, cmd engine.Command) []tune.Candidate {
	return nil
}
