package docker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/test/deploytest"
	"perflab/internal/test/dockertest"
)

// everything is all that an administrator can allow.
var everything = docker.Allow{Images: []string{"*"}, Mounts: []string{"/"}, Settings: []string{"*"}}

// open opens settings on a node, as its agent does with what a leader has sent.
func open(t *testing.T, n docker.Node, s docker.Settings) (deploy.Place, error) {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return n.Open(raw)
}

// TestAllow: what is not allowed is refused for good, by a sentence with what its administrator does about it.
func TestAllow(t *testing.T) {
	home, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	models, link := filepath.Join(home, "models"), filepath.Join(home, "models", "link")
	if err := errors.Join(os.Mkdir(models, 0o755), os.Symlink(elsewhere, link)); err != nil {
		t.Fatal(err)
	}
	allow := docker.Allow{Images: []string{"vllm/*", "*/sglang:v0.5*"}, Mounts: []string{"~/models", "cache"}, Settings: []string{"ipc=host", "devices=/dev/infiniband*"}}
	vllm := func(s docker.Settings) docker.Settings {
		s.Image = "vllm/vllm-openai:v0.11.0"
		return s
	}
	for _, tt := range []struct {
		name string
		s    docker.Settings
		want string // "": allowed
		help string
	}{
		{"image", vllm(docker.Settings{}), "", ""},
		{"image by digest", docker.Settings{Image: "lmsysorg/sglang:v0.5.5@sha256:0"}, "", ""},
		{"another image", docker.Settings{Image: "evil/vllm/x"}, "its agent does not allow the image evil/vllm/x", "adds --image evil/vllm/x"},
		{"image id", docker.Settings{Image: "sha256:0123"}, "its agent does not allow the image sha256:0123", "--image"},
		{"mounts", vllm(docker.Settings{Mounts: []string{"~/models:/m:ro", models + "/a:/a", "cache:/c"}}), "", ""},
		{"mount above", vllm(docker.Settings{Mounts: []string{home + ":/m"}}), "does not allow the mount of " + home, "--mount " + home},
		{"mount beside", vllm(docker.Settings{Mounts: []string{models + "-2:/m"}}), "does not allow the mount of " + models + "-2", "--mount"},
		{"mount up", vllm(docker.Settings{Mounts: []string{models + "/../..:/m"}}), "does not allow the mount of /", "--mount"},
		{"mount by a link", vllm(docker.Settings{Mounts: []string{link + ":/m"}}), "does not allow the mount of " + link, "--mount"},
		{"mount below a link", vllm(docker.Settings{Mounts: []string{link + "/none:/m"}}), "does not allow the mount of " + link + "/none", "--mount"},
		{"another volume", vllm(docker.Settings{Mounts: []string{"other:/m"}}), "does not allow the volume other", "--mount other"},
		{"settings", vllm(docker.Settings{IPC: "host", Devices: []string{"/dev/infiniband/uverbs0"}}), "", ""},
		{"devices", vllm(docker.Settings{Devices: []string{"/dev/infiniband/a", "/dev/sda"}}), "does not allow the setting devices=/dev/sda, which leads out of a container", "--docker devices=/dev/sda"},
		{"privileged", vllm(docker.Settings{Privileged: true}), "privileged=true", "leave it out of runtime.docker"},
		{"pid", vllm(docker.Settings{PID: "host"}), "pid=host", "--docker pid=host"},
		{"own ipc", vllm(docker.Settings{IPC: "private"}), "", ""},
		{"running container", docker.Settings{Container: "x"}, "container does not apply to machines of a fleet", "correct"},
		{"another engine", vllm(docker.Settings{DockerHost: "tcp://a:1"}), "docker_host does not apply to machines of a fleet", "correct"},
		{"label", vllm(docker.Settings{Labels: []string{"perflab.agent=other"}}), "is perflab's own", "correct"},
		{"agent's environment", vllm(docker.Settings{Env: []string{"HOME"}}), "the agent's own are given to nobody", "correct"},
		{"relative mount", vllm(docker.Settings{Mounts: []string{"./a:/a"}}), "relative to nothing on another machine", "correct"},
	} {
		_, err := open(t, docker.Node{ID: "a", Host: "unix:///none", Allow: allow}, tt.s)
		infra, ok := errors.AsType[*deploy.InfraError](err)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (!ok || !infra.Lasting || !strings.Contains(err.Error(), tt.want) || !strings.Contains(infra.Hint(), tt.help)):
			t.Errorf("%s: %v, want %s (%s)", tt.name, err, tt.want, tt.help)
		}
	}
	if _, err := open(t, docker.Node{Allow: everything, Host: "tcp://10.0.0.1:2375"}, vllm(docker.Settings{})); err == nil || !strings.Contains(err.Error(), "is on another machine") {
		t.Errorf("a Docker Engine elsewhere: %v", err)
	}
}

// TestEachSettingIsDecided: of each setting somebody has decided whether an agent's administrator must allow it.
func TestEachSettingIsDecided(t *testing.T) {
	harmless := strings.Fields("Pull Platform GPUs ShmSize Ulimits Network Env User WorkDir Entrypoint CPUs CPUSet Memory Labels ExtraHosts GroupAdd Init")
	byThemselves := strings.Fields("Image Mounts")               // each has a flag of its own
	neverThere := strings.Fields("Container DockerHost Address") // ValidateOnNode refuses them
	values := map[string]any{"IPC": "host", "PID": "host", "ContainerRuntime": "x", "Privileged": true, "Devices": []string{"/dev/x"}, "CapAdd": []string{"x"}, "SecurityOpt": []string{"x"}}
	for f := range reflect.TypeFor[docker.Settings]().Fields() {
		if slices.Contains(slices.Concat(harmless, byThemselves, neverThere), f.Name) {
			continue
		}
		s := docker.Settings{Image: "x"}
		if values[f.Name] == nil {
			t.Errorf("nobody has decided what %s may lead to: see Allow", f.Name)
			continue
		}
		reflect.ValueOf(&s).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(values[f.Name]))
		if _, err := open(t, docker.Node{Host: "unix:///none", Allow: docker.Allow{Images: []string{"*"}}}, s); err == nil || !strings.Contains(err.Error(), "leads out of a container") {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

// TestOnNode: an agent gets this perflab's values of names that stand alone in env, and no name without one.
func TestOnNode(t *testing.T) {
	t.Setenv("PERFLAB_TEST_TOKEN", "hf_of-the-leader")
	c, err := docker.Settings{Image: ref, Env: []string{"A=b", "PERFLAB_TEST_TOKEN", "PERFLAB_TEST_UNSET"}, Network: docker.NetworkBridge}.OnNode(nil)
	if err != nil {
		t.Fatal(err)
	}
	var sent docker.Settings
	if err := json.Unmarshal(c.Settings, &sent); err != nil || !slices.Equal(sent.Env, []string{"A=b", "PERFLAB_TEST_TOKEN=hf_of-the-leader"}) || c.Bind != "0.0.0.0" {
		t.Errorf("sent is %+v, %v; engines listen on %q", sent.Env, err, c.Bind)
	}
	two := deploy.Spec{Replicas: []deploy.Replica{{Peers: []deploy.Peer{{Name: "head"}}}}}
	if err := c.Check(two); err == nil || !strings.Contains(err.Error(), "network of its own") {
		t.Errorf("several processes on networks of their own: %v", err)
	}
	if c, err = (docker.Settings{Image: ref}).OnNode(nil); err != nil || c.Bind != "127.0.0.1" || c.Check(two) != nil {
		t.Errorf("on the machine's network: %q, %v, %v", c.Bind, err, c.Check(two))
	}
	if _, err := (docker.Settings{Image: ref, Container: "x"}).OnNode(nil); err == nil {
		t.Error("a container that runs already is taken")
	}
}

// TestSweepOfAgent: what an agent left is ended by its next process, engines and commands, and no other's.
func TestSweepOfAgent(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	sleep := []string{"sleep", "60"}
	e.Run("engine", ref, sleep, map[string]string{"perflab.agent": "a", "perflab.deployment": "x/0", "perflab.process": "replica-0"})
	e.Run("command", ref, sleep, map[string]string{"perflab.agent": "a", "perflab.command": "yes"})
	e.Run("of-another-agent", ref, sleep, map[string]string{"perflab.agent": "b", "perflab.deployment": "y/0", "perflab.process": "replica-0"})
	e.Run("of-a-study-here", ref, sleep, map[string]string{"perflab.deployment": "z/0", "perflab.process": "replica-0"})
	n := docker.Node{ID: "a", Host: e.Host, Allow: everything}
	ended, err := n.Sweep(t.Context())
	if want := map[string]string{"x/0": "replica-0"}; err != nil || !reflect.DeepEqual(ended, want) {
		t.Errorf("ended %v, %v, want %v", ended, err, want)
	}
	var left []string
	for _, c := range e.Containers() {
		left = append(left, c.Name)
	}
	if want := []string{"of-a-study-here", "of-another-agent"}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
	if ended, err := (docker.Node{Host: e.Host}).Sweep(t.Context()); err != nil || len(ended) > 0 {
		t.Errorf("an agent without an id ends %v, %v", ended, err)
	}
	e.Down()
	if _, err := n.Sweep(t.Context()); err == nil {
		t.Error("a Docker Engine that is down was swept")
	}
}

// TestPlace: what an agent starts has its label, the image is the same throughout, and an engine that is down is told.
func TestPlace(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref, Remote: true})
	p, err := open(t, docker.Node{ID: "a", Host: e.Host, Allow: everything}, docker.Settings{Image: ref})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	image, err := p.Prepare(t.Context(), func(text string) { told = append(told, text) })
	if err != nil || image != e.Digest(ref) || !strings.Contains(fmt.Sprint(told), "pull ") {
		t.Errorf("prepared is %s, %v, told %q", image, err, told)
	}
	e.Retag(ref)
	s := deploytest.Spec(t, deploytest.Ready)
	d := deploytest.Start(t, runtimeOf(p), s)
	if c := only(t, e); c.Labels["perflab.agent"] != "a" || c.Labels["perflab.process"] != "replica-0" {
		t.Errorf("labels %v", c.Labels)
	}
	if again, err := p.Prepare(t.Context(), func(string) {}); err != nil || again != image {
		t.Errorf("prepared again it is %s, %v, and was %s", again, err, image)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	e.Down()
	if _, err := p.Prepare(t.Context(), func(string) {}); err == nil {
		t.Error("a Docker Engine that is down is said to be there")
	}
}

// runtimeOf is a runtime over a place.
func runtimeOf(p deploy.Place) deploy.Runtime {
	return deploy.Launcher{Host: p, Kind: "test", Bind: "127.0.0.1"}
}
