package guard

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// isLoopback says whether an address to listen on, host:port, is one that only this machine reaches.
func isLoopback(address string) (bool, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return false, fmt.Errorf("%q is no address to listen on: give a host and a port, as 127.0.0.1:8080", address)
	}
	if strings.EqualFold(host, "localhost") {
		return true, nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback(), nil
}

// splitHost takes the host and the port of a Host header apart; no port: "".
func splitHost(s string) (host, port string) {
	if h, p, err := net.SplitHostPort(s); err == nil {
		return strings.ToLower(h), p
	}
	return strings.ToLower(strings.Trim(s, "[]")), ""
}

func validHost(s string) bool {
	host, _ := splitHost(s)
	return host != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._:[]", r))
	})
}

// knows says whether the server is called by a name that is its own. A page of somebody else, whose
// name was made to lead here (DNS rebinding), has another one. Loopback's names are good with every
// port, since a tunnel or a container gives its own; a bare address only where the connection came to it.
func (g *Guard) knows(r *http.Request) bool {
	if !validHost(r.Host) {
		return false
	}
	host, port := splitHost(r.Host)
	named := slices.ContainsFunc(g.o.Hosts, func(h string) bool {
		name, at := splitHost(h)
		return name == host && (at == "" || at == port)
	})
	if named || host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if ip.IsLoopback() {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap().WithZone("") == ip.Unmap()
}

// errNotByProxy says that a connection came around the proxy.
var errNotByProxy = errors.New("this server is asked through its proxy alone")

// client is the address of the one who asks. Only a proxy of the options is believed what it says of
// others, and of what it says only what it added itself.
func (g *Guard) client(r *http.Request) (netip.Addr, error) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("the client has no address: %w", err)
	}
	peer := at.Addr().Unmap().WithZone("")
	if len(g.o.Proxies) == 0 {
		return peer, nil
	}
	if !g.isProxy(peer) {
		return netip.Addr{}, errNotByProxy
	}
	if strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "http") {
		return netip.Addr{}, errors.New("this server is asked by https alone")
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		ip, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return peer, nil
		}
		if peer = ip.Unmap().WithZone(""); !g.isProxy(peer) {
			break
		}
	}
	return peer, nil
}

func (g *Guard) isProxy(ip netip.Addr) bool {
	return slices.ContainsFunc(g.o.Proxies, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// network is what the limits of an address go by: of IPv6 the /64, which one client has whole.
func network(ip netip.Addr) string {
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.Addr().String()
		}
	}
	return ip.String()
}
