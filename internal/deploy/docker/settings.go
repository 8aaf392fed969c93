package docker

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Settings say in what container an engine runs. Either Image or Container is set.
type Settings struct {
	Image            string   `yaml:"image,omitempty" json:"image,omitempty" jsonschema:"description=Image to run\\, by tag or digest; the digest that was used is recorded"`
	Pull             string   `yaml:"pull,omitempty" json:"pull,omitempty" jsonschema:"enum=missing,enum=always,enum=never,description=When to pull the image: missing (the default)\\, always (once per study\\, so that all launches have the same) or never"`
	Container        string   `yaml:"container,omitempty" json:"container,omitempty" jsonschema:"description=Container that runs already\\, by name or id: engines are started inside it\\, and it is left as it was"`
	DockerHost       string   `yaml:"docker_host,omitempty" json:"docker_host,omitempty" jsonschema:"description=Address of the Docker Engine\\, as in DOCKER_HOST; the default is DOCKER_HOST\\, else the current docker context\\, else the socket of this machine"`
	Platform         string   `yaml:"platform,omitempty" json:"platform,omitempty" jsonschema:"description=Platform of the image\\, such as linux/arm64"`
	GPUs             string   `yaml:"gpus,omitempty" json:"gpus,omitempty" jsonschema:"enum=all,enum=none,description=all: a container that was dealt no particular GPUs gets all; none: no GPU is requested of Docker\\, and the engine's environment names its devices (AMD and others); the default requests those dealt"`
	ContainerRuntime string   `yaml:"container_runtime,omitempty" json:"container_runtime,omitempty" jsonschema:"description=Runtime of the container\\, such as nvidia\\, where it is not Docker's default"`
	IPC              string   `yaml:"ipc,omitempty" json:"ipc,omitempty" jsonschema:"enum=host,enum=private,enum=shareable,description=Shared memory of the container; tensor parallel engines want host\\, or a large shm_size"`
	PID              string   `yaml:"pid,omitempty" json:"pid,omitempty" jsonschema:"enum=host,description=host: processes have their ids on the machine\\, as profilers want it"`
	ShmSize          string   `yaml:"shm_size,omitempty" json:"shm_size,omitempty" jsonschema:"description=Size of /dev/shm\\, such as 16g (the default for engines with GPUs where ipc is not given; else Docker's 64 MB)"`
	Ulimits          []string `yaml:"ulimits,omitempty" json:"ulimits,omitempty" jsonschema:"description=Limits as docker run takes them: memlock=-1\\, stack=67108864"`
	Network          string   `yaml:"network,omitempty" json:"network,omitempty" jsonschema:"enum=host,enum=bridge,description=host (the default: nothing between client and engine) or bridge (ports are published)"`
	Address          string   `yaml:"address,omitempty" json:"address,omitempty" jsonschema:"description=Where this machine reaches the ports of the Docker host; the default is 127.0.0.1 for a socket\\, else the host in docker_host"`
	Mounts           []string `yaml:"mounts,omitempty" json:"mounts,omitempty" jsonschema:"description=SOURCE:TARGET or SOURCE:TARGET:ro; a source without a slash is a volume. For models and compile caches"`
	Env              []string `yaml:"env,omitempty" json:"env,omitempty" jsonschema:"description=KEY=value\\, or KEY alone for perflab's own value\\, which is the better way for a secret"`
	User             string   `yaml:"user,omitempty" json:"user,omitempty" jsonschema:"description=User that the engine runs as\\, instead of the image's"`
	WorkDir          string   `yaml:"workdir,omitempty" json:"workdir,omitempty" jsonschema:"description=Directory that the engine runs in\\, instead of the image's"`
	Entrypoint       []string `yaml:"entrypoint,omitempty" json:"entrypoint,omitempty" jsonschema:"description=Put before the engine's command\\, for images that need a script run first. The image's own entrypoint is never used: the engine's command is complete"`
	CPUs             float64  `yaml:"cpus,omitempty" json:"cpus,omitempty" jsonschema:"description=CPUs' worth of time the container may use"`
	CPUSet           string   `yaml:"cpuset,omitempty" json:"cpuset,omitempty" jsonschema:"description=CPUs the container may run on\\, such as 0-31"`
	Memory           string   `yaml:"memory,omitempty" json:"memory,omitempty" jsonschema:"description=Memory limit of the container\\, such as 64g"`
	Labels           []string `yaml:"labels,omitempty" json:"labels,omitempty" jsonschema:"description=KEY=value\\, added to the container's labels"`
	ExtraHosts       []string `yaml:"extra_hosts,omitempty" json:"extra_hosts,omitempty" jsonschema:"description=NAME:ADDRESS\\, added to the container's /etc/hosts"`
	Devices          []string `yaml:"devices,omitempty" json:"devices,omitempty" jsonschema:"description=Device files to pass in: /dev/kfd\\, /dev/dri"`
	GroupAdd         []string `yaml:"group_add,omitempty" json:"group_add,omitempty" jsonschema:"description=Further groups of the engine\\, such as video and render"`
	CapAdd           []string `yaml:"cap_add,omitempty" json:"cap_add,omitempty" jsonschema:"description=Capabilities\\, such as SYS_PTRACE or IPC_LOCK"`
	SecurityOpt      []string `yaml:"security_opt,omitempty" json:"security_opt,omitempty" jsonschema:"description=Security options\\, such as seccomp=unconfined"`
	Init             bool     `yaml:"init,omitempty" json:"init,omitempty" jsonschema:"description=Run Docker's small init as the first process\\, for engines that do not wait for their children"`

	Privileged bool `yaml:"privileged,omitempty" json:"privileged,omitempty" jsonschema:"description=Give the container all devices and capabilities"`
}

// Pull policies, networks and the choices for GPUs.
const (
	PullMissing   = "missing"
	PullAlways    = "always"
	PullNever     = "never"
	NetworkHost   = "host"
	NetworkBridge = "bridge"
	GPUsAll       = "all"
	GPUsNone      = "none"
)

// Validate says what keeps the settings from being used, one sentence a fault.
func (s Settings) Validate() error {
	errs := []error{s.validatePlace()}
	for _, c := range []struct {
		key, value string
		may        []string
	}{
		{"pull", s.Pull, []string{PullMissing, PullAlways, PullNever}},
		{"gpus", s.GPUs, []string{GPUsAll, GPUsNone}},
		{"ipc", s.IPC, []string{"host", "private", "shareable"}},
		{"pid", s.PID, []string{"host"}},
		{"network", s.Network, []string{NetworkHost, NetworkBridge}},
	} {
		if c.value != "" && !slices.Contains(c.may, c.value) {
			errs = append(errs, fmt.Errorf("%s %q must be %s", c.key, c.value, strings.Join(c.may, ", or ")))
		}
	}
	if s.CPUs < 0 || math.IsInf(s.CPUs, 0) || math.IsNaN(s.CPUs) {
		errs = append(errs, fmt.Errorf("cpus %v must be a positive number", s.CPUs))
	}
	for key, size := range map[string]string{"shm_size": s.ShmSize, "memory": s.Memory} {
		if _, err := parseSize(size); err != nil {
			errs = append(errs, fmt.Errorf("%s %w", key, err))
		}
	}
	errs = append(errs, s.validateLists()...)
	return errors.Join(errs...)
}

// validatePlace is about the container that engines run in.
func (s Settings) validatePlace() error {
	if scheme, _, ok := strings.Cut(s.DockerHost, "://"); s.DockerHost != "" && (!ok || !slices.Contains([]string{"unix", "tcp"}, scheme)) {
		return fmt.Errorf("docker_host %q must begin with unix:// or tcp://: of a machine that is reached by ssh, forward the socket with ssh -L /tmp/docker.sock:/var/run/docker.sock, name it, and give the machine as address", s.DockerHost)
	}
	if s.Platform != "" && strings.Count(s.Platform, "/") != 1 && strings.Count(s.Platform, "/") != 2 {
		return fmt.Errorf("platform %q must be like linux/arm64", s.Platform)
	}
	switch {
	case s.Image == "" && s.Container == "":
		return errors.New("image is missing: name the image that has the engine, or the container that runs already")
	case s.Image != "" && s.Container != "":
		return errors.New("image and container exclude each other: a container that runs already has its image")
	case s.Container == "":
		return nil
	}
	var extra []string
	for key, set := range map[string]bool{
		"pull": s.Pull != "", "platform": s.Platform != "", "gpus": s.GPUs != "", "container_runtime": s.ContainerRuntime != "", "ipc": s.IPC != "",
		"pid": s.PID != "", "shm_size": s.ShmSize != "", "ulimits": s.Ulimits != nil, "network": s.Network != "", "mounts": s.Mounts != nil,
		"cpus": s.CPUs != 0, "cpuset": s.CPUSet != "", "memory": s.Memory != "", "labels": s.Labels != nil, "extra_hosts": s.ExtraHosts != nil,
		"devices": s.Devices != nil, "group_add": s.GroupAdd != nil, "cap_add": s.CapAdd != nil, "security_opt": s.SecurityOpt != nil,
		"init": s.Init, "privileged": s.Privileged,
	} {
		if set {
			extra = append(extra, key)
		}
	}
	if len(extra) > 0 {
		slices.Sort(extra)
		return fmt.Errorf("%s cannot be set for a container that runs already: remove it, or name an image", strings.Join(extra, ", "))
	}
	return nil
}

// validateLists is about the settings that are lists of short texts.
func (s Settings) validateLists() (errs []error) {
	for _, m := range s.Mounts {
		if _, err := parseMount(m); err != nil {
			errs = append(errs, err)
		}
	}
	for _, u := range s.Ulimits {
		if _, err := parseUlimit(u); err != nil {
			errs = append(errs, err)
		}
	}
	for _, e := range s.Env {
		if k, _, _ := strings.Cut(e, "="); k == "" || strings.ContainsAny(k, " \t\x00") {
			errs = append(errs, errors.New("an entry of env has no name: write KEY=value, or KEY alone for perflab's own value"))
		}
	}
	for _, l := range s.Labels {
		if k, _, ok := strings.Cut(l, "="); !ok || k == "" {
			errs = append(errs, fmt.Errorf("label %q is not KEY=value", l))
		} else if strings.HasPrefix(k, labelPrefix) {
			errs = append(errs, fmt.Errorf("label %q is perflab's own: choose a key that does not begin with %s", k, labelPrefix))
		}
	}
	for _, h := range s.ExtraHosts {
		if name, addr, ok := strings.Cut(h, ":"); !ok || name == "" || addr == "" {
			errs = append(errs, fmt.Errorf("extra host %q is not NAME:ADDRESS", h))
		}
	}
	for _, d := range s.Devices {
		if !strings.HasPrefix(d, "/") || strings.Count(d, ":") > 2 {
			errs = append(errs, fmt.Errorf("device %q is not the path of a device file, or PATH:TARGET", d))
		}
	}
	return errs
}

// bind is one mount.
type bind struct {
	source, target string
	readOnly       bool
}

// volume tells a named volume from a path.
func (b bind) volume() bool { return !strings.Contains(b.source, "/") }

// parseMount reads SOURCE:TARGET[:ro]. A leading ~ is the home directory.
func parseMount(text string) (bind, error) {
	parts := strings.Split(text, ":")
	if n := len(parts); n < 2 || n > 3 || parts[0] == "" || !path.IsAbs(parts[1]) || n == 3 && parts[2] != "ro" && parts[2] != "rw" {
		return bind{}, fmt.Errorf("mount %q is not SOURCE:TARGET or SOURCE:TARGET:ro with an absolute target", text)
	}
	b := bind{source: parts[0], target: parts[1], readOnly: len(parts) == 3 && parts[2] == "ro"}
	if rest, ok := strings.CutPrefix(b.source, "~"); ok && (rest == "" || rest[0] == '/') {
		home, err := os.UserHomeDir()
		if err != nil {
			return bind{}, fmt.Errorf("mount %q: %w", text, err)
		}
		b.source = filepath.Join(home, rest)
	}
	if !b.volume() && !path.IsAbs(b.source) {
		abs, err := filepath.Abs(b.source)
		if err != nil {
			return bind{}, fmt.Errorf("mount %q: %w", text, err)
		}
		b.source = abs
	}
	return b, nil
}

// limit is one ulimit.
type limit struct {
	name       string
	soft, hard int64
}

// parseUlimit reads NAME=SOFT[:HARD]; -1 is no limit.
func parseUlimit(text string) (limit, error) {
	name, values, _ := strings.Cut(text, "=")
	soft, hard, two := strings.Cut(values, ":")
	if !two {
		hard = soft
	}
	l := limit{name: name}
	var err1, err2 error
	l.soft, err1 = strconv.ParseInt(soft, 10, 64)
	l.hard, err2 = strconv.ParseInt(hard, 10, 64)
	if name == "" || err1 != nil || err2 != nil || l.soft < -1 || l.hard < -1 {
		return limit{}, fmt.Errorf("ulimit %q is not NAME=VALUE or NAME=SOFT:HARD, such as memlock=-1", text)
	}
	if l.hard != -1 && (l.soft == -1 || l.soft > l.hard) {
		return limit{}, fmt.Errorf("ulimit %q has a soft limit above its hard limit", text)
	}
	return l, nil
}

var sizeText = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)i?b?$`)

// parseSize reads a size in bytes, with k, m, g or t for powers of 1024; "" is 0.
func parseSize(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	g := sizeText.FindStringSubmatch(strings.ToLower(text))
	if g == nil {
		return 0, fmt.Errorf("%q is not a size such as 16g", text)
	}
	n, err := strconv.ParseFloat(g[1], 64)
	n *= math.Pow(1024, float64(strings.Index("kmgt", g[2])+min(1, len(g[2]))))
	if err != nil || n < 1 || n > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is not a size such as 16g", text)
	}
	return int64(n), nil
}

// environment is Env with the values of names that stand alone filled in from perflab's
// own. One that perflab does not have is left out.
func (s Settings) environment() []string {
	var out []string
	for _, e := range s.Env {
		if strings.Contains(e, "=") {
			out = append(out, e)
		} else if v, ok := os.LookupEnv(e); ok {
			out = append(out, e+"="+v)
		}
	}
	return out
}

// Labels of containers.
const (
	labelPrefix     = "perflab."
	labelDeployment = labelPrefix + "deployment" // the marker's value
	labelProcess    = labelPrefix + "process"    // replica-0, replica-0.head
)
