package calib

import (
	"iter"

	"perflab/internal/sim"
)

// Course is one way through a load whose requests wait for others, or come for as long as there is time: what is sent
// follows from what the engine has done. It is for one replay.
type Course struct {
	Jobs    iter.Seq[sim.Job]
	Options sim.ReplayOptions // what the load needs of the replay
	Err     func() error      // why Jobs ended too soon; asked after the replay
}

// course is one way through a load on so many replicas.
func (l Load) course(replicas int, seed uint64, k *sim.Constants) (Course, error) {
	c := Course{Err: func() error { return nil }}
	if l.Course == nil {
		c.Jobs, c.Options = l.Jobs(seed), sim.ReplayOptions{MaxConcurrency: l.Concurrency, Warm: l.Warm(seed), FirstUse: l.FirstUse}
	} else {
		var err error
		if c, err = l.Course(replicas, l.another); err != nil {
			return c, err
		}
	}
	c.Options.Seed, c.Options.Constants = seed, k
	return c, nil
}
