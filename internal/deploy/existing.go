package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Existing is the runtime of endpoints that others start: it checks that they answer
// and leaves them alone, but for the hooks. Of Spec.Replicas it uses the first alone, in
// the hooks' environment; without hooks it uses Spec.Dir neither.
type Existing struct {
	URLs  []string      // base URLs, one a replica
	Poll  time.Duration // first pause between probes; 0: 50 ms
	Hooks Hooks
	Down  time.Duration // that endpoints may take to be gone after the stop hook; 0: 1 min
}

// Hooks are shell commands of the user's own that start and stop what serves. They
// find the serving command in PERFLAB_COMMAND (eval "exec env $PERFLAB_COMMAND" runs it) and PERFLAB_NAME,
// PERFLAB_REPLICAS and PERFLAB_URLS (separated by blanks) beside it. Their output is in the logs.
type Hooks struct {
	Start string // run before the endpoints are asked; "": they are up
	Stop  string // run when the deployment ends, and after a start that failed; must return when the endpoints no longer serve
}

var _ Runtime = Existing{}

const (
	existingTimeout = 5 * time.Second  // short: what should be up already is not waited for long
	hookTimeout     = 15 * time.Minute // for endpoints to answer after the start hook
	downTimeout     = time.Minute      // for endpoints to be gone after the stop hook
)

// Start runs the start hook, if any, and returns when every endpoint answers. Any
// answer below 500 will do, for a served endpoint may lack the health path or guard it
// with a key; after a hook it must be 200.
func (r Existing) Start(ctx context.Context, s Spec) (_ Deployment, err error) {
	op := "reach the endpoint of " + s.name()
	targets, err := baseURLs(r.URLs)
	if err != nil {
		return nil, &InfraError{Op: op, Err: err, Help: "give base URLs such as http://127.0.0.1:8000"}
	}
	d := &existing{Existing: r, spec: s, targets: targets, done: make(chan struct{})}
	if r.Hooks.Start == "" {
		ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(s.Timeout, existingTimeout), errNoAnswer)
		defer cancel()
		if err := d.await(ctx, op, newHealth(s, r.Poll, func(status int) bool { return status < 500 })); err != nil {
			return nil, err
		}
		return d, nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Stop(context.WithoutCancel(ctx)))
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(s.Timeout, hookTimeout), errNoAnswer)
	defer cancel()
	if err := d.hook(ctx, "start", r.Hooks.Start); err != nil {
		return nil, err
	}
	if err := d.await(ctx, op, newHealth(s, r.Poll, func(status int) bool { return status == http.StatusOK })); err != nil {
		return nil, err
	}
	return d, nil
}

var errNoAnswer = errors.New("no answer in time")

// await returns when every endpoint is ready.
func (d *existing) await(ctx context.Context, op string, probe *health) error {
	errs, seen := make([]error, len(d.targets)), make([]error, len(d.targets))
	var wg sync.WaitGroup
	for i, t := range d.targets {
		wg.Go(func() { errs[i] = probe.await(ctx, t, &seen[i]) })
	}
	wg.Wait()
	for i, t := range d.targets {
		switch {
		case errs[i] == nil:
		case errors.Is(errs[i], errNoAnswer):
			return &InfraError{
				Op:   op,
				Err:  cmp.Or(seen[i], errs[i]),
				Help: fmt.Sprintf("start the server at %s, or correct its URL", t),
			}
		default:
			return fmt.Errorf("%s: %w", op, errs[i])
		}
	}
	return nil
}

// hook runs one of the user's commands, with its output in the log hook-NAME.log.
func (d *existing) hook(ctx context.Context, name, script string) error {
	op := fmt.Sprintf("run the %s hook of %s", name, d.spec.name())
	if err := os.MkdirAll(d.spec.Dir, 0o755); err != nil {
		return fileError(op, err)
	}
	env, err := d.hookEnv()
	if err != nil {
		return fileError(op, err)
	}
	log, out, err := openLog(d.spec.Dir, "hook-"+name, []string{script}, env)
	if err != nil {
		return fileError(op, err)
	}
	defer out.Close()
	// The command is in the environment and not among the arguments, which ps shows
	// to every user of the machine.
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `eval "$PERFLAB_HOOK"`)
	cmd.Env = slices.Concat(os.Environ(), env, []string{"PERFLAB_HOOK=" + script})
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	tail := log.tail()
	if err := log.concealRunning(); err != nil { // what it leaves in the background may write on
		return fileError(op, err)
	}
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay): // what it leaves in the background is what serves
		return nil
	case context.Cause(ctx) != nil && !errors.Is(context.Cause(ctx), errNoAnswer):
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	}
	if f, ok := d.spec.diagnose(tail); ok && name == "start" && !f.Infra {
		return &RefusedError{Reason: f.Line, Log: log.path, Failure: f}
	}
	return &InfraError{Op: op, Err: err, Help: "read its output in " + log.path, Last: lastOf(tail, lastLines), Log: log.path}
}

// hookEnv tells a hook what is to serve. The command is that of the first replica, on
// the host and port of the first URL.
func (d *existing) hookEnv() ([]string, error) {
	env := []string{
		"PERFLAB_NAME=" + d.spec.Name,
		"PERFLAB_URLS=" + strings.Join(d.targets, " "),
		fmt.Sprintf("PERFLAB_REPLICAS=%d", len(d.targets)),
	}
	if len(d.spec.Replicas) == 0 {
		return env, nil
	}
	u, err := url.Parse(d.targets[0])
	if err != nil {
		return nil, err
	}
	port, _ := strconv.Atoi(cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
	m := portSet{front: port}.fill(d.spec.Replicas[0].Member, u.Hostname())
	files, err := filepath.Abs(filepath.Join(d.spec.Dir, "hook"+filesSuffix))
	if err != nil {
		return nil, err
	}
	if err := writeFiles(files, m.Files); err != nil {
		return nil, err
	}
	m = m.In(files)
	return append(env, "PERFLAB_COMMAND="+shellLine(m.Argv, m.Env)), nil
}

// Sweep finds nothing: what serves at an endpoint is not known to be ours.
func (r Existing) Sweep(context.Context, string) ([]string, error) { return nil, nil }

// baseURLs checks the URLs and takes off what would double a slash.
func baseURLs(urls []string) ([]string, error) {
	if len(urls) == 0 {
		return nil, errors.New("no URL is given")
	}
	out := make([]string, len(urls))
	for i, s := range urls {
		u, err := url.Parse(s)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return nil, fmt.Errorf("%q is not an http or https URL", s)
		}
		out[i] = strings.TrimRight(s, "/")
	}
	return out, nil
}

// existing is a deployment that is not ours: it is never known to end.
type existing struct {
	Existing
	spec    Spec
	targets []string
	done    chan struct{} // never closed

	stopOnce sync.Once
	stopErr  error
}

func (d *existing) Targets() []string     { return d.targets }
func (d *existing) Engines() []Engine     { return nil }
func (d *existing) Done() <-chan struct{} { return d.done }
func (d *existing) Err() error            { return nil }

// Stop runs the stop hook, if any, and sees that nothing serves after it: the next
// configuration would else be measured on this one.
func (d *existing) Stop(ctx context.Context) error {
	d.stopOnce.Do(func() { d.stopErr = d.end(ctx) })
	return d.stopErr
}

func (d *existing) end(ctx context.Context) error {
	if d.Hooks.Stop == "" {
		return nil
	}
	if err := d.hook(ctx, "stop", d.Hooks.Stop); err != nil {
		return err
	}
	if err := concealFiles(d.spec.Dir); err != nil {
		return fileError("stop "+d.spec.name(), err)
	}
	deadline := time.Now().Add(cmp.Or(d.Down, downTimeout))
	probe := newHealth(d.spec, d.Poll, func(status int) bool { return status < 500 })
	for _, target := range d.targets {
		for {
			if up, _ := probe.probe(ctx, target); !up {
				break
			}
			if time.Now().After(deadline) || ctx.Err() != nil {
				return &InfraError{
					Op:   "stop " + d.spec.name(),
					Err:  fmt.Errorf("%s still serves after the stop hook", target),
					Help: "let the hook return when the server has ended: the next configuration would be measured on this one",
				}
			}
			select {
			case <-time.After(probe.first):
			case <-ctx.Done():
			}
		}
	}
	return nil
}
