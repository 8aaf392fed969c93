package docker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"perflab/internal/deploy"
)

// resolve finds the image, pulls it where the policy says so, and keeps what it is: a tag
// that moves while a study runs does not change what the study measures.
func (e *engine) resolve(ctx context.Context, op string) error {
	op += ": image " + e.settings.Image
	if e.settings.Pull == PullAlways {
		if err := e.pull(ctx, op); err != nil {
			return err
		}
	}
	found, err := e.api.ImageInspect(ctx, e.settings.Image)
	if isNotFound(err) && cmp.Or(e.settings.Pull, PullMissing) == PullMissing {
		if err := e.pull(ctx, op); err != nil {
			return err
		}
		found, err = e.api.ImageInspect(ctx, e.settings.Image)
	}
	if isNotFound(err) && e.settings.Pull == PullNever {
		return &deploy.InfraError{Op: op, Err: errors.New("the Docker host does not have it, and pull is never"), Help: "pull it with docker pull, or set pull to missing"}
	}
	if err != nil {
		return e.explain(ctx, op, err)
	}
	e.image = image{id: found.ID, digest: pickDigest(e.settings.Image, found.RepoDigests)}
	return nil
}

// pickDigest chooses among the names under which registries have an image that of the
// repository that was asked for.
func pickDigest(ref string, digests []string) string {
	repo, _, _ := strings.Cut(ref, "@")
	if i := strings.LastIndexByte(repo, ':'); i > strings.LastIndexByte(repo, '/') {
		repo = repo[:i]
	}
	repo = strings.TrimPrefix(strings.TrimPrefix(repo, "docker.io/"), "library/")
	for _, d := range digests {
		name, _, _ := strings.Cut(d, "@")
		if strings.TrimPrefix(strings.TrimPrefix(name, "docker.io/"), "library/") == repo {
			return d
		}
	}
	if len(digests) == 0 {
		return ""
	}
	return slices.Min(digests)
}

// pull pulls the image and tells its progress.
func (e *engine) pull(ctx context.Context, op string) error {
	opts := client.ImagePullOptions{RegistryAuth: e.registryAuth(ctx)}
	if p := e.platform(); p != nil {
		opts.Platforms = []v1.Platform{*p}
	}
	stream, err := e.api.ImagePull(ctx, e.settings.Image, opts)
	if err != nil {
		return e.explain(ctx, op+": pull", err)
	}
	defer stream.Close()
	p := pullProgress{image: e.settings.Image, tell: e.progress, layers: map[string]layer{}}
	for m, err := range stream.JSONMessages(ctx) {
		if err == nil && m.Error != nil {
			err = m.Error
		}
		if err != nil {
			return e.explain(ctx, op+": pull", err)
		}
		p.message(m, time.Now())
	}
	return nil
}

func (e *engine) platform() *v1.Platform {
	parts := append(strings.Split(e.settings.Platform, "/"), "", "")
	if parts[0] == "" {
		return nil
	}
	return &v1.Platform{OS: parts[0], Architecture: parts[1], Variant: parts[2]}
}

// pullProgress turns the messages of a pull, some for each layer many times a second, into
// a line now and then.
type pullProgress struct {
	image  string
	tell   func(string)
	layers map[string]layer
	last   time.Time
}

type layer struct {
	now, all int64 // bytes, 0: not known
	done     bool
}

const pullPause = 500 * time.Millisecond // between two lines

func (p *pullProgress) message(m jsonstream.Message, now time.Time) {
	l, known := p.layers[m.ID]
	switch {
	case m.ID == "" || strings.HasPrefix(m.Status, "Pulling from"):
		if strings.HasPrefix(m.Status, "Digest:") || strings.HasPrefix(m.Status, "Status:") {
			p.tell(m.Status)
		}
		return
	case strings.HasPrefix(m.Status, "Pull complete"), strings.HasPrefix(m.Status, "Already exists"):
		l.now, l.done = l.all, true
	case strings.HasPrefix(m.Status, "Downloading") && m.Progress != nil:
		l.now, l.all = m.Progress.Current, m.Progress.Total
	}
	p.layers[m.ID] = l
	if known && now.Sub(p.last) < pullPause {
		return
	}
	p.last = now
	p.tell(p.line())
}

func (p *pullProgress) line() string {
	var now, all int64
	done := 0
	for _, l := range p.layers {
		now, all = now+l.now, all+l.all
		if l.done {
			done++
		}
	}
	text := fmt.Sprintf("pull %s: %d of %d layers", p.image, done, len(p.layers))
	if all > 0 {
		text += fmt.Sprintf(", %.2f of %.2f GB", float64(now)/1e9, float64(all)/1e9)
	}
	return text
}

// registryAuth is the login that the docker command keeps for the image's registry, as the
// API wants it; "" where there is none, and the registry decides.
func (e *engine) registryAuth(ctx context.Context) string {
	dir, err := configDir()
	if err != nil {
		return ""
	}
	c, err := readConfig(dir)
	if err != nil {
		e.progress("no login is used for the pull: " + err.Error())
		return ""
	}
	server := registryOf(e.settings.Image)
	auth := registry.AuthConfig{ServerAddress: server}
	if helper := cmp.Or(c.CredHelpers[server], c.CredsStore); helper != "" {
		if auth.Username, auth.Password, err = askHelper(ctx, helper, server); err != nil {
			return ""
		}
	} else {
		kept := c.Auths[server]
		plain, err := base64.StdEncoding.DecodeString(kept.Auth)
		user, password, ok := strings.Cut(string(plain), ":")
		if err != nil || !ok && kept.IdentityToken == "" {
			return ""
		}
		auth.Username, auth.Password, auth.IdentityToken = user, strings.TrimRight(password, "\x00"), kept.IdentityToken
	}
	if auth.Username == "<token>" { // the helper's word for an identity token
		auth.Username, auth.Password, auth.IdentityToken = "", "", auth.Password
	}
	text, err := authconfig.Encode(auth)
	if err != nil {
		return ""
	}
	return text
}

// hub is the name under which logins of Docker Hub are kept.
const hub = "https://index.docker.io/v1/"

// registryOf is the name under which logins of an image's registry are kept.
func registryOf(ref string) string {
	first, _, found := strings.Cut(ref, "/")
	if !found || !strings.ContainsAny(first, ".:") && first != "localhost" || first == "docker.io" {
		return hub
	}
	return first
}

// askHelper asks a credential helper of the docker command.
func askHelper(ctx context.Context, helper, server string) (user, secret string, err error) {
	cmd := exec.CommandContext(ctx, "docker-credential-"+helper, "get")
	cmd.Stdin = strings.NewReader(server)
	out, err := cmd.Output()
	if err != nil {
		return "", "", err
	}
	var answer struct{ Username, Secret string }
	err = json.NewDecoder(bytes.NewReader(out)).Decode(&answer)
	return answer.Username, answer.Secret, err
}
