package console

import (
	"strings"
	"testing"

	"perflab/internal/redact"
)

func TestInvocation(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"bench", "--slo", "p99_ttft_ms <= 500"}, "perflab bench --slo 'p99_ttft_ms <= 500' --seed 7"},
		{[]string{"bench", "--header", "X-Team=green"}, "perflab bench --header 'X-Team=" + redact.Mark + "' --seed 7"},
		{[]string{"bench", "--header=X-Team=green"}, "perflab bench '--header=X-Team=" + redact.Mark + "' --seed 7"},
		{[]string{"bench", "--api-key", "green"}, "perflab bench --api-key '" + redact.Mark + "' --seed 7"},
		{[]string{"compare", "a b", "it's", ""}, `perflab compare 'a b' 'it'\''s' '' --seed 7`},
	} {
		if got := (Env{Args: c.args}).Invocation("--seed", "7"); got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}
	e := Env{Args: []string{"compare", "runs/verysecretvalue"}}
	e.Secrets.Add("verysecretvalue", redact.Mark)
	if got := e.Invocation(); strings.Contains(got, "verysecret") {
		t.Errorf("a known secret is in %s", got)
	}
}
