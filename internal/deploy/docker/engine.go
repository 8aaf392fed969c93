package docker

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

// engine is a Docker Engine, and what was learnt there.
type engine struct {
	api      *client.Client
	settings Settings
	address  string // where its ports are reached
	progress func(text string)
	grace    time.Duration // of a keeper that is cut off
	patience time.Duration // with the daemon that is to end and remove a container
	silence  time.Duration // of a keeper, until it counts as lost; 0: its own default
	image    image         // resolved once
	attached attached      // of Settings.Container
	agent    string        // of a fleet, that makes containers for others; "": none
}

const (
	loopback       = "127.0.0.1"
	killWait       = 20 * time.Second // for the daemon to end and remove a container
	anyAddress     = "0.0.0.0"
	requestTimeout = 30 * time.Second // for a request that does not wait for anything
)

// connect makes a client; nothing is sent yet.
func connect(s Settings, progress func(string)) (*engine, error) {
	e := &engine{settings: s, progress: progress, patience: killWait}
	c := endpoint{host: cmp.Or(s.DockerHost, os.Getenv(client.EnvOverrideHost))}
	if c.host == "" {
		var err error
		if c, err = contextEndpoint(); err != nil {
			return nil, err
		}
	}
	opts := []client.Opt{client.WithTLSClientConfigFromEnv(), client.WithAPIVersionFromEnv()}
	if c.tlsDir != "" {
		opts = []client.Opt{c.tls(), client.WithAPIVersionFromEnv()}
	}
	c.host = cmp.Or(c.host, client.DefaultDockerHost)
	if strings.HasPrefix(c.host, "ssh://") {
		return nil, fmt.Errorf("%s is reached by ssh, which perflab does not do for Docker: forward the socket with ssh -L, and name it as docker_host", c.host)
	}
	api, err := client.New(append(opts, client.WithHost(c.host))...)
	if err != nil {
		return nil, err
	}
	e.api, e.address = api, cmp.Or(s.Address, addressOf(c.host))
	return e, nil
}

// local tells whether the ports of containers are reached over the loopback interface.
func (e *engine) local() bool {
	ip := net.ParseIP(e.address)
	return e.address == "localhost" || ip != nil && ip.IsLoopback()
}

// addressOf is where the ports of a Docker host are reached.
func addressOf(dockerHost string) string {
	u, err := url.Parse(dockerHost)
	if err != nil || u.Scheme == "unix" || u.Scheme == "npipe" || u.Hostname() == "" || u.Hostname() == "localhost" {
		return loopback
	}
	return u.Hostname()
}

// endpoint is where an engine listens.
type endpoint struct {
	host   string
	tlsDir string // with ca.pem, cert.pem and key.pem, "": none
}

func (c endpoint) tls() client.Opt {
	file := func(name string) string {
		path := filepath.Join(c.tlsDir, name)
		if _, err := os.Stat(path); err != nil {
			return ""
		}
		return path
	}
	return client.WithTLSClientConfig(file("ca.pem"), file("cert.pem"), file("key.pem"))
}

// contextEndpoint is that of the docker command's current context; of the default
// context the zero value.
func contextEndpoint() (endpoint, error) {
	dir, err := configDir()
	if err != nil {
		return endpoint{}, nil // no home, no context
	}
	name := os.Getenv("DOCKER_CONTEXT")
	if name == "" {
		c, err := readConfig(dir)
		if err != nil {
			return endpoint{}, err
		}
		name = c.CurrentContext
	}
	if name == "" || name == "default" {
		return endpoint{}, nil
	}
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	b, err := os.ReadFile(filepath.Join(dir, "contexts", "meta", id, "meta.json"))
	if err != nil {
		return endpoint{}, fmt.Errorf("docker context %q: %w", name, err)
	}
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	if err := json.Unmarshal(b, &meta); err != nil {
		return endpoint{}, fmt.Errorf("docker context %q: %w", name, err)
	}
	c := endpoint{host: meta.Endpoints["docker"].Host}
	if tls := filepath.Join(dir, "contexts", "tls", id, "docker"); c.host != "" {
		if _, err := os.Stat(tls); err == nil {
			c.tlsDir = tls
		}
	}
	return c, nil
}

// cliConfig is what is used of the docker command's config.json.
type cliConfig struct {
	CurrentContext string
	Auths          map[string]struct{ Auth, IdentityToken string }
	CredsStore     string
	CredHelpers    map[string]string
}

func configDir() (string, error) {
	if dir := os.Getenv("DOCKER_CONFIG"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".docker"), err
}

func readConfig(dir string) (c cliConfig, err error) {
	path := filepath.Join(dir, "config.json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return c, fmt.Errorf("read %s: %w", path, err)
	}
	return c, nil
}

// attached is the container of Settings.Container.
type attached struct {
	id      string // "" before it was looked at
	address string // of its ports
}

// startLimit bounds the making of a container, and a start with all hooks of its runtime.
const startLimit = 2 * time.Minute

// shortID is an id as people see it.
func shortID(id string) string { return id[:min(12, len(id))] }

// image is what a tag led to.
type image struct {
	id     string // sha256:..., of this Docker host
	digest string // NAME@sha256:..., "" for one that no registry has
}
