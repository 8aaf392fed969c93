package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
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
	v.Add("abc-abc-abc", "[key]")
	v.AddHeader("Bearer abc-abc-abc", "[header]")
	if got := v.Mask("abc-abc-abc, Bearer abc-abc-abc"); got != "[key], [header]" {
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

// A stand-in for a key is no secret: masking it would make holes into words.
func TestValuesShort(t *testing.T) {
	var v Values
	for _, value := range []string{"x", "EMPTY", "none", "test", "1234567"} {
		v.Add(value, Mark)
	}
	const text = "x: the next text is EMPTY, expect none of 1234567 tests"
	if got := v.Mask(text); got != text {
		t.Errorf("shown as %q", got)
	}
}

// A value is found in each way in which text may have it.
func TestValuesForms(t *testing.T) {
	const secret = `p&ss <w>"rd/+=`
	var v Values
	v.Add(secret, "*")
	quoted, _ := json.Marshal(secret)
	for _, text := range []string{
		secret, string(quoted[1 : len(quoted)-1]), fmt.Sprintf("%q", secret), html.EscapeString(secret), url.QueryEscape(secret), url.PathEscape(secret),
		"a" + secret + "b", "?q=" + url.QueryEscape(secret) + "&b=1",
	} {
		if got := v.Mask(text); !strings.Contains(got, "*") || strings.Contains(got, "ss") {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	for _, before := range []string{"", "u", "me", "user:", "a-user:"} {
		for _, after := range []string{"", ":", "--"} {
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
				text := enc.EncodeToString([]byte(before + secret + after))
				if got := v.Mask(text); !strings.Contains(got, "*") {
					t.Errorf("%q (of %q) is shown as %q", text, before+secret+after, got)
				}
			}
		}
	}
}

// What is learnt from one text is found in another, under whatever name.
func TestLearn(t *testing.T) {
	const secret = "canary-4711"
	for _, text := range []string{
		"HF_TOKEN=" + secret, "PGPASS=" + secret, "DATABASE_URL=postgres://me:" + secret + "@host/db", "HTTPS_PROXY=http://user:" + secret + "@proxy:3128",
		`--extra-body={"api_key": "` + secret + `"}`, `{'api_key': ['` + secret + `']}`, "KEYFILE_B64=" + secret, "curl -H 'Authorization: Bearer " + secret + "' http://h",
		"http://host/v1?key=" + secret + "&n=1", `{\"hf_token\": \"` + secret + `\"}`, "--hf-token " + secret, "X-Auth-Token: " + secret + "\n",
		"https://" + secret + secret + "@host/", "Cookie: " + secret,
	} {
		var v Values
		v.Learn(text)
		if got := v.Mask("it says " + secret + "!"); strings.Contains(got, secret) && !strings.Contains(text, secret+secret) {
			t.Errorf("%q taught nothing: %q", text, got)
		}
		if got := Text(text); strings.Contains(got, secret) {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

// What stands under the name of a secret and is a path or a figure is looked
// for nowhere else.
func TestLearnPlain(t *testing.T) {
	v := ValuesOf(nil, []string{"SSH_KEY=/home/me/.ssh/id_ed25519", "SESSION_TOKEN=100000000", "API_KEY=$OTHER_KEY", "GIT_ASKPASS=/usr/lib/git-askpass", "PWD=/home/me/work/perflab"})
	const text = "/home/me/.ssh/id_ed25519 100000000 $OTHER_KEY /usr/lib/git-askpass /home/me/work/perflab"
	if got := v.Mask(text); got != text {
		t.Errorf("shown as %q", got)
	}
	v = ValuesOf(nil, []string{"AWS_SECRET=/wJalrXUtnFEMI7K7MDENG/bPxRfiCYEXAMPLEKEY"})
	if got := v.Mask("/wJalrXUtnFEMI7K7MDENG/bPxRfiCYEXAMPLEKEY"); got != Mark {
		t.Errorf("a key that begins with a slash is shown as %q", got)
	}
}
