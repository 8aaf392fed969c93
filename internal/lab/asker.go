package lab

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/redact"
)

// How long a command may take. Python engines import most of themselves to print their version
// and their help: half a minute on a quiet machine and several on a busy one.
const (
	askTimeout  = 30 * time.Second // a question to a machine
	helpTimeout = 10 * time.Minute // to an engine
)

// asker runs short commands in one place: on a machine, or where an engine will run there.
type asker struct {
	deploy.Commander
	node  string
	env   []string      // of the engine, nil: none
	limit time.Duration // that a command may take
}

// ask runs a command and gives what it printed, also beside an error.
func (a asker) ask(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.limit, fmt.Errorf("no answer after %v", a.limit))
	defer cancel()
	var out bytes.Buffer
	err := a.Command(ctx, a.node, inEnv(a.env, argv), &out)
	return out.String(), err
}

// inEnv is a command in the environment that a study gives an engine (its PATH, say),
// as far as that may stand in arguments: no secret, and nothing that only a launch knows.
func inEnv(env, argv []string) []string {
	shown := redact.Env(env)
	out := []string{"env"}
	for i, kv := range env {
		if shown[i] == kv && redact.Text(kv) == kv && !strings.Contains(kv, "{") {
			out = append(out, kv)
		}
	}
	if len(out) == 1 {
		return argv
	}
	return append(out, argv...)
}
