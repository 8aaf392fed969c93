package lab

import (
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
		for _, node := range l.askable() {
			if !ok || ctx.Err() != nil {
				return wrong
			}
			p := place{l, asker{c, node, l.Engines[s.Engine].Env, helpTimeout}, s.Engine}
			there, asked := found[programs{s.Engine, node}]
			if !asked {
				err := p.program(ctx)
				add(err)
				there = err == nil
				found[programs{s.Engine, node}] = there
			}
			if there {
				add(p.model(ctx, s.Model))
			}
		}
	}
	return wrong
}

// askable are the machines on which commands are run: of a cluster any, for all pods are of the
// same image.
func (l *launcher) askable() []string {
	if l.Runtime.Kind == study.Kubernetes {
		return []string{""}
	}
	var out []string
	for _, n := range l.nodes() {
		out = append(out, n.Name)
	}
	return out
}

// place is where an engine will run.
type place struct {
	*launcher
	at     asker // in the environment of the engine
	engine string
}

// String is the place in a sentence.
func (p place) String() string {
	switch {
	case p.Runtime.Kind == study.Kubernetes:
		return " in image " + p.Cluster(p.engine).Image
	case p.Runtime.Kind != study.Docker:
		return ofPlace(p.at.node)
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

// program says that the engine is not installed there.
func (p place) program(ctx context.Context) error {
	e, err := engine.ByName(p.engine)
	if err != nil {
		return err
	}
	name := e.HelpArgv()[0]
	_, err = p.at.ask(ctx, "/bin/sh", "-c", `command -v "$1" >/dev/null`, "sh", name)
	if _, ok := errors.AsType[*deploy.ExitError](err); ok {
		return fmt.Errorf("%s is not installed%s: %s is not on PATH; install it, or give the engine its PATH in the study (engines.%s.env)", e.Title, p, name, e.Name)
	}
	version := e.VersionArgv()
	if err != nil || version[0] != name || version[1] != "-c" {
		return err
	}
	// A program that is there anyway, and tells whether it has the engine's package.
	_, err = p.at.ask(ctx, version...)
	exit, ok := errors.AsType[*deploy.ExitError](err)
	switch {
	case ok && strings.Contains(exit.Stderr, "PackageNotFoundError"):
		return fmt.Errorf("%s is not installed%s: the %s on PATH has no such package; install it, or give the engine its PATH in the study (engines.%s.env)", e.Title, p, name, e.Name)
	case ok:
		return nil // the trial that asks for its flags says so
	}
	return err
}

// model says that a model's path does not exist there, or that a model of the hub is not in the
// cache of an engine that may not download it.
func (p place) model(ctx context.Context, model string) error {
	if !deploy.IsPath(model) {
		return p.cached(ctx, model)
	}
	_, err := p.at.ask(ctx, "/bin/sh", "-c", `case $1 in "~/"*) set -- "$HOME/${1#??}" ;; esac
[ -e "$1" ]`, "sh", model)
	if _, ok := errors.AsType[*deploy.ExitError](err); ok {
		return fmt.Errorf("the model %s does not exist%s: correct the path, or put the model there", redact.Text(model), p)
	}
	return err
}

// lookCached finds a model in the cache where the environment forbids downloads, by the
// variables that the hub's library goes by; else it looks for nothing. It prints where it looked.
const lookCached = `case ${HF_HUB_OFFLINE:-${TRANSFORMERS_OFFLINE:-}} in 1|[Oo][Nn]|[Yy][Ee][Ss]|[Tt][Rr][Uu][Ee]) ;; *) exit 0 ;; esac
[ -e "$2" ] && exit 0
hub=${HF_HUB_CACHE:-${HUGGINGFACE_HUB_CACHE:-${HF_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/huggingface}/hub}}
echo "$hub"
set -- "$hub/$1/snapshots"/*/*
[ -e "$1" ]`

// cached says that a model is not where the engine looks for it without a network. Of an engine
// with a cache of its own, or that was told of another place, nothing is said.
func (p place) cached(ctx context.Context, model string) error {
	use := p.Engines[p.engine]
	if p.engine == "llamacpp" || strings.Count(model, "/") != 1 || slices.ContainsFunc(use.Flags, func(f string) bool { return strings.HasPrefix(f, "--download") }) {
		return nil
	}
	text, err := p.at.ask(ctx, "/bin/sh", "-c", lookCached, "sh", "models--"+strings.ReplaceAll(model, "/", "--"), model)
	if _, ok := errors.AsType[*deploy.ExitError](err); ok {
		return fmt.Errorf("the model %s is not in the cache%s (%s), and HF_HUB_OFFLINE forbids to download it: download it beforehand, or unset the variable", redact.Text(model), p, redact.Text(redact.Plain(strings.TrimSpace(text))))
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
