package lab

import (
	"strings"
	"testing"

	"perflab/internal/deploy"
	"perflab/internal/engine"
)

// A key is given to an engine where ps does not show it, if the engine can find it there.
func TestKeyInEnv(t *testing.T) {
	for _, c := range []struct{ engine, extra, wantExtra, wantEnv string }{
		{"vllm", "--enforce-eager --api-key k --seed 1", "--enforce-eager --seed 1", "A=1 VLLM_API_KEY=k"},
		{"vllm", "--api-key=k", "", "A=1 VLLM_API_KEY=k"},
		{"vllm", "--api-key k l", "--api-key k l", "A=1"},
		{"vllm", "--api-key", "--api-key", "A=1"},
		{"llamacpp", "--api-key k", "", "A=1 LLAMA_API_KEY=k"},
		{"sglang", "--api-key k", "--api-key k", "A=1"},
		{"vllm", "--seed 1", "--seed 1", "A=1"},
	} {
		got := keyInEnv(engine.Command{Engine: c.engine, Extra: strings.Fields(c.extra), Env: []string{"A=1"}})
		if extra, env := strings.Join(got.Extra, " "), strings.Join(got.Env, " "); extra != c.wantExtra || env != c.wantEnv {
			t.Errorf("%s %s: %s with %s", c.engine, c.extra, extra, env)
		}
	}
}

// One that cannot be hidden is said.
func TestListedSecrets(t *testing.T) {
	of := func(argv string) string {
		r := deploy.Replica{}
		r.Argv = strings.Fields(argv)
		return strings.Join(listedSecrets(deploy.Spec{Replicas: []deploy.Replica{r}}), " ")
	}
	if got := of("sglang --api-key k --port 1"); !strings.Contains(got, "(--api-key)") || strings.Contains(got, " k ") {
		t.Errorf("said %q", got)
	}
	if got := of("sglang --hf-token=k"); !strings.Contains(got, "(--hf-token)") {
		t.Errorf("said %q", got)
	}
	if got := of("vllm serve m --max-num-batched-tokens 8192 --ssl-keyfile key.pem"); got != "" {
		t.Errorf("said %q", got)
	}
}
