package kubetest

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
)

// server is where the API server reaches a kubelet: for logs, exec and port-forward.
type server struct {
	port  int
	http  *http.Server
	serve sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// serveKubelet listens for a node. Only the API server is let in.
func serveKubelet(n *Node) (*server, error) {
	l, err := net.Listen("tcp", address+":0")
	if err != nil {
		return nil, err
	}
	certs := n.c.plane.certs
	mux := http.NewServeMux()
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", n.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", n.serveExec)
	mux.HandleFunc("/exec/{namespace}/{pod}/{uid}/{container}", n.serveExec)
	mux.HandleFunc("/portForward/{namespace}/{pod}", n.serveForward)
	mux.HandleFunc("/portForward/{namespace}/{pod}/{uid}", n.serveForward)
	s := &server{port: l.Addr().(*net.TCPAddr).Port, conns: map[net.Conn]bool{}}
	s.http = &http.Server{
		Handler: mux, ErrorLog: log.New(io.Discard, "", 0), ConnState: s.note,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certs.server}, ClientCAs: certs.pool, ClientAuth: tls.RequireAndVerifyClientCert},
	}
	s.serve.Go(func() { _ = s.http.ServeTLS(l, "", "") }) // ErrServerClosed
	return s, nil
}

// note keeps the connections, those too that exec and port-forward have taken over.
func (s *server) note(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == http.StateClosed {
		delete(s.conns, conn)
	} else {
		s.conns[conn] = true
	}
}

func (s *server) close() {
	_ = s.http.Close() // only its listener's error
	s.mu.Lock()
	conns := s.conns
	s.conns = map[net.Conn]bool{}
	s.mu.Unlock()
	for conn := range conns {
		_ = conn.Close() // closed already
	}
	s.serve.Wait()
}

// asked is the container that a request names; false: there is none, which has been answered.
func (n *Node) asked(w http.ResponseWriter, r *http.Request) (*container, bool) {
	p := n.find(r.PathValue("namespace"), r.PathValue("pod"))
	if p == nil {
		http.Error(w, fmt.Sprintf("pod %q not found", r.PathValue("pod")), http.StatusNotFound)
		return nil, false
	}
	c := p.container(r.PathValue("container"))
	if c == nil {
		http.Error(w, fmt.Sprintf("container not found (%q)", r.PathValue("container")), http.StatusNotFound)
		return nil, false
	}
	return c, true
}
