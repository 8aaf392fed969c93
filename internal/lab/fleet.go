package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/rundir"
	"perflab/internal/study"
)

// Fleet is the machines of runtime kind fleet.
type Fleet interface {
	// Names are the machines that are there now and have all of some labels.
	Names(ctx context.Context, labels map[string]string) ([]string, error)
	// On starts engines on a machine, as p would on this one, or in containers there.
	On(machine string, p deploy.Process, c *deploy.Containers) deploy.Runtime
	// Crew has a machine send a load to what On has started there.
	Crew(machine string) bench.Crew
}

// nodesFile is the machines of a study that names them by labels. They are found as it begins, and kept: the machine
// is a factor of the comparison, and a study that goes on must have the same.
const nodesFile = "machines.json"

// keptNodes is the content of nodesFile.
type keptNodes struct {
	Schema   string   `json:"schema"`
	Machines []string `json:"machines"`
}

const nodesSchema = "perflab.machines/1"

// errNoFleet is a study of kind fleet without one.
var errNoFleet = errors.New("runtime kind fleet starts engines on machines of a fleet, and no hub of one is named: give perflab tune --hub DIR")

// chooseNodes gives a study by labels the machines that are there, or those that it began with.
func chooseNodes(ctx context.Context, s *study.Study, o *Options) error {
	switch {
	case s.Runtime.Kind != study.Fleet:
		return nil
	case o.Fleet == nil:
		return errNoFleet
	case len(s.Runtime.Labels) == 0:
		return nil
	}
	if err := (&directory{path: o.Dir}).check(o.Resume); err != nil {
		return err
	}
	if o.Resume {
		var kept keptNodes
		if err := rundir.ReadJSON(filepath.Join(o.Dir, nodesFile), &kept); err != nil {
			return fmt.Errorf("%w: without it the study cannot go on, on the machines that it began with", err)
		}
		return s.UseNodes(kept.Machines)
	}
	names, err := o.Fleet.Names(ctx, s.Runtime.Labels)
	if err != nil {
		return fmt.Errorf("find the study's machines: %w", err)
	}
	b, err := json.MarshalIndent(keptNodes{nodesSchema, names}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", nodesFile, err)
	}
	o.nodes = append(b, '\n')
	return s.UseNodes(names)
}
