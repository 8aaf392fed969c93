package redact

import (
	"strings"
	"testing"
)

func TestValuesOf(t *testing.T) {
	v := ValuesOf(
		[]string{"vllm", "--api-key", "first-secret", "--hf-token=second-secret", "--seed", "12345678"},
		[]string{"HF_TOKEN=third-secret", "API_KEY=1", "HOME=/home/user", "X_TOKEN=first-secret", `PASSWORD="quoted"`})
	for text, want := range map[string]string{
		"first-secret second-secret third-secret": "[redacted] [redacted] [redacted]",
		"seed 12345678 in /home/user, port 1":     "seed 12345678 in /home/user, port 1",
		`{"password": "\"quoted\""}`:              `{"password": "[redacted]"}`,
		"cut at third-sec":                        "cut at [redacted]",
		"third-sec is not at the end":             "third-sec is not at the end",
		"cut too short: third":                    "cut too short: third",
	} {
		if got := v.Mask(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// One secret may hold another; each has its own mark.
func TestValuesMarks(t *testing.T) {
	var v Values
	v.Add("", "[nothing]")
	v.Add("abc", "[key]")
	v.AddLong("abc", "[short]")
	v.AddLong("Bearer abc-abc", "[header]")
	if got := v.Mask("abc, Bearer abc-abc"); got != "[key], [header]" {
		t.Errorf("shown as %q", got)
	}
	if got := (Values{}).Mask("abc"); got != "abc" {
		t.Errorf("shown as %q", got)
	}
}

// FuzzMask: a known value is not shown, whatever stands around it.
func FuzzMask(f *testing.F) {
	f.Add("a", "b")
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "hunter2-hunter3"
		var v Values
		v.Add(secret, "*")
		if got := v.Mask(before + secret + after); strings.Contains(got, secret) {
			t.Errorf("%q shows the secret", got)
		}
	})
}
