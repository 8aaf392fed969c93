package lab

import (
	"slices"
	"strings"

	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/redact"
)

// keyVariables are the variables in which engines find the key that their clients must
// bring when no flag gives it. Others have the flag alone.
var keyVariables = map[string]string{"vllm": "VLLM_API_KEY", "llamacpp": "LLAMA_API_KEY"}

// keyInEnv is a command whose API key is in its environment and not among its arguments,
// which ps shows to every user of the machine.
func keyInEnv(c engine.Command) engine.Command {
	const flag = "--api-key"
	name, ok := keyVariables[c.Engine]
	i := slices.IndexFunc(c.Extra, func(a string) bool { return a == flag || strings.HasPrefix(a, flag+"=") })
	if !ok || i < 0 {
		return c
	}
	words := 1
	_, key, joined := strings.Cut(c.Extra[i], "=")
	if !joined {
		if words = 2; i+1 >= len(c.Extra) {
			return c
		}
		key = c.Extra[i+1]
	}
	if next := i + words; next < len(c.Extra) && !strings.HasPrefix(c.Extra[next], "-") {
		return c // several keys, which a variable cannot hold
	}
	c.Extra = slices.Delete(slices.Clone(c.Extra), i, i+words)
	c.Env = append(slices.Clone(c.Env), name+"="+key)
	return c
}

// listedSecrets says which arguments of a deployment are secrets: whoever reads its trial
// should know that others could read them.
func listedSecrets(s deploy.Spec) (notes []string) {
	var lines [][]string
	for _, r := range s.Replicas {
		lines = append(lines, r.Argv)
		for _, p := range r.Peers {
			lines = append(lines, p.Argv)
		}
	}
	for _, argv := range lines {
		for i, shown := range redact.Argv(argv) {
			if shown == argv[i] {
				continue
			}
			name, _, _ := strings.Cut(shown, "=")
			if !strings.HasPrefix(name, "-") && i > 0 {
				name = argv[i-1]
			}
			return []string{"The engine's command line holds a secret (" + name + "), which every user of its machine can read with ps while it runs: give it in the environment or in a file, if the engine can take it there."}
		}
	}
	return nil
}
