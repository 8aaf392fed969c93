package kubetest

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// door is how one test's clients reach the API server: a proxy that can be closed.
type door struct {
	url    string
	plane  *plane
	proxy  *httputil.ReverseProxy
	onward *http.Transport
	fail   atomic.Pointer[func(*http.Request) (int, string)]
	served sync.WaitGroup

	mu       sync.Mutex
	addr     string
	server   *http.Server
	conns    map[net.Conn]bool
	requests []Request
}

func openDoor(p *plane, id string) (*door, error) {
	to, err := url.Parse(p.url)
	if err != nil {
		return nil, err
	}
	d := &door{plane: p, addr: "127.0.0.1:0"}
	d.onward = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.certs.pool}, MaxIdleConnsPerHost: 64}
	d.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			ownNodes(r.Out.URL, id)
		},
		Transport:     d.onward,
		FlushInterval: -1, // a watch has each event at once
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	if err := d.listen(); err != nil {
		return nil, err
	}
	d.url = "https://" + d.addr
	return d, nil
}

// ownNodes has a list of nodes, or a watch, be of the test's own: those of other tests are none
// of its cluster.
func ownNodes(u *url.URL, id string) {
	if u.Path != "/api/v1/nodes" {
		return
	}
	q := u.Query()
	own := tenantLabel + "=" + id
	if also := q.Get("labelSelector"); also != "" {
		own = also + "," + own
	}
	q.Set("labelSelector", own)
	u.RawQuery = q.Encode()
}

// listen opens the door, always at the same address.
func (d *door) listen() error {
	l, err := net.Listen("tcp", d.addr)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addr, d.conns = l.Addr().String(), map[net.Conn]bool{}
	d.server = &http.Server{
		Handler: http.HandlerFunc(d.serve), ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{d.plane.certs.server}},
		// Connections that were taken over, as exec and port-forward have them, are closed here too.
		ConnState: func(conn net.Conn, s http.ConnState) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if s == http.StateClosed {
				delete(d.conns, conn)
			} else {
				d.conns[conn] = true
			}
		},
	}
	server := d.server
	d.served.Go(func() { _ = server.ServeTLS(l, "", "") }) // ErrServerClosed
	return nil
}

// shut closes the door and breaks what goes through it.
func (d *door) shut() {
	d.mu.Lock()
	server := d.server
	conns := d.conns
	d.conns = map[net.Conn]bool{}
	d.mu.Unlock()
	_ = server.Close() // only its listener's error
	for conn := range conns {
		_ = conn.Close() // closed already
	}
	d.served.Wait()
	d.onward.CloseIdleConnections()
}

func (d *door) seen() []Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.requests)
}

func (d *door) serve(w http.ResponseWriter, r *http.Request) {
	agent, _, _ := strings.Cut(r.UserAgent(), "/")
	d.mu.Lock()
	d.requests = append(d.requests, Request{agent, r.Method, r.URL.RequestURI()})
	d.mu.Unlock()
	if f := d.fail.Load(); f != nil && *f != nil {
		if status, message := (*f)(r); status != 0 {
			refuse(w, status, message)
			return
		}
	}
	d.proxy.ServeHTTP(w, r)
}

// refuse answers as the API server does.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client has gone
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status, "reason": reasons[status],
	})
}

// reasons are the API server's words for its statuses.
var reasons = map[int]string{
	http.StatusUnauthorized: "Unauthorized", http.StatusForbidden: "Forbidden", http.StatusNotFound: "NotFound", http.StatusConflict: "Conflict",
	http.StatusTooManyRequests: "TooManyRequests", http.StatusInternalServerError: "InternalError", http.StatusServiceUnavailable: "ServiceUnavailable",
	http.StatusGatewayTimeout: "Timeout",
}
