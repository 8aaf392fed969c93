package study

import (
	"cmp"
	"slices"

	"perflab/internal/deploy/docker"
)

// Remarks are sentences on what will fail or cost time when the study runs, known without
// a launch.
func (s *Study) Remarks() (out []string) {
	if s.Runtime.Kind != Docker {
		return nil
	}
	for _, c := range s.served() {
		for _, r := range c.container.Remarks(c.model, s.AllocatedGPUs()) {
			if !slices.Contains(out, r) { // of engines that share a container's settings
				out = append(out, r)
			}
		}
	}
	return out
}

// server is a model in a container.
type server struct {
	container docker.Settings
	model     string
}

// served are the models that the study serves, each in its engine's container.
func (s *Study) served() (out []server) {
	for _, k := range s.Survey {
		out = append(out, server{s.Container(k.Engine), cmp.Or(k.Model, s.Model)})
	}
	if s.Baseline == nil {
		return out
	}
	engines, models := s.searchedNames()
	for _, e := range engines {
		for _, m := range models {
			out = append(out, server{s.Container(e), m})
		}
	}
	return out
}
