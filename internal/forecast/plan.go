package forecast

import (
	"perflab/internal/arch"
	"perflab/internal/calib"
	"perflab/internal/engine"
)

// PlanQuestion asks which runs of a serving command to take first on hardware.
type PlanQuestion struct {
	Command  []string
	GPU      string // short name of the accelerator
	GPUs     int    // of one replica; 0: as many as its command takes
	Replicas int    // 0: 1
	Model    func(name string) (arch.Model, error)

	Each calib.Each // of the replays
}

// Answer is the plan; a *engine.Rejection where the engine would refuse the command.
func (q PlanQuestion) Answer(c *calib.Calibration) (calib.Plan, error) {
	gpu, err := arch.LookupAccelerator(q.GPU)
	if err != nil {
		return calib.Plan{}, err
	}
	cmd, err := engine.Parse(q.Command)
	if err != nil {
		return calib.Plan{}, err
	}
	model, err := q.Model(cmd.Model)
	if err != nil {
		return calib.Plan{}, err
	}
	cfg, err := cmd.Resolve(model, gpu, max(q.GPUs, cmd.World()))
	if err != nil {
		return calib.Plan{}, err
	}
	return c.Plan(cfg, max(1, q.Replicas), calib.FitOptions{Each: q.Each})
}
