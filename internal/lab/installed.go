package lab

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/redact"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// helpTimeout bounds how long an engine may take to print its help: Python ones import
// most of themselves for it.
const helpTimeout = 3 * time.Minute

// installed is what an engine says of itself where it would run.
type installed struct {
	help    engine.Help
	version string // by its own account, "" where it does not tell
	why     string // why its flags are not known, "" if they are
	later   bool   // its machine could not be reached: the next trial asks again
}

// ask reads version and flags of an engine that the study starts, once in a study: an
// unknown flag then is a refusal before anything is launched, and defaults are those of
// the version that runs. notes are what the trial that asked first must say.
func (l *session) ask(ctx context.Context, e *engine.Engine) (notes []string, err error) {
	if in, ok := l.engines[e.Name]; ok && !in.later {
		return nil, nil
	}
	var in installed
	if l.Runtime.StartsEngines() {
		rt, err := l.runtime(e.Name)
		if err != nil {
			return nil, err
		}
		if c, ok := rt.(deploy.Commander); ok {
			l.watch(func(s *Status) { s.Phase = "asking " + e.Title + " for its flags" })
			in = askEngine(ctx, c, e, l.Engines[e.Name].Env)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if l.engines == nil {
		l.engines = map[string]installed{}
	}
	l.engines[e.Name] = in
	return l.account(e, in), nil
}

// askEngine asks on the first node: that they are alike is checked before replicas
// span them.
func askEngine(ctx context.Context, c deploy.Commander, e *engine.Engine, env []string) (in installed) {
	ctx, cancel := context.WithTimeoutCause(ctx, helpTimeout, fmt.Errorf("no answer after %v", helpTimeout))
	defer cancel()
	node := c.Nodes()[0]
	var out bytes.Buffer
	if err := c.Command(ctx, node, within(env, e.VersionArgv()), &out); err == nil {
		in.version, _ = e.ParseVersion(out.String())
	}
	out.Reset()
	err := c.Command(ctx, node, within(env, e.HelpArgv()), &out)
	if err == nil {
		in.help, err = engine.ParseHelp(e, out.String())
	}
	in.help.Version = in.version
	if err != nil {
		infra, broke := errors.AsType[*deploy.InfraError](err)
		if broke && lasting(infra) {
			return in // the launch says the same
		}
		in.why, in.later = err.Error(), broke
		if hint, ok := errors.AsType[interface {
			error
			Hint() string
		}](err); ok && hint.Hint() != "" {
			in.why += " (" + hint.Hint() + ")"
		}
	}
	return in
}

// within is a command in the environment that a study gives an engine (its PATH, say),
// as far as that may stand in arguments: no secret, and nothing that only a launch knows.
func within(env, argv []string) []string {
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

// version is the engine's own account, or what the study says.
func (l *session) version(engineName string) string {
	return cmp.Or(l.engines[engineName].version, l.Engines[engineName].Version)
}

// configure makes a configuration concrete by what the engine said of itself, as
// far as it was asked.
func (l *session) configure(c tune.Config) (study.Configuration, error) {
	in := l.engines[c["engine"]]
	known := study.Installed{Version: in.version}
	if in.why == "" {
		known.Help = in.help
	}
	return l.Configure(c, known)
}

// account is what asking the engine showed that readers of the study should know.
func (l *session) account(e *engine.Engine, in installed) []string {
	var out []string
	if said := l.Engines[e.Name].Version; said != "" && in.version != "" && said != in.version {
		out = append(out, fmt.Sprintf("The study says that %s is of version %s; it is %s by its own account, and its defaults are taken from that.", e.Title, said, in.version))
	}
	if in.why != "" {
		out = append(out, fmt.Sprintf("The flags of %s could not be checked against its own help: %s.", e.Title, in.why))
	}
	return out
}
