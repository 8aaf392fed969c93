package web

import (
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
)

// Routes are all addresses, for tests that hold each of them against the same rules.
func (s *Server) Routes() []page.Route {
	all, err := s.routes()
	if err != nil {
		panic(err) // Open would have said it
	}
	return all
}

// Queue is the server's queue of launches.
func (s *Server) Queue() *launch.Queue { return s.queue }

// ReadOnly says that the server changes nothing.
func (s *Server) ReadOnly() bool { return s.o.ReadOnly }
