package study

import (
	"cmp"
	"slices"
)

// Remarks are sentences on what will fail or cost time when the study runs, known without
// a launch.
func (s *Study) Remarks() []string {
	out := s.UnknownRemarks()
	for _, c := range s.Served() {
		for _, r := range s.remarks(c) {
			if !slices.Contains(out, r) { // of engines that share a container's settings
				out = append(out, r)
			}
		}
	}
	return out
}

// remarks are those of an engine and a model in containers or pods.
func (s *Study) remarks(c Server) []string {
	switch s.Runtime.Kind {
	case Docker:
		return s.Container(c.Engine).Remarks(c.Model, s.AllocatedGPUs())
	case Kubernetes:
		return s.Cluster(c.Engine).Remarks(c.Model, s.Engines[c.Engine].Env)
	}
	return nil
}

// Server is an engine and a model that it serves.
type Server struct{ Engine, Model string }

// Served are the engines that the study starts with the models that they serve, as far as
// it names them.
func (s *Study) Served() (out []Server) {
	for _, k := range s.Survey {
		out = append(out, Server{k.Engine, cmp.Or(k.Model, s.Model)})
	}
	if s.Baseline == nil {
		return out
	}
	engines, models := s.searchedNames()
	for _, e := range engines {
		if !s.searchesCatalogue() && !slices.Contains(s.usedEngines(), e) {
			continue // it has settings, and no candidate
		}
		for _, m := range models {
			out = append(out, Server{e, m})
		}
	}
	return out
}
