// Package doctor looks at this machine and says what perflab can do with it: system, processors,
// accelerators, engines, servers that answer, models that are there, and what is missing.
//
//	r := doctor.Look(ctx, doctor.System(version.Read()))
//	fmt.Print(r.Text())
//
// Invariants: everything is asked through Probes, so that a test needs no machine; each check has a
// time limit, and one that does not end in time is named and holds nothing up; nothing is asked of
// another machine. What is not known is absent, never zero.
//
// Deliberately absent: judgements of a run (package verdict) and of a study's hardware (package
// lab): a doctor says what there is before either.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"perflab/internal/deploy/docker"
	"perflab/internal/result"
	"perflab/internal/version"
)

// Report is what was found.
type Report struct {
	Program      version.Info   `json:"perflab"`
	Host         Host           `json:"host"`
	Accelerators []Accelerator  `json:"accelerators"`
	Engines      []Engine       `json:"engines"`
	Servers      []Server       `json:"servers"`
	Docker       *docker.Daemon `json:"docker,omitempty"`
	SSH          string         `json:"ssh,omitempty"` // its path
	Cache        string         `json:"model_cache,omitempty"`
	Models       []Model        `json:"models"` // in that directory
	Client       Client         `json:"client"`
	Unanswered   []Unanswered   `json:"unanswered,omitempty"`
	Abilities    []Ability      `json:"abilities"`
	Missing      []Missing      `json:"missing,omitempty"`
}

// Client is what bears on this machine as the one that sends the load.
type Client struct {
	OpenFiles   uint64            `json:"open_files,omitempty"`   // that a process may have; 0: not known
	ClockSource string            `json:"clock_source,omitempty"` // of the kernel
	SelfCheck   *result.SelfCheck `json:"selfcheck,omitempty"`    // of this machine and version
}

// Unanswered is a check that told nothing, and why.
type Unanswered struct {
	Check string `json:"check"`
	Why   string `json:"why"`
}

// check is one question. It gives what fills in the report, so that one that ends too late
// changes nothing.
type check struct {
	name  string
	limit time.Duration
	look  func(context.Context, Probes) (func(*Report), error)
}

// checks are all of them. Python takes seconds to start from a cold disk, and nvidia-smi some where
// the driver is not kept loaded.
func checks() []check {
	return []check{
		{"system", 5 * time.Second, lookHost},
		{"accelerators", 20 * time.Second, lookAccelerators},
		{"engines", 30 * time.Second, lookEngines},
		{"servers", 3 * time.Second, lookServers},
		{"docker", 5 * time.Second, lookDocker},
		{"ssh", time.Second, lookSSH},
		{"models", 10 * time.Second, lookModels},
		{"client", 5 * time.Second, lookClient},
	}
}

// late is how long a check may take to give up after its limit. One that hangs in the kernel, on a
// lost network drive, does not.
const late = time.Second

// Look makes all checks at the same time. With the end of ctx it returns what was found by then.
func Look(ctx context.Context, p Probes) Report {
	r := Report{Program: p.Program, Accelerators: []Accelerator{}, Engines: []Engine{}, Servers: []Server{}, Models: []Model{}}
	type answer struct {
		fill func(*Report)
		err  error
	}
	all := checks()
	answers := make([]chan answer, len(all))
	for i, c := range all {
		answers[i] = make(chan answer, 1) // so that one that nobody waits for any more ends
		go func() {
			ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("no answer within %v", c.limit))
			defer cancel()
			fill, err := c.look(ctx, p)
			answers[i] <- answer{fill, err}
		}()
	}
	begin := time.Now()
	for i, c := range all {
		timer := time.NewTimer(c.limit + late - time.Since(begin))
		a := answer{err: fmt.Errorf("no answer within %v", c.limit)}
		select {
		case a = <-answers[i]:
		case <-timer.C:
		case <-ctx.Done():
			a.err = context.Cause(ctx)
		}
		select {
		case a = <-answers[i]: // it came while others were waited for
		default:
		}
		timer.Stop()
		if a.fill != nil {
			a.fill(&r)
		}
		if a.err != nil {
			r.Unanswered = append(r.Unanswered, Unanswered{c.name, a.err.Error()})
		}
	}
	r.Abilities, r.Missing = abilities(r), missing(r)
	return r
}

func lookDocker(ctx context.Context, p Probes) (func(*Report), error) {
	d, err := p.Docker(ctx)
	if err != nil {
		return nil, err
	}
	return func(r *Report) { r.Docker = &d }, nil
}

func lookSSH(_ context.Context, p Probes) (func(*Report), error) {
	path := p.Find("ssh")
	return func(r *Report) { r.SSH = path }, nil
}

func lookClient(_ context.Context, p Probes) (func(*Report), error) {
	c := Client{ClockSource: p.line("/sys/devices/system/clocksource/clocksource0/current_clocksource"), SelfCheck: p.SelfCheck()}
	n, err := p.OpenFiles()
	if err == nil {
		c.OpenFiles = n
	}
	return func(r *Report) { r.Client = c }, err
}

// Engine finds an installed engine by its name in the catalogue.
func (r Report) Engine(name string) (Engine, bool) {
	i := slices.IndexFunc(r.Engines, func(e Engine) bool { return e.Name == name })
	if i < 0 {
		return Engine{}, false
	}
	return r.Engines[i], true
}
