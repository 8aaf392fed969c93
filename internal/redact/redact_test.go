package redact

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestIsSecret(t *testing.T) {
	for name, want := range map[string]bool{
		"HF_TOKEN": true, "OPENAI_API_KEY": true, "--api-key": true, "AWS_ACCESS_KEY_ID": true, "MYTOKEN": true,
		"DB_PASSWORD": true, "CLIENT_SECRET": true, "--ssl-keyfile-password": true, "apikey": true,
		"TOKENIZERS_PARALLELISM": false, "--max-num-batched-tokens": false, "--tokenizer": false, "PATH": false,
		"CUDA_VISIBLE_DEVICES": false, "--kv-cache-dtype": false, "": false,
		"PGPASS": true, "DB_PASS": true, "OTEL_EXPORTER_OTLP_HEADERS": true, "OTEL_EXPORTER_OTLP_TRACES_HEADERS": true, "MYSQL_PWD": true, "KEYFILE_B64": true, "HTTP_BASIC_AUTH": true, "x-auth": true, "API_KEY_PROD": true,
		"PWD": false, "OLDPWD": false, "SSH_AUTH_SOCK": false, "GIT_ASKPASS": false, "API_KEY_FILE": false, "--ssl-keyfile": false, "--ssl-key-file": false,
		"--long-prefill-token-threshold": false, "--speculative-token-map": false, "--bucket-time-to-first-token": false, "--kt-max-deferred-experts-per-token": false,
		"--allow-credentials": false, "time_per_output_token": false, "--enable-forward-pass-metrics": false,
	} {
		if got := IsSecret(name); got != want {
			t.Errorf("IsSecret(%q) = %v, want %v", name, got, want)
		}
	}
}

func FuzzArgv(f *testing.F) {
	f.Add("--api-key", "value")
	f.Add("HF_TOKEN=x", "y")
	f.Add("--token", "--x")
	f.Fuzz(func(t *testing.T, a, b string) {
		const secret = "the-secret-value"
		for _, argv := range [][]string{
			{"engine", a, b, "--api-key", secret},
			{"engine", a, b, "--api-key=" + secret, a},
		} {
			if got := fmt.Sprint(Argv(argv)[3:]); strings.Contains(got, secret) {
				t.Errorf("%q shows the secret: %s", argv, got)
			}
		}
	})
}

func TestArgv(t *testing.T) {
	argv := []string{"vllm", "serve", "m", "--api-key", "sk-1", "--max-num-batched-tokens", "8192"}
	env := []string{"HF_TOKEN=hf-1", "CUDA_VISIBLE_DEVICES=0"}
	shownArgv, shownEnv := Argv(argv), Env(env)
	if got := strings.Join(slices.Concat(shownEnv, shownArgv), " "); got != "HF_TOKEN=[redacted] CUDA_VISIBLE_DEVICES=0 vllm serve m --api-key [redacted] --max-num-batched-tokens 8192" {
		t.Errorf("shown as %s", got)
	}
	if argv[4] != "sk-1" || env[0] != "HF_TOKEN=hf-1" {
		t.Error("the command itself was changed")
	}
}

// A secret within a value that has an innocent name is replaced, and the rest of
// the value stays.
func TestEnvWithin(t *testing.T) {
	got := strings.Join(Env([]string{"HTTPS_PROXY=http://user:hunter2@proxy:3128", "NO_PROXY=localhost", "DATABASE_URL=postgres://me:p@ss@host/db", "EMPTY="}), " ")
	if got != "HTTPS_PROXY=http://user:[redacted]@proxy:3128 NO_PROXY=localhost DATABASE_URL=postgres://me:[redacted]@host/db EMPTY=" {
		t.Errorf("shown as %s", got)
	}
}

func TestTree(t *testing.T) {
	file := map[string]any{"n": 1, "auth": map[string]any{"api_key": "abc"}, "urls": []any{"http://u:pw@h", true}}
	shown := Tree("", file).(map[string]any)
	if got := fmt.Sprint(shown); got != "map[auth:map[api_key:[redacted]] n:1 urls:[http://u:[redacted]@h true]]" {
		t.Errorf("shown as %s", got)
	}
	if file["auth"].(map[string]any)["api_key"] != "abc" {
		t.Error("the file itself was changed")
	}
}
