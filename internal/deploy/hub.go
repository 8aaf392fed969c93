package deploy

import (
	"path"
	"regexp"
	"strings"
)

// hubVariables name where the hub's client keeps its files, the most particular first.
var hubVariables = []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"}

// HubCache is the directory into which engines download models in a container whose environment
// has these entries, KEY=value.
func HubCache(env []string) string {
	given := map[string]string{}
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		given[k] = v
	}
	for _, name := range hubVariables {
		if given[name] != "" {
			return path.Clean(given[name])
		}
	}
	return "/root/.cache/huggingface"
}

// gated are models whose files are given to those alone who have accepted a licence. The
// list is of 2026-11; what it does not name may be gated all the same.
var gated = regexp.MustCompile(`^(?:meta-llama/|google/(?:gemma|medgemma|paligemma|shieldgemma|codegemma)|CohereLabs/|CohereForAI/|black-forest-labs/FLUX\.1-dev|mistralai/(?:Mistral-Large|Codestral|Mixtral-8x22B|Ministral-8B))`)

// Gated reports whether a model of the hub is known to be downloaded with a token alone.
func Gated(model string) bool { return gated.MatchString(model) }

// FromHub reports whether a model is downloaded from the hub, and not in a directory.
func FromHub(model string) bool { return !IsPath(model) && strings.Count(model, "/") == 1 }

// Holds reports whether a directory that is mounted at a path has the directory of the hub's
// client, or what that downloads.
func Holds(mounted, cache string) bool {
	mounted = path.Clean(mounted)
	return mounted == "/" || mounted == cache || strings.HasPrefix(cache, mounted+"/") || strings.HasPrefix(mounted, cache+"/")
}
