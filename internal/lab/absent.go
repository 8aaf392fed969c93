package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/redact"
	"perflab/internal/study"
)

// absent looks for the programs, images and models that the study's launches need, each once
// on each machine.
func (l *launcher) absent(ctx context.Context) (wrong []error) {
	add := func(err error) {
		if err != nil && !slices.ContainsFunc(wrong, func(e error) bool { return e.Error() == err.Error() }) {
			wrong = append(wrong, err)
		}
	}
	type programs struct{ engine, node string }
	found := map[programs]bool{}
	for _, s := range l.Served() {
		rt, err := l.runtime(s.Engine)
		if err != nil {
			add(err)
			continue
		}
		c, ok := rt.(deploy.Commander)
		for _, node := range l.nodes() {
			if !ok || ctx.Err() != nil {
				return wrong
			}
			p := place{l, c, node.Name, s.Engine}
			there, asked := found[programs{s.Engine, node.Name}]
			if !asked {
				err := p.program(ctx)
				add(err)
				there = err == nil
				found[programs{s.Engine, node.Name}] = there
			}
			if there && deploy.IsPath(s.Model) {
				add(p.model(ctx, s.Model))
			}
		}
	}
	return wrong
}

// place is where an engine will run.
type place struct {
	*launcher
	c      deploy.Commander
	node   string
	engine string
}

// String is the place in a sentence.
func (p place) String() string {
	switch {
	case p.Runtime.Kind != study.Docker:
		return ofPlace(p.node)
	case p.Container(p.engine).Container != "":
		return " in container " + p.Container(p.engine).Container
	}
	return " in image " + p.Container(p.engine).Image
}

func ofPlace(node string) string {
	if node == "" {
		return ""
	}
	return " on " + node
}

// ask runs a command where the engine will run, in its environment. Errors of our own
// machinery say what to do.
func (p place) ask(ctx context.Context, argv ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, helpTimeout, fmt.Errorf("no answer after %v", helpTimeout))
	defer cancel()
	err := p.c.Command(ctx, p.node, inEnv(p.Engines[p.engine].Env, argv), new(bytes.Buffer))
	if infra, ok := errors.AsType[*deploy.InfraError](err); ok && infra.Hint() != "" {
		return fmt.Errorf("%w (%s)", err, infra.Hint())
	}
	return err
}

// program says that the engine is not installed there.
func (p place) program(ctx context.Context) error {
	e, err := engine.ByName(p.engine)
	if err != nil {
		return err
	}
	name := e.HelpArgv()[0]
	err = p.ask(ctx, "/bin/sh", "-c", `command -v "$1" >/dev/null`, "sh", name)
	if _, ok := errors.AsType[*deploy.ExitError](err); ok {
		return fmt.Errorf("%s is not installed%s: %s is not on PATH; install it, or give the engine its PATH in the study (engines.%s.env)", e.Title, p, name, e.Name)
	}
	version := e.VersionArgv()
	if err != nil || version[0] != name || version[1] != "-c" {
		return err
	}
	// A program that is there anyway, and tells whether it has the engine's package.
	err = p.ask(ctx, version...)
	exit, ok := errors.AsType[*deploy.ExitError](err)
	switch {
	case ok && strings.Contains(exit.Stderr, "PackageNotFoundError"):
		return fmt.Errorf("%s is not installed%s: the %s on PATH has no such package; install it, or give the engine its PATH in the study (engines.%s.env)", e.Title, p, name, e.Name)
	case ok:
		return nil // the trial that asks for its flags says so
	}
	return err
}

// model says that a model's path does not exist there.
func (p place) model(ctx context.Context, path string) error {
	err := p.ask(ctx, "/bin/sh", "-c", `case $1 in "~/"*) set -- "$HOME/${1#??}" ;; esac
[ -e "$1" ]`, "sh", path)
	if _, ok := errors.AsType[*deploy.ExitError](err); ok {
		return fmt.Errorf("the model %s does not exist%s: correct the path, or put the model there", redact.Text(path), p)
	}
	return err
}

// unlisted asks the engines that the study gives flags which perflab does not know, whether
// they have them. One that does not tell judges them when it is launched.
func (l *launcher) unlisted(ctx context.Context) (wrong []error, err error) {
	unknown := l.UnknownFlags()
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		e, err := engine.ByName(name)
		served := slices.ContainsFunc(l.Served(), func(s study.Server) bool { return s.Engine == name })
		if err != nil || !served {
			continue
		}
		in, err := l.question(ctx, e)
		if err != nil {
			return nil, err
		}
		if in.helpError != "" || in.help.Engine == "" {
			continue
		}
		for _, flag := range (engine.Command{Engine: name, Unread: unknown[name], Help: &in.help}).Unlisted() {
			wrong = append(wrong, fmt.Errorf("%s does not list %s, which the study gives it (engines.%s.flags)%s", strings.TrimSpace(e.Title+" "+in.version), flag, name, study.Suggest(flag, in.help.Flags)))
		}
	}
	return wrong, nil
}
