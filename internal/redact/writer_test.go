package redact

import (
	"fmt"
	"strings"
	"testing"
)

func TestWriter(t *testing.T) {
	var v Values
	v.Add("hunter2-hunter2", Mark)
	var b strings.Builder
	w := NewWriter(&b, v)
	fmt.Fprintf(w, "\x1b]52;c;aGk=\x07model \x1b[31m%s\rover\n", "hunter2-hunter2")
	fmt.Fprint(w, "--api-key KEY, OPENAI_API_KEY=KEY, http://u:pw@h\r\n")
	for _, part := range []string{"caf\xc3", "\xa9 \xe2", "\x80\xae", "\xf0\x9f", "\x98\x80", "!\n"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("wrote %d of %q: %v", n, part, err)
		}
	}
	if got, want := b.String(), "model [redacted] over\n--api-key KEY, OPENAI_API_KEY=KEY, http://u:[redacted]@h\ncafé \U0001f600!\n"; got != want {
		t.Errorf("shown as %q, want %q", got, want)
	}
}
