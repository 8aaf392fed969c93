package lab

import (
	"context"
	"slices"

	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/load"
	"perflab/internal/result"
)

// beside is a crew beside the engines, which may reach them by other addresses than this machine.
type beside struct {
	crew bench.Crew
	d    deploy.Deployment
}

// Beside is a crew that sends to the Service by the addresses that it has inside of the cluster.
func (s *Service) Beside(crew bench.Crew) bench.Crew { return beside{crew, s.Deployment} }

// Load is bench.Crew's.
func (b beside) Load(ctx context.Context, job bench.CrewJob, emit func(result.Call)) (load.Stats, *result.Fleet, error) {
	if in, ok := b.d.(deploy.Insider); ok {
		job.Spec.Targets = slices.Clone(job.Spec.Targets)
		for i, t := range job.Spec.Targets {
			job.Spec.Targets[i] = in.Inside(t)
		}
	}
	return b.crew.Load(ctx, job, emit)
}
