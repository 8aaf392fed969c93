package study

import (
	"errors"
	"slices"
	"testing"

	"perflab/internal/field"
)

func TestLocated(t *testing.T) {
	data := []byte("name: x\nengines:\n  vllm:\n    env: [A=1, B=2]\n")
	refused := errors.Join(field.Errorf("engines.vllm.env[1]", "is not allowed"), field.Errorf("runtime.kind", "is closed"), errors.New("all of it is wrong"))
	for _, test := range []struct {
		err  error
		want []Problem
	}{
		{nil, nil},
		{refused, []Problem{{1, 1, "is closed"}, {1, 1, "all of it is wrong"}, {4, 16, "is not allowed"}}},
		{&Error{"f", []string{"3:7: a: b", "nowhere"}}, []Problem{{3, 7, "a: b"}, {1, 1, "nowhere"}}},
	} {
		if got := Located(data, test.err); !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
	if got := Located([]byte("a: [\x00"), refused); len(got) != 3 || got[0].Line != 1 {
		t.Errorf("of a text that is no YAML: %v", got)
	}
	_, err := Parse("f", []byte("name: x\nbudgets: 3\n"))
	if got := Located(nil, err); len(got) == 0 || got[0].Line < 1 || got[0].Text == "" {
		t.Errorf("%v: %v", err, got)
	}
}
