package web

// ReadOnly says that the server changes nothing.
func (s *Server) ReadOnly() bool { return s.o.ReadOnly }
