package bus

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"

	"perflab/internal/field"
)

// siteFile has a site's identity at the hub that it belongs to.
const siteFile = "site.json"

// siteRights are what the server of a site passes on for its agents: what they say, what they are told, and the
// answers both ways. It may speak for every agent, since a hub does not know those of its sites.
func siteRights() rights {
	return rights{
		publish:   []string{Up("*", ">"), inbox(leaderID) + ".>"},
		subscribe: []string{Do("*", ">"), inbox("*") + ".>"},
	}
}

// listenForSites has NATS listen for the servers of sites.
func (s *Server) listenForSites(o *server.Options) error {
	if s.o.Leaves == "" {
		return nil
	}
	host, port, err := splitListen("leaves", s.o.Leaves)
	if err != nil {
		return err
	}
	o.LeafNode = server.LeafNodeOpts{
		Host: host, Port: port, NoAdvertise: true,
		TLSConfig: o.TLSConfig, TLSHandshakeFirst: true, TLSTimeout: o.TLSTimeout, AuthTimeout: o.AuthTimeout,
		Compression: server.CompressionOpts{Mode: server.CompressionOff},
	}
	return nil
}

// joinHub makes this server one of a site, or finds that it is.
func (s *Server) joinHub(o *server.Options) error {
	id, err := load(filepath.Join(s.o.Dir, siteFile))
	if s.o.Leaf != "" {
		name, _ := os.Hostname() // a name for people
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		id, err = joinAs(ctx, s.o.Leaf, s.o.Dir, cmp.Or(name, "site"), Site)
	} else if notThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	o.LeafNode.ReconnectInterval = longestPause
	o.LeafNode.Remotes = []*server.RemoteLeafOpts{{
		URLs: []*url.URL{{Scheme: "tls", Host: id.sites}}, Nkey: id.seed, IgnoreDiscoveredServers: true,
		TLSConfig:  pinned(id.sites, id.fingerprint, func(e *PinError) { s.o.Log.Warn("the hub of this site is another one", "error", e) }),
		TLSTimeout: o.TLSTimeout, TLSHandshakeFirst: true,
		Compression: server.CompressionOpts{Mode: server.CompressionOff},
	}}
	s.site = true
	return nil
}

// sitePort is where servers of sites connect; "": nowhere. NATS puts the port that it chose into its options.
func (s *Server) sitePort() string {
	if s.o.Leaves == "" {
		return ""
	}
	return strconv.Itoa(s.natsOptions.LeafNode.Port)
}

// inviteSite refuses to invite a site where none could connect.
func (s *Server) inviteSite(i Invite) error {
	if i.Site && s.o.Leaves == "" {
		return field.Errorf("leaves", "the hub does not listen for servers of sites: give it an address for them, like 0.0.0.0:7423")
	}
	return nil
}

// withHost is an address with the port of one and the host of another.
func withHost(addr, port string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		return ""
	}
	return net.JoinHostPort(host, port)
}
