package docker

import (
	"strings"
	"testing"
)

func TestRemarks(t *testing.T) {
	t.Setenv("HF_TOKEN", "")
	cache := []string{"~/.cache/huggingface:/root/.cache/huggingface"}
	for _, c := range []struct {
		name  string
		s     Settings
		model string
		gpus  int
		want  []string // how they begin
	}{
		{name: "all said", s: Settings{Image: "i", IPC: "host", Mounts: cache, Ulimits: []string{"memlock=-1"}}, model: "Qwen/Qwen3-32B", gpus: 8},
		{name: "nothing said", s: Settings{Image: "i"}, model: "Qwen/Qwen3-32B", gpus: 8, want: []string{"no mount keeps"}},
		{name: "a model in a directory", s: Settings{Image: "i"}, model: "/models/qwen", gpus: 8},
		{name: "private memory", s: Settings{Image: "i", IPC: "private", Mounts: cache}, model: "Qwen/Qwen3-32B", gpus: 2, want: []string{"/dev/shm of the containers is 64 MB"}},
		{name: "little memory", s: Settings{Image: "i", ShmSize: "512m", Mounts: cache}, model: "Qwen/Qwen3-32B", gpus: 2, want: []string{"/dev/shm of the containers is 512m"}},
		{name: "little memory for one GPU", s: Settings{Image: "i", ShmSize: "512m", Mounts: cache}, model: "Qwen/Qwen3-32B", gpus: 1},
		{name: "limits without memlock", s: Settings{Image: "i", Mounts: cache, Ulimits: []string{"stack=67108864"}}, model: "Qwen/Qwen3-32B", gpus: 8, want: []string{"ulimits do not name memlock"}},
		{name: "a cache elsewhere", s: Settings{Image: "i", Mounts: []string{"hub:/hub"}, Env: []string{"HF_HOME=/hub/hf"}}, model: "Qwen/Qwen3-32B", gpus: 1},
		{name: "a mount of something else", s: Settings{Image: "i", Mounts: []string{"c:/root/.cache/vllm"}}, model: "Qwen/Qwen3-32B", gpus: 1, want: []string{"no mount keeps"}},
		{name: "gated", s: Settings{Image: "i", Mounts: cache, Env: []string{"HF_TOKEN"}}, model: "meta-llama/Llama-3.1-8B-Instruct", gpus: 1,
			want: []string{"meta-llama/Llama-3.1-8B-Instruct is gated, and the containers get no token: the download will be refused unless"}},
		{name: "gated with a token", s: Settings{Image: "i", Mounts: cache, Env: []string{"HF_TOKEN=hf_x"}}, model: "meta-llama/Llama-3.1-8B-Instruct", gpus: 1},
		{name: "a container that runs already", s: Settings{Container: "c"}, model: "meta-llama/Llama-3.1-8B-Instruct", gpus: 8},
	} {
		got := c.s.Remarks(c.model, c.gpus)
		ok := len(got) == len(c.want)
		for i := 0; ok && i < len(got); i++ {
			ok = strings.HasPrefix(got[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if s := (Settings{Image: "i"}).WithDefaults(1); s.ShmSize != "16g" {
		t.Errorf("an engine with a GPU has a /dev/shm of %q", s.ShmSize)
	}
	for _, s := range []Settings{{Image: "i", IPC: "private"}, {Image: "i", ShmSize: "1g"}, {Container: "c"}} {
		if got := s.WithDefaults(8); got.ShmSize != s.ShmSize {
			t.Errorf("%+v gets a /dev/shm of %q", s, got.ShmSize)
		}
	}
	if s := (Settings{Image: "i"}).WithDefaults(0); s.ShmSize != "" {
		t.Errorf("an engine without GPUs gets a /dev/shm of %q", s.ShmSize)
	}
}
