package kube_test

import (
	"strings"
	"testing"

	"perflab/internal/deploy/kube"
	"perflab/internal/deploy/render"
)

func TestRemarks(t *testing.T) {
	const model, llama = "Qwen/Qwen3-32B", "meta-llama/Llama-3.1-8B-Instruct"
	cache := []string{"claim:models:/root/.cache/huggingface"}
	for _, c := range []struct {
		name  string
		pods  render.Pods
		model string
		env   []string
		want  []string // how they begin
	}{
		{"all said", render.Pods{Mounts: cache}, model, nil, nil},
		{"read only", render.Pods{Mounts: []string{"claim:models:/root/.cache:ro"}}, model, nil, nil},
		{"nothing said", render.Pods{}, model, nil, []string{"nothing that is mounted keeps"}},
		{"a model in a directory", render.Pods{}, "/models/qwen", nil, nil},
		{"elsewhere", render.Pods{Mounts: cache}, model, []string{"HF_HOME=/hub"}, []string{"nothing that is mounted keeps the files of models, so that each pod downloads Qwen/Qwen3-32B again: mount a claim there, as claim:NAME:/hub"}},
		{"there", render.Pods{Mounts: []string{"/data/hub:/hub"}}, model, []string{"HF_HOME=/hub"}, nil},
		{"gated", render.Pods{Mounts: cache}, llama, nil, []string{llama + " is gated, and the pods get no token: the download will be refused unless the mounted files have it"}},
		{"gated, with a token", render.Pods{Mounts: cache, Secrets: map[string]string{"HF_TOKEN": "hub/token"}}, llama, nil, nil},
	} {
		got := kube.Settings{Pods: c.pods}.Remarks(c.model, c.env)
		ok := len(got) == len(c.want)
		for i := 0; ok && i < len(got); i++ {
			ok = strings.HasPrefix(got[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
