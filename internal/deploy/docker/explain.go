package docker

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"perflab/internal/deploy"
	"perflab/internal/redact"
)

// fault is something that daemons say, and what to do about it.
type fault struct {
	says *regexp.Regexp
	help string
}

// faults are tried in order, the first that matches counts. They are compiled when something
// went wrong: the program starts for every command.
var faults = sync.OnceValue(func() []fault {
	return []fault{
		{regexp.MustCompile(`could not select device driver|nvidia-container-cli|unknown or invalid runtime name: nvidia|failed to discover GPU vendor|unresolvable CDI devices`),
			"Docker cannot give GPUs to containers: install the NVIDIA Container Toolkit on the Docker host, run nvidia-ctk runtime configure --runtime=docker, and restart Docker"},
		{regexp.MustCompile(`unknown or invalid runtime name`), "Docker does not know that container_runtime: docker info lists those it has"},
		{regexp.MustCompile(`no space left on device|disk quota exceeded`), "the Docker host's disk is full: see docker system df, and free space with docker system prune"},
		{regexp.MustCompile(`toomanyrequests|pull rate limit`), "the registry limits pulls: log in with docker login, or wait"},
		{regexp.MustCompile(`no matching manifest|does not match the specified platform|does not provide the specified platform`), "the image is not made for this platform: choose another tag, or set platform"},
		{regexp.MustCompile(`pull access denied|unauthorized|authentication required|no basic auth credentials|denied: `), "the registry wants a login, or has no such image: run docker login REGISTRY, or correct image"},
		{regexp.MustCompile(`manifest unknown|manifest for .* not found|not found: manifest|No such image|: not found`), "no such image: correct its name or tag, or pull it on the Docker host"},
		{regexp.MustCompile(`is already in use by container`), "remove the named container with docker rm -f, and start again"},
		{regexp.MustCompile(`bind source path does not exist`), "create the directory on the Docker host, or correct mounts"},
		{regexp.MustCompile(`No such container|is not running|is paused`), "start the container, or correct its name"},
		{regexp.MustCompile(`error gathering device information`), "the Docker host has no such device file: correct devices"},
		{regexp.MustCompile(`client version .* is too (?:old|new)`), "set DOCKER_API_VERSION to one that the Docker host speaks, or update Docker"},
		{regexp.MustCompile(`no such host|i/o timeout|TLS handshake timeout|connection refused|network is unreachable|Client\.Timeout`), "the Docker host cannot reach the registry: check its network and proxy, or load the image with docker load and set pull to never"},
		{regexp.MustCompile(`executable file not found|no such file or directory`), "the image lacks a program of the command: correct image, or the engine's command"},
	}
})

// takenPort is how daemons say that they cannot publish a port.
var takenPort = regexp.MustCompile(`port is already allocated|address already in use|ports are not available`)

// text is an error's sentence without what the client puts before it, and without
// secrets.
func (e *engine) text(err error) string {
	text := redact.Text(strings.TrimPrefix(err.Error(), "Error response from daemon: "))
	return redact.ValuesOf(nil, e.settings.environment()).Mask(text)
}

// explain makes of an error of the API an *InfraError with what to do, or gives ctx's cause.
func (e *engine) explain(ctx context.Context, op string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s: %w", op, cause)
	}
	infra := deploy.InfraError{Op: op, Err: errors.New(e.text(err))}
	if client.IsErrConnectionFailed(err) {
		infra.Help = "start Docker, or name another host by docker_host or DOCKER_HOST"
		if e.agent != "" {
			infra.Help = "start Docker there, or perflab agent with another DOCKER_HOST"
		}
		if strings.Contains(infra.Err.Error(), "permission denied") {
			infra.Help = "this user may not use Docker's socket: add it to the group docker, and log in again"
		}
		return &infra
	}
	if takenPort.MatchString(infra.Err.Error()) {
		infra.Help = "end what else takes ports of the Docker host, and start again"
		return &deploy.PortError{InfraError: infra}
	}
	for _, f := range faults() {
		if f.says.MatchString(infra.Err.Error()) {
			infra.Help = f.help
			break
		}
	}
	return &infra
}

// programFaults are how the Docker Engine says that a container cannot start its program.
var programFaults = deploy.ProgramFaults{
	NotFound:   regexp.MustCompile(`executable file not found in|exec: ".*": stat .*: no such file or directory|exec .* no such file or directory`),
	NotAllowed: regexp.MustCompile(`exec.*permission denied`),
}

// explainProgram is explain where a program was to be started.
func (e *engine) explainProgram(ctx context.Context, op, program string, err error) error {
	explained := e.explain(ctx, op, err)
	infra, ok := explained.(*deploy.InfraError)
	if !ok {
		return explained
	}
	if help, kind := programFaults.Explain(program, e.where(), err.Error()); kind != nil {
		infra.Help, infra.Err = help, &deploy.ProgramError{Err: infra.Err, Kind: kind}
	}
	return infra
}

// where names what commands run in.
func (e *engine) where() string {
	if e.settings.Container != "" {
		return "the container " + e.settings.Container
	}
	return "the image " + e.settings.Image
}

func isNotFound(err error) bool { return errdefs.IsNotFound(err) }

// redacted is a command as it may be shown.
func redacted(argv []string) string { return strings.Join(redact.Argv(argv), " ") }
