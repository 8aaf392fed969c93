package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestJSON(t *testing.T) {
	var v Values
	v.Add("known-secret", Mark)
	for text, want := range map[string]string{
		`{"n": 1.50, "model": "a/b", "list": ["x", 2]}`:          `{"n": 1.50, "model": "a/b", "list": ["x", 2]}`,
		`{"api_key": "v", "model": "a/b"}`:                       `{"api_key": "[redacted]", "model": "a/b"}`,
		`{"keys": {"api_key": ["v", "w"]}, "b": "c"}`:            `{"keys": {"api_key": ["[redacted]", "[redacted]"]}, "b": "c"}`,
		`{"a": ["see known-secret", "http://u:p@h"]}`:            `{"a": ["see [redacted]", "http://u:[redacted]@h"]}`,
		`{"a known-secret": 1, "b": "\u006bnown-secret"}`:        `{"a [redacted]": 1, "b": "[redacted]"}`,
		`{"a": [{"key": "v"}, "w"], "token_count": "12 of <3>"}`: `{"a": [{"key": "[redacted]"}, "w"], "token_count": "12 of <3>"}`,
	} {
		got := string(v.JSON([]byte(text)))
		if got != want {
			t.Errorf("%s is kept as %s, want %s", text, got, want)
		}
	}
}

// FuzzJSON: what was JSON stays JSON, and a known value is not in it.
func FuzzJSON(f *testing.F) {
	f.Add(`{"api_key": "v", "list": [1, "known-secret"]}`)
	f.Add(`{"a": "\"", "b": "\\"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var v Values
		v.Add("known-secret", Mark)
		got := v.JSON([]byte(text))
		if json.Valid([]byte(text)) && !json.Valid(got) {
			t.Errorf("%q is kept as %q", text, got)
		}
		if json.Valid([]byte(text)) && strings.Contains(string(got), "known-secret") {
			t.Errorf("%q shows the secret: %q", text, got)
		}
	})
}
