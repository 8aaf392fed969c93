package record

import (
	"bufio"
	"crypto/tls"
	"net"
	"net/url"
	"time"
)

// upstream is a client's connection to the server.
type upstream struct {
	target *url.URL
	dial   func() (net.Conn, error)
	conn   net.Conn // nil: none
	in     *bufio.Reader
	used   bool // a request has gone over it
}

// connectLimit is how long a connection may take.
const connectLimit = 10 * time.Second

// connect has a connection, a new one if there is none or the server has closed it.
func (u *upstream) connect() error {
	if u.conn != nil && (!u.used || stillOpen(u.conn)) {
		return nil
	}
	u.close()
	conn, err := u.dial()
	if err != nil {
		return err
	}
	if u.target.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: u.target.Hostname(), MinVersion: tls.VersionTLS12})
	}
	u.conn, u.used = conn, false
	if u.in == nil {
		u.in = bufio.NewReaderSize(conn, 4<<10)
	} else {
		u.in.Reset(conn)
	}
	return nil
}

func (u *upstream) close() {
	if u.conn != nil {
		u.conn.Close()
		u.conn = nil
	}
}

// dialer reaches a target over TCP.
func dialer(target *url.URL) func() (net.Conn, error) {
	d := net.Dialer{Timeout: connectLimit}
	return func() (net.Conn, error) { return d.Dial("tcp", address(target)) }
}

// address is where a target listens.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
