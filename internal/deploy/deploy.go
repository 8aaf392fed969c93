// Package deploy starts an engine command as one or more replicas, waits until
// they are ready, keeps their logs and stops them without leaving anything
// behind.
package deploy

import (
	"context"
	"time"
)

// Spec is one deployment to start.
type Spec struct {
	Name     string        // for messages: "trial 3"
	Replicas []Replica     // at least one
	Dir      string        // logs go to Dir/replica-N.log
	Timeout  time.Duration // until every replica is ready; 0: 15 min
	Health   string        // path that answers 200 when ready, "/health"
	// Refusals are log signatures of the engine that mean "this configuration
	// cannot run" (engine.Engine.Refusal): given the log's tail, the reason.
	Refusal func(log string) (reason string, ok bool)
}

// Replica is one process or container of a deployment.
type Replica struct {
	Argv []string // with the placeholder {port} where the port belongs
	Env  []string // added to the environment, KEY=value
}

// Runtime is a way to start deployments.
type Runtime interface {
	// Start returns when every replica is ready, or an error: *RefusedError
	// when the engine rejected its configuration, *InfraError when our own
	// machinery broke, or ctx's cause. On error nothing is left running.
	Start(ctx context.Context, s Spec) (Deployment, error)
}

// Deployment is a started engine.
type Deployment interface {
	// Targets are base URLs ("http://127.0.0.1:41234"), one a replica.
	Targets() []string
	// Done is closed when a replica has ended that should run; Err says why.
	Done() <-chan struct{}
	Err() error
	// Stop ends all replicas and waits for them. It is safe to call twice.
	Stop(ctx context.Context) error
}

// RefusedError says that the engine rejected the configuration: an infeasible
// point, told to the strategy.
type RefusedError struct {
	Reason string // the engine's own line, or our rule's sentence
	Log    string // path of the log, if any
}

func (e *RefusedError) Error() string { return "engine refused to start: " + e.Reason }

// InfraError says that starting broke for a reason that is not the
// configuration's: image, port, missing program. It is retried and never told
// to the strategy.
type InfraError struct {
	Op   string // what was attempted, with its object
	Err  error
	Help string // what to do
}

func (e *InfraError) Error() string { return e.Op + ": " + e.Err.Error() }
func (e *InfraError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *InfraError) Hint() string { return e.Help }
