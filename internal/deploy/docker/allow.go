package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/deploy"
)

// Allow is what the administrator of a machine lets others' containers have. Who may start any container is
// as good as root there: the zero value allows none. In a pattern * stands for any text.
type Allow struct {
	Images   []string // patterns of images, as a study names them: vllm/*
	Mounts   []string // directories with all below them, and names of volumes
	Settings []string // patterns of settings that lead out of a container, with their values: ipc=host
}

// exits are the settings that lead out of a container, each with its values. What is not here or in confine holds a
// container smaller, or is within it; the host's network is what measurements are made over.
func (s Settings) exits() (out []string) {
	add := func(key string, values ...string) {
		for _, v := range values {
			out = append(out, key+"="+v)
		}
	}
	if s.Privileged {
		add("privileged", "true")
	}
	if s.IPC == "host" {
		add("ipc", s.IPC)
	}
	if s.PID != "" {
		add("pid", s.PID)
	}
	if s.ContainerRuntime != "" {
		add("container_runtime", s.ContainerRuntime)
	}
	add("devices", s.Devices...)
	add("cap_add", s.CapAdd...)
	add("security_opt", s.SecurityOpt...)
	return out
}

// confine refuses settings that are not allowed, and gives the others with what their mounts lead to.
func (a Allow) confine(s Settings) (Settings, error) {
	refuse := func(help, format string, args ...any) error {
		return &deploy.InfraError{Op: "start containers", Err: fmt.Errorf(format, args...), Help: help, Lasting: true}
	}
	if !matches(a.Images, s.Image) {
		return s, refuse("whoever administers it adds --image "+s.Image+", or a pattern such as 'vllm/*', to its perflab agent", "its agent does not allow the image %s", s.Image)
	}
	for _, x := range s.exits() {
		if !matches(a.Settings, x) {
			return s, refuse("leave it out of runtime.docker, or whoever administers the machine adds --docker "+x+" to its perflab agent", "its agent does not allow the setting %s, which leads out of a container", x)
		}
	}
	mounts := slices.Clone(s.Mounts)
	for i, text := range mounts {
		b, err := parseMount(text)
		if err == nil {
			b, err = a.mount(b)
		}
		if err != nil {
			return s, refuse("whoever administers the machine adds --mount "+b.source+", or a directory above it, to its perflab agent", "%w", err)
		}
		mounts[i] = b.source + ":" + b.target
		if b.readOnly {
			mounts[i] += ":ro"
		}
	}
	s.Mounts = mounts
	return s, nil
}

// mount refuses what is not below a directory of the list, wherever links lead.
func (a Allow) mount(b bind) (bind, error) {
	if b.volume() {
		if !slices.Contains(a.Mounts, b.source) {
			return b, fmt.Errorf("its agent does not allow the volume %s", b.source)
		}
		return b, nil
	}
	given := filepath.Clean(b.source)
	real, err := resolve(given)
	if err != nil {
		return b, fmt.Errorf("its agent does not allow the mount of %s: where it leads cannot be seen: %w", given, err)
	}
	for _, text := range a.Mounts {
		if dir, err := resolve(text); err == nil && filepath.IsAbs(dir) && within(dir, real) {
			b.source = real
			return b, nil
		}
	}
	return b, fmt.Errorf("its agent does not allow the mount of %s", given)
}

// resolve is a path with links followed, and the home directory in place of a ~. One that does not exist is itself, if
// what is above it is no link: Docker refuses to mount it.
func resolve(text string) (string, error) {
	if rest, ok := strings.CutPrefix(text, "~"); ok && (rest == "" || rest[0] == '/') {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		text = home + rest
	}
	real, err := filepath.EvalSymlinks(text)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(text) == text {
		return real, err
	}
	above, err := resolve(filepath.Dir(text))
	return filepath.Join(above, filepath.Base(text)), err
}

// within reports whether a path is a directory, or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// matches reports whether a text is of one of the patterns, in which * stands for any text.
func matches(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		parts := strings.Split(p, "*")
		rest, ok := strings.CutPrefix(text, parts[0])
		if !ok || len(parts) == 1 {
			return ok && rest == ""
		}
		last := len(parts) - 1
		for _, part := range parts[1:last] {
			var found bool
			if _, rest, found = strings.Cut(rest, part); !found {
				return false
			}
		}
		return strings.HasSuffix(rest, parts[last])
	})
}
