package kube

import (
	"fmt"
	"strings"

	"perflab/internal/deploy"
)

// Remarks are sentences on what will fail or cost time when pods with these settings serve a
// model, with the engine's own entries of the environment: its files, and the token for them.
func (s Settings) Remarks(model string, env []string) (out []string) {
	if !deploy.FromHub(model) {
		return nil
	}
	kept := s.keepsModels(deploy.HubCache(env))
	if !kept {
		out = append(out, fmt.Sprintf("nothing that is mounted keeps the files of models, so that each pod downloads %s again: mount a claim there, as claim:NAME:%s", model, deploy.HubCache(env)))
	}
	if deploy.Gated(model) && s.Secrets["HF_TOKEN"] == "" && s.Secrets["HUGGING_FACE_HUB_TOKEN"] == "" {
		where := "the download will be refused"
		if kept {
			where += " unless the mounted files have it"
		}
		out = append(out, fmt.Sprintf("%s is gated, and the pods get no token: %s; create a Secret with a token, and name it under secrets as HF_TOKEN: SECRET/KEY", model, where))
	}
	return out
}

// keepsModels reports whether something is mounted where models are downloaded to.
func (s Settings) keepsModels(cache string) bool {
	for _, m := range s.Mounts {
		text := strings.TrimSuffix(m, ":ro")
		if i := strings.LastIndex(text, ":/"); i >= 0 && deploy.Holds(text[i+1:], cache) {
			return true
		}
	}
	return false
}
