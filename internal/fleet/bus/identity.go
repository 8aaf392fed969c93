package bus

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"crypto/sha256"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"perflab/internal/durable"
	"perflab/internal/field"
	"perflab/internal/input"
)

// Role is what a member may do.
type Role string

// The roles.
const (
	Agent  Role = "agent"  // does what it is told
	Leader Role = "leader" // tells agents what to do
	Site   Role = "site"   // a server that passes on what its agents and a hub say to each other
)

// leaderID stands for a leader where a member is named.
const leaderID = "leader"

// hubID stands for the hub's own connection.
const hubID = "hub"

// Identity is who a process is on a hub, with the secret that proves it. It shows no secret however it is printed.
type Identity struct {
	ID   string // of an agent, made of its public key; "leader" of leaders
	Name string // as people call it
	Role Role
	Addr string // of the hub

	seed        string // secret
	fingerprint string // of the hub's certificate authority; "": an outside server
	ca          string // file with who signs for an outside server; "": who the system trusts
	invitation  string // the one it joined by
	sites       string // of a site: where at the hub it connects
	plain       bool   // an outside server without TLS, on loopback

	local nats.InProcessConnProvider // the hub of this process; nil: over the network
}

// outside says that the server is not perflab's.
func (i Identity) outside() bool { return i.fingerprint == "" && i.local == nil }

// String names the identity.
func (i Identity) String() string {
	return fmt.Sprintf("%s %s (%s) at %s", i.Role, i.Name, i.ID, i.Addr)
}

// GoString names the identity.
func (i Identity) GoString() string { return i.String() }

// LogValue names the identity.
func (i Identity) LogValue() slog.Value { return slog.StringValue(i.String()) }

// kept is the form of an identity in a file of mode 0600.
type kept struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Role        Role   `json:"role"`
	Addr        string `json:"addr"`
	Seed        string `json:"seed"`
	Fingerprint string `json:"fingerprint"`
	Invitation  string `json:"invitation,omitempty"`
	Sites       string `json:"sites,omitempty"`
}

func (i Identity) keep(path string) error {
	b, err := json.MarshalIndent(kept{i.ID, i.Name, i.Role, i.Addr, i.seed, i.fingerprint, i.invitation, i.sites}, "", "  ")
	if err != nil {
		return err
	}
	return keepSecret(path, append(b, '\n'))
}

// keepSecret writes a file that its owner alone can read, in a directory that its owner alone can enter where it is new.
func keepSecret(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(path, b, 0o600)
}

// Where identities are kept in a directory.
const (
	identityFile = "identity.json"
	leaderFile   = "leader.json"
)

// mostIdentity is more than an identity, a seed or a certificate takes.
const mostIdentity = 1 << 20

// Load reads the identity that Join has kept in a directory. Where nobody has joined it is fs.ErrNotExist.
func Load(dir string) (Identity, error) { return load(filepath.Join(dir, identityFile)) }

// LoadLeader reads the leader's identity that a hub has kept in its directory.
func LoadLeader(dir string) (Identity, error) { return load(filepath.Join(dir, leaderFile)) }

func load(path string) (Identity, error) {
	b, err := input.File(path, mostIdentity)
	if err != nil {
		return Identity{}, err
	}
	var k kept
	if err := json.Unmarshal(b, &k); err != nil {
		return Identity{}, fmt.Errorf("%s is no identity of a fleet: %w", path, err)
	}
	i := Identity{ID: k.ID, Name: k.Name, Role: k.Role, Addr: k.Addr, seed: k.Seed, fingerprint: k.Fingerprint, invitation: k.Invitation, sites: k.Sites}
	if _, err := i.key(); err != nil || i.ID == "" || i.fingerprint == "" || filepath.Base(path) != i.Role.file() {
		return Identity{}, fmt.Errorf("%s is no whole identity of a fleet: join again", path)
	}
	return i, nil
}

// key is the secret key.
func (i Identity) key() (nkeys.KeyPair, error) { return nkeys.FromSeed([]byte(i.seed)) }

// newSeed makes a secret key.
func newSeed() (string, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	seed, err := pair.Seed()
	return string(seed), err
}

// publicKey is what others know a seed's owner by.
func publicKey(seed string) (string, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", err
	}
	return pair.PublicKey()
}

// agentID is an agent's name in subjects: every side can make it of the public key.
func agentID(public string) string {
	sum := sha256.Sum256([]byte(public))
	return hex.EncodeToString(sum[:6])
}

// Outside makes an identity on a NATS server that is not perflab's: its address, the file with the seed of the nkey user,
// and the file with the certificate of who signs for the server ("": who the system trusts).
func Outside(address, seedFile, ca string, role Role) (Identity, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" {
		return Identity{}, field.Errorf("url", "%q is no address of a NATS server, like tls://nats.example.com:4222", address)
	}
	if u.User != nil {
		return Identity{}, field.Errorf("url", "the address of a NATS server must have no user: the seed file says who connects")
	}
	plain := u.Scheme == "nats" && ca == ""
	if plain && !loopback(u.Hostname()) {
		return Identity{}, field.Errorf("url", "%s is another machine: begin its address with tls://, for a connection that is not encrypted stays on this machine", u.Host)
	}
	b, err := input.File(seedFile, mostIdentity)
	if err != nil {
		return Identity{}, err
	}
	i := Identity{Role: role, Addr: u.Host, ca: ca, plain: plain}
	if u.Port() == "" {
		i.Addr = net.JoinHostPort(u.Hostname(), "4222")
	}
	if i.seed, err = findSeed(string(b)); err != nil {
		return Identity{}, field.Errorf("seed", "%s has no seed of an nkey user, a line that begins with SU", seedFile)
	}
	public, err := publicKey(i.seed)
	if err != nil {
		return Identity{}, err
	}
	i.ID = leaderID
	if role == Agent {
		i.ID = agentID(public)
	}
	i.Name, _ = os.Hostname() // a name for people: the ID tells them apart without
	return i, nil
}

// findSeed finds the seed in a file, which may have comments and be a credentials file.
func findSeed(text string) (string, error) {
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if _, err := publicKey(l); err == nil && strings.HasPrefix(l, "SU") {
			return l, nil
		}
	}
	return "", errors.New("no seed")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// notThere says that a file is missing.
func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }
