package kubetest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Image says how an image behaves. One that nobody described is pulled at once and runs the
// container's command.
type Image struct {
	Entrypoint []string                        // of containers without a command
	Digest     string                          // "" one that follows from the reference
	Pull       func(ctx context.Context) error // pulls it: what it returns is the registry's answer; nil at once
	Login      string                          // user:password that the registry wants in an image pull secret; "" none
	Files      string                          // the directory that a volume of the image is
	Programs   string                          // a directory of programs that its containers find before others, "" none
}

// Image describes an image.
func (c *Cluster) Image(ref string, image Image) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.images[ref] = image
}

// Digest is that of an image: sha256:...
func (c *Cluster) Digest(ref string) string {
	if image := c.image(ref); image.Digest != "" {
		return image.Digest
	}
	if _, digest, is := strings.Cut(ref, "@"); is {
		return digest
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(ref)))
}

func (c *Cluster) image(ref string) Image {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.images[ref]
}

// imageFiles is the directory that a volume of an image is.
func (c *Cluster) imageFiles(ref string) (string, error) {
	if dir := c.image(ref).Files; dir != "" {
		return dir, nil
	}
	return "", &waitError{"ErrImagePull", fmt.Sprintf("failed to pull and unpack image %q: not found", ref)}
}

// repository is a reference without its tag.
func repository(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return ref[:i]
	}
	return ref
}

var referencePattern = regexp.MustCompile(`^[a-z0-9]+([._:/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@sha256:[0-9a-f]{64})?$`)

// pull has the image on the node; false: the pod ends before that.
func (c *container) pull() bool {
	ref := c.spec.Image
	for failed := 0; ; failed++ {
		reason, err := c.pullOnce(ref)
		if err == nil {
			c.mu.Lock()
			c.imageID = repository(ref) + "@" + c.pod.node.c.Digest(ref)
			c.mu.Unlock()
			return true
		}
		if c.ctx.Err() != nil {
			return false
		}
		c.say(corev1.EventTypeWarning, "Failed", "Error: %s", reason)
		c.wait(reason, err.Error())
		if !sleep(c.ctx, firstBackOff) {
			return false
		}
		if reason == "ErrImagePull" {
			c.say(corev1.EventTypeNormal, "BackOff", "Back-off pulling image %q", ref)
			c.say(corev1.EventTypeWarning, "Failed", "Error: ImagePullBackOff")
			c.wait("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %v", ref, err))
		}
		if !sleep(c.ctx, backOff(failed+1)) {
			return false
		}
	}
}

// pullOnce tries to have the image on the node; the reason is the kubelet's for the error.
func (c *container) pullOnce(ref string) (reason string, err error) {
	n := c.pod.node
	n.mu.Lock()
	there := n.pulled[ref]
	n.mu.Unlock()
	switch {
	case !referencePattern.MatchString(ref):
		c.say(corev1.EventTypeWarning, "InspectFailed", "Failed to apply default image tag %q: couldn't parse image name %q: invalid reference format", ref, ref)
		return "InvalidImageName", fmt.Errorf("couldn't parse image name %q: invalid reference format", ref)
	case there && c.spec.ImagePullPolicy != corev1.PullAlways:
		c.say(corev1.EventTypeNormal, "Pulled", "Container image %q already present on machine", ref)
		return "", nil
	case !there && c.spec.ImagePullPolicy == corev1.PullNever:
		c.say(corev1.EventTypeWarning, "ErrImageNeverPull", "Container image %q is not present with pull policy of Never", ref)
		return "ErrImageNeverPull", &waitError{"ErrImageNeverPull", fmt.Sprintf("Container image %q is not present with pull policy of Never", ref)}
	}
	c.say(corev1.EventTypeNormal, "Pulling", "Pulling image %q", ref)
	if err := c.fetch(ref); err != nil {
		err = fmt.Errorf("failed to pull and unpack image %q: %w", ref, err)
		c.say(corev1.EventTypeWarning, "Failed", "Failed to pull image %q: %v", ref, err)
		return "ErrImagePull", err
	}
	n.mu.Lock()
	n.pulled[ref] = true
	n.mu.Unlock()
	c.say(corev1.EventTypeNormal, "Pulled", "Successfully pulled image %q", ref)
	return "", nil
}

// fetch asks the registry.
func (c *container) fetch(ref string) error {
	image := c.pod.node.c.image(ref)
	if image.Login != "" && !c.pod.knows(image.Login) {
		return fmt.Errorf("failed to resolve reference %q: pull access denied, repository does not exist or may require authorization", ref)
	}
	if image.Pull != nil {
		return image.Pull(c.ctx)
	}
	return nil
}

// knows says whether an image pull secret of the pod has a login.
func (p *pod) knows(login string) bool {
	for _, ref := range p.object.Spec.ImagePullSecrets {
		data, err := p.secret(ref.Name)
		var config struct {
			Auths map[string]struct{ Username, Password, Auth string }
		}
		if err != nil || json.Unmarshal([]byte(data[corev1.DockerConfigJsonKey]), &config) != nil {
			continue // the kubelet goes on without it
		}
		for _, a := range config.Auths {
			plain, _ := base64.StdEncoding.DecodeString(a.Auth)
			if a.Username+":"+a.Password == login || string(plain) == login {
				return true
			}
		}
	}
	return false
}
