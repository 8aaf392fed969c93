package docker_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"perflab/internal/test/dockertest"
)

// The docker command is the judge of whether the stand-in speaks as an engine does.
func TestStandInSpeaksAsDocker(t *testing.T) {
	t.Parallel()
	cli, err := exec.LookPath("docker")
	if err != nil {
		t.Skip("needs the docker command on PATH (no daemon)")
	}
	e := dockertest.Start(t, dockertest.Image{Ref: ref, Remote: true})
	config := t.TempDir()
	run := func(want string, status int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), cli, args...)
		cmd.Env = append(os.Environ(), "DOCKER_HOST="+e.Host, "DOCKER_CONFIG="+config)
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != status || !strings.Contains(string(out), want) {
			t.Errorf("docker %s: status %d (%v), want %d and %q:\n%s", strings.Join(args, " "), got, err, status, want, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("Downloaded newer image for "+ref, 0, "pull", ref)
	run("denied", 1, "pull", "registry.invalid/engines/none:v1")
	run("sha256:", 0, "image", "inspect", "--format", "{{.Id}}", ref)
	run("to stdout\n", 0, "run", "--rm", "--network", "host", "--entrypoint", "echo", ref, "to", "stdout")
	run("to stderr\n", 3, "run", "--rm", "--network", "host", "--entrypoint", "sh", ref, "-c", "echo to stderr >&2; exit 3")
	run("executable file not found", 127, "run", "--rm", "--network", "host", "--entrypoint", "no-such-program", ref)
	id := run("", 0, "run", "-d", "--name", "node", "--network", "host", "--label", "a=b", "--entrypoint", "sh", ref, "-c", "echo one; echo two >&2; exec sleep 30")
	run(id[:12], 0, "ps", "--no-trunc", "--filter", "label=a=b", "--format", "{{.ID}} {{.Names}}")
	if out := run("", 0, "ps", "-q", "--filter", "label=a=c"); out != "" {
		t.Errorf("a filter that matches nothing lists %q", out)
	}
	run("running false /node", 0, "inspect", "--format", "{{.State.Status}} {{.State.OOMKilled}} {{.Name}}", "node")
	run("inside\n", 0, "exec", "node", "echo", "inside")
	run("", 5, "exec", "node", "sh", "-c", "exit 5")
	run("executable file not found", 127, "exec", "node", "no-such-program")
	run("node", 0, "stop", "-t", "1", "node")
	if out := run("one\n", 0, "logs", "node"); !strings.Contains(out, "two") {
		t.Errorf("logs lack what was written to stderr:\n%s", out)
	}
	run("exited 143", 0, "inspect", "--format", "{{.State.Status}} {{.State.ExitCode}}", "node")
	run("node", 0, "rm", "node")
	run("No such container", 1, "logs", "node")
}
