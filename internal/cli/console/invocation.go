package console

import (
	"strings"

	"perflab/internal/engine"
	"perflab/internal/redact"
)

// Invocation is the command line as a shell takes it, with more words at its end and without
// the secrets in it: all that the header of a request has may be one.
func (e Env) Invocation(more ...string) string {
	words := append(redact.Argv(append([]string{"perflab"}, e.Args...)), more...)
	concealed := func(pair string) string {
		name, _, _ := strings.Cut(pair, "=")
		return name + "=" + redact.Mark
	}
	for i, w := range words {
		if pair, ok := strings.CutPrefix(w, "--header="); ok {
			w = "--header=" + concealed(pair)
		} else if i > 0 && words[i-1] == "--header" {
			w = concealed(w)
		}
		words[i] = w
	}
	return e.Secrets.Clean(engine.Join(words))
}
