package redact

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"vllm serve m --api-key abc123 --port 8000", "vllm serve m --api-key [redacted] --port 8000"},
		{"vllm serve m --api-key=abc123 -tp 8", "vllm serve m --api-key=[redacted] -tp 8"},
		{"vllm serve m --api-key 'abc 123' -tp 8", "vllm serve m --api-key '[redacted]' -tp 8"},
		{"vllm serve m --api-key first second-is-a-long-one-77 -tp 8", "vllm serve m --api-key [redacted] -tp 8"},
		{"HF_TOKEN=hunter2 vllm serve m", "HF_TOKEN=[redacted] vllm serve m"},
		{"docker run -e HUGGING_FACE_HUB_TOKEN=hunter2 image", "docker run -e HUGGING_FACE_HUB_TOKEN=[redacted] image"},
		{"docker run -e HF_TOKEN=$HF_TOKEN -e HF_TOKEN=<yours>", "docker run -e HF_TOKEN=$HF_TOKEN -e HF_TOKEN=<yours>"},
		{`curl -H "Authorization: Bearer hunter2"`, `curl -H "Authorization: [redacted]"`},
		{`--header Authorization="Bearer hunter2" --x`, `--header Authorization="[redacted]" --x`},
		{`{"api_key": "hunter2", "n": 1}`, `{"api_key": "[redacted]", "n": 1}`},
		{"api-key: hunter2", "api-key: [redacted]"},
		{"postgres://me:hunter2@host/db", "postgres://me:[redacted]@host/db"},
		{"use hf_AbCdEfGhIjKlMnOpQr for it", "use [redacted] for it"},
		{"sglang --hf-token hunter2\nnext line", "sglang --hf-token [redacted]\nnext line"},

		{"--max-num-batched-tokens 8192 --long-prefill-token-threshold 512", "--max-num-batched-tokens 8192 --long-prefill-token-threshold 512"},
		{"Mean time per output token: 5.2 ms", "Mean time per output token: 5.2 ms"},
		{"Output token throughput (tok/s): 123.45", "Output token throughput (tok/s): 123.45"},
		{"--tokenizer Qwen/Qwen3 --skip-tokenizer-init", "--tokenizer Qwen/Qwen3 --skip-tokenizer-init"},
		{"The key: a shorter prompt.", "The key: a shorter prompt."},
		{"http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"},
		{"", ""},

		{`{'model': 'm', 'api_key': ['hunter2'], 'n': 1}`, `{'model': 'm', 'api_key': ['[redacted]'], 'n': 1}`},
		{`"body": "{\"api_key\": \"hunter2\"}"`, `"body": "{\"api_key\": \"[redacted]\"}"`},
		{"GET /v1?api_key=hunter2&n=1 HTTP/1.1", "GET /v1?api_key=[redacted]&n=1 HTTP/1.1"},
		{"https://host/blob?sv=1&X-Amz-Signature=0a1b2c", "https://host/blob?sv=1&X-Amz-Signature=[redacted]"},
		{"env_overrides:\n  OPENAI_KEY: hunter2\n  block_size: 64", "env_overrides:\n  OPENAI_KEY: [redacted]\n  block_size: 64"},
		{"https://0123456789abcdef0123@sentry.host/1", "https://[redacted]@sentry.host/1"},
		{"ssh://git@github.com/a/b, me@host.org", "ssh://git@github.com/a/b, me@host.org"},
		{"a glpat-0123456789abcdefghij b", "a [redacted] b"},
		{"one\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/=\nabc\n-----END RSA PRIVATE KEY-----\ntwo\n", "one\n[redacted]\n[redacted]\n[redacted]\n[redacted]\ntwo\n"},
		{"-----BEGIN PRIVATE KEY-----\nMIIEow\n2026-01-01 10:00:00 [info] it goes on\n", "[redacted]\n[redacted]\n2026-01-01 10:00:00 [info] it goes on\n"},
		{`pem: "-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----" end`, `pem: "[redacted]" end`},
		{"-----BEGIN CERTIFICATE-----\nMII\n", "-----BEGIN CERTIFICATE-----\nMII\n"},
		{`{"tokens": 12, "prompt_tokens": "many", "monkey": "see"}`, `{"tokens": 12, "prompt_tokens": "many", "monkey": "see"}`},
		{"key=value pairs, --tokenizer=Qwen/Qwen3", "key=[redacted] pairs, --tokenizer=Qwen/Qwen3"},
		{"basic information about 16 tokens", "basic information about 16 tokens"},
	} {
		if got := Text(c.text); got != c.want {
			t.Errorf("%q is shown as %q, want %q", c.text, got, c.want)
		}
	}
}

func TestField(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"api_key", "two words", "[redacted]"}, {"api_key", "", ""}, {"api_key", "None", "None"},
		{"first_token", "0.5", "0.5"}, {"note", "HF_TOKEN=abc run", "HF_TOKEN=[redacted] run"},
	} {
		if got := Field(c.name, c.value); got != c.want {
			t.Errorf("%s: %q is shown as %q, want %q", c.name, c.value, got, c.want)
		}
	}
}

// FuzzText: whatever stands around it, a secret behind its flag is not
// shown, and lines stay lines.
func FuzzText(f *testing.F) {
	f.Add("vllm serve m", "--port 8000")
	f.Add("-", "'")
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "hunter2hunter2hunter2"
		text := before + " \n--api-key " + secret + " " + after
		got := Text(text)
		if !strings.Contains(before, secret) && !strings.Contains(after, secret) && strings.Contains(got, secret) {
			t.Errorf("%q shows the secret: %q", text, got)
		}
		if strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q has other lines: %q", text, got)
		}
	})
}
