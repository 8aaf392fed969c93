package record

import (
	"net/http"
	"strconv"
	"strings"
)

// hops are the headers that are of one connection alone (RFC 9110, 7.6.1), and those that this proxy
// writes itself.
var hops = map[string]bool{
	"Connection": true, "Proxy-Connection": true, "Keep-Alive": true, "Te": true, "Trailer": true, "Transfer-Encoding": true,
	"Upgrade": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Host": true, "Content-Length": true, "Expect": true,
}

// appendHeader writes what of a header goes on.
func appendHeader(b []byte, h http.Header) []byte {
	var named []string // by Connection, as of this hop
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			named = append(named, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
next:
	for name, values := range h {
		if hops[name] {
			continue
		}
		for _, n := range named {
			if n == name {
				continue next
			}
		}
		for _, v := range values {
			b = append(append(append(append(b, name...), ": "...), v...), "\r\n"...)
		}
	}
	return b
}

// isSound says whether a header can be written as it was read. Names and line ends are checked by
// who reads it; a carriage return within a line is none for some servers and one for others.
func isSound(h http.Header) bool {
	for _, values := range h {
		for _, v := range values {
			if strings.ContainsAny(v, "\r\n\x00") {
				return false
			}
		}
	}
	return true
}

// appendRequest writes the head of a request as the server gets it.
func appendRequest(b []byte, req *http.Request, host, prefix string) []byte {
	b = append(append(append(append(b, req.Method...), ' '), prefix...), req.URL.RequestURI()...)
	b = append(append(append(b, " HTTP/1.1\r\nHost: "...), host...), "\r\n"...)
	b = appendHeader(b, req.Header)
	switch {
	case req.ContentLength > 0 || req.ContentLength == 0 && len(req.Header["Content-Length"]) > 0:
		b = appendLength(b, req.ContentLength)
	case req.ContentLength < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	return append(b, "\r\n"...)
}

func appendLength(b []byte, n int64) []byte {
	return append(strconv.AppendInt(append(b, "Content-Length: "...), n, 10), "\r\n"...)
}

// appendAnswer writes the head of an answer as the client gets it.
func appendAnswer(b []byte, resp *http.Response, f framing, closing bool) []byte {
	b = append(append(append(b, "HTTP/1.1 "...), resp.Status...), "\r\n"...)
	b = appendHeader(b, resp.Header)
	switch {
	case f == chunked:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
		for name := range resp.Trailer {
			b = append(append(append(b, "Trailer: "...), name...), "\r\n"...)
		}
	case f == byLength || f == empty && len(resp.Header["Content-Length"]) > 0:
		if len(resp.Header["Content-Length"]) > 0 {
			b = append(append(append(b, "Content-Length: "...), resp.Header["Content-Length"][0]...), "\r\n"...)
		} else {
			b = appendLength(b, resp.ContentLength)
		}
	}
	if closing {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}
