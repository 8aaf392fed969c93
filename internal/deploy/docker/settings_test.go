package docker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/jsonstream"
)

func TestSettingsValidate(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	good := Settings{
		Image: "vllm/vllm-openai:v0.11.0", Pull: PullAlways, DockerHost: "tcp://10.0.0.1:2375", Platform: "linux/arm64/v8", GPUs: GPUsAll, IPC: "host", PID: "host",
		ShmSize: "16g", Ulimits: []string{"memlock=-1", "stack=67108864", "nofile=1024:4096"}, Network: NetworkBridge, Mounts: []string{"~/.cache:/root/.cache:ro", "models:/models"},
		Env: []string{"A=b", "HF_TOKEN"}, CPUs: 1.5, Memory: "1.5GiB", Labels: []string{"team=x"}, ExtraHosts: []string{"a:10.0.0.2"}, Devices: []string{"/dev/kfd", "/dev/dri:/dev/dri:rw"},
	}
	if err := good.Validate(); err != nil {
		t.Errorf("good settings: %v", err)
	}
	if err := (Settings{Container: "node", User: "me", WorkDir: "/w", Env: []string{"A=b"}, Entrypoint: []string{"env"}}).Validate(); err != nil {
		t.Errorf("good settings of a container: %v", err)
	}
	for want, change := range map[string]func(*Settings){
		"image is missing":                            func(s *Settings) { s.Image = "" },
		"exclude each other":                          func(s *Settings) { s.Container = "c" },
		"gpus, mounts cannot be set":                  func(s *Settings) { *s = Settings{Container: "c", GPUs: GPUsAll, Mounts: []string{}} },
		`pull "daily" must be missing`:                func(s *Settings) { s.Pull = "daily" },
		`gpus "2" must be all, or none`:               func(s *Settings) { s.GPUs = "2" },
		`ipc "none"`:                                  func(s *Settings) { s.IPC = "none" },
		`pid "private" must be host`:                  func(s *Settings) { s.PID = "private" },
		`network "none" must be host, or bridge`:      func(s *Settings) { s.Network = "none" },
		"must begin with unix:// or tcp://":           func(s *Settings) { s.DockerHost = "ssh://me@node" },
		`platform "arm64" must be like`:               func(s *Settings) { s.Platform = "arm64" },
		"cpus -1":                                     func(s *Settings) { s.CPUs = -1 },
		`shm_size "lots" is not a size`:               func(s *Settings) { s.ShmSize = "lots" },
		`memory "0" is not a size`:                    func(s *Settings) { s.Memory = "0" },
		`mount "/models" is not`:                      func(s *Settings) { s.Mounts = []string{"/models"} },
		`mount "/a:b" is not`:                         func(s *Settings) { s.Mounts = []string{"/a:b"} },
		`mount "/a:/b:rx" is not`:                     func(s *Settings) { s.Mounts = []string{"/a:/b:rx"} },
		`ulimit "memlock" is not`:                     func(s *Settings) { s.Ulimits = []string{"memlock"} },
		`ulimit "stack=9:8" has a soft`:               func(s *Settings) { s.Ulimits = []string{"stack=9:8"} },
		"an entry of env has no name":                 func(s *Settings) { s.Env = []string{"=secret"} },
		`label "team" is not KEY=value`:               func(s *Settings) { s.Labels = []string{"team"} },
		`label "perflab.deployment" is perflab's own`: func(s *Settings) { s.Labels = []string{"perflab.deployment=x"} },
		`extra host "a" is not NAME:ADDRESS`:          func(s *Settings) { s.ExtraHosts = []string{"a"} },
		`device "kfd" is not the path`:                func(s *Settings) { s.Devices = []string{"kfd"} },
	} {
		s := good
		change(&s)
		err := s.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestParseMount(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for text, want := range map[string]bind{
		"~/.cache:/c":    {"/home/me/.cache", "/c", false},
		"~:/c:rw":        {"/home/me", "/c", false},
		"/models:/m:ro":  {"/models", "/m", true},
		"cache:/root/.c": {"cache", "/root/.c", false},
		"~old/x:/c":      {"", "", false}, // of the working directory, below
		"../x:/c":        {"", "", false},
	} {
		got, err := parseMount(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if want.target == "" {
			if !strings.HasPrefix(got.source, "/") || strings.HasPrefix(got.source, "/home/me") {
				t.Errorf("%s: source %s, want it under the working directory", text, got.source)
			}
			continue
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
		if got.volume() != (text == "cache:/root/.c") {
			t.Errorf("%s: volume is %v", text, got.volume())
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "1": 1, "64k": 64 << 10, "16g": 16 << 30, "1.5GiB": 3 << 29, "2T": 2 << 40, "512 MB": 512 << 20} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "g", "1x", "1e9", "9999999999t", "0.1"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q is taken as %d", text, got)
		}
	}
}

func TestPickDigest(t *testing.T) {
	digests := []string{"mirror.invalid/vllm/vllm-openai@sha256:b", "vllm/vllm-openai@sha256:a"}
	for ref, want := range map[string]string{
		"vllm/vllm-openai:v0.11.0":           "vllm/vllm-openai@sha256:a",
		"docker.io/vllm/vllm-openai":         "vllm/vllm-openai@sha256:a",
		"vllm/vllm-openai@sha256:a":          "vllm/vllm-openai@sha256:a",
		"mirror.invalid/vllm/vllm-openai:v1": "mirror.invalid/vllm/vllm-openai@sha256:b",
		"sha256:123":                         "mirror.invalid/vllm/vllm-openai@sha256:b",
	} {
		if got := pickDigest(ref, digests); got != want {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
	}
	if got := pickDigest("localhost:5000/a:b", []string{"x@1", "localhost:5000/a@2"}); got != "localhost:5000/a@2" {
		t.Errorf("a registry with a port: %s", got)
	}
	if got := pickDigest("a", nil); got != "" {
		t.Errorf("an image of no registry: %s", got)
	}
}

func TestExitText(t *testing.T) {
	for _, c := range []struct {
		code int
		oom  bool
		want string
	}{
		{0, false, "exit status 0"},
		{1, false, "exit status 1"},
		{137, false, "exit status 137 (signal: killed)"},
		{137, true, "exit status 137 (the kernel ended it: out of memory)"},
		{139, false, "exit status 139 (signal: segmentation fault)"},
		{255, false, "exit status 255"},
	} {
		if got := exitText(c.code, c.oom); got != c.want {
			t.Errorf("%d: %q, want %q", c.code, got, c.want)
		}
	}
}

func TestRegistryOf(t *testing.T) {
	for ref, want := range map[string]string{
		"vllm/vllm-openai:v1": hub, "ubuntu": hub, "docker.io/a/b": hub,
		"nvcr.io/nvidia/tensorrt-llm/release:1.0": "nvcr.io", "localhost/a": "localhost", "registry:5000/a": "registry:5000",
	} {
		if got := registryOf(ref); got != want {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
	}
}

func TestAddressOf(t *testing.T) {
	for host, want := range map[string]string{"unix:///var/run/docker.sock": "127.0.0.1", "tcp://10.1.2.3:2376": "10.1.2.3", "tcp://localhost:2375": "127.0.0.1", "tcp://[fd00::1]:2375": "fd00::1"} {
		if got := addressOf(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

func TestPullProgress(t *testing.T) {
	var got []string
	p := pullProgress{image: "a:b", tell: func(s string) { got = append(got, s) }, layers: map[string]layer{}}
	now := time.Unix(1000, 0)
	for _, m := range []struct {
		after time.Duration
		jsonstream.Message
	}{
		{0, jsonstream.Message{ID: "b", Status: "Pulling from a"}},
		{0, jsonstream.Message{ID: "l1", Status: "Pulling fs layer"}},
		{0, jsonstream.Message{ID: "l2", Status: "Already exists"}},
		{pullPause, jsonstream.Message{ID: "l1", Status: "Downloading", Progress: &jsonstream.Progress{Current: 5e8, Total: 2e9}}},
		{pullPause / 2, jsonstream.Message{ID: "l1", Status: "Downloading", Progress: &jsonstream.Progress{Current: 6e8, Total: 2e9}}},
		{pullPause / 2, jsonstream.Message{ID: "l1", Status: "Pull complete"}},
		{0, jsonstream.Message{Status: "Digest: sha256:1"}},
	} {
		now = now.Add(m.after)
		p.message(m.Message, now)
	}
	want := []string{
		"pull a:b: 0 of 1 layers",
		"pull a:b: 1 of 2 layers",
		"pull a:b: 1 of 2 layers, 0.50 of 2.00 GB",
		"pull a:b: 2 of 2 layers, 2.00 of 2.00 GB",
		"Digest: sha256:1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
