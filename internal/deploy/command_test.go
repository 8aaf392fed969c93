package deploy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/engine"
	"perflab/internal/redact"
)

func TestRedactCommand(t *testing.T) {
	file := func(token, url string) map[string]any {
		return map[string]any{"env_overrides": map[string]any{"HF_TOKEN": token, "TLLM_MODE": "fast", "N": 3}, "kv_connector_config": map[string]any{"urls": []any{url}}}
	}
	c := engine.Command{Engine: "trtllm", Model: "M", Env: []string{"HF_TOKEN=abcdefgh1234"}, Extra: []string{"--api-key", "abcdefgh1234"}, Unread: []string{"--new-token=abcdefgh1234", "--new-one", "3"}, File: file("abcdefgh1234", "http://u:pass@h")}
	want := engine.Command{Engine: "trtllm", Model: "M", Env: []string{"HF_TOKEN=" + redact.Mark}, Extra: []string{"--api-key", redact.Mark}, Unread: []string{"--new-token=" + redact.Mark, "--new-one", "3"}, File: file(redact.Mark, "http://u:"+redact.Mark+"@h")}
	if d := cmp.Diff(want, RedactCommand(c)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(file("abcdefgh1234", "http://u:pass@h"), c.File); d != "" {
		t.Errorf("the command itself was changed: %s", d)
	}
}
