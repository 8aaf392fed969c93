package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Start starts the replicas and waits until all are ready. s.Dir belongs to one
// deployment at a time; what a killed perflab left running there is ended
// first.
func (l Launcher) Start(ctx context.Context, s Spec) (Deployment, error) {
	op := "start " + s.name()
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if err := s.Validate(); err != nil {
		return nil, &InfraError{Op: op, Err: err}
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fileError(op, err)
	}
	if _, err := l.sweepRecord(ctx, filepath.Join(s.Dir, recordName)); err != nil {
		help := "end the named processes by hand"
		if infra, ok := errors.AsType[*InfraError](err); ok {
			help = infra.Help
		} else if errors.Is(err, errInUse) {
			err, help = fmt.Errorf("%s: %w", s.Dir, err), "wait for its end, or choose another directory"
		}
		return nil, &InfraError{Op: op, Err: err, Help: help}
	}
	deadline := time.Now().Add(cmp.Or(s.Timeout, StartTimeout))
	for attempt := 1; ; attempt++ {
		d, err := l.launch(ctx, op, s, deadline)
		if err == nil {
			return d, nil
		}
		if _, taken := errors.AsType[*PortError](err); taken && attempt < portAttempts && ctx.Err() == nil {
			continue
		}
		return nil, err
	}
}

// launch starts the replicas on new ports and waits until they are ready.
func (l Launcher) launch(ctx context.Context, op string, s Spec, deadline time.Time) (_ *deployment, err error) {
	d := newDeployment(l, op, s)
	defer func() {
		if err == nil {
			return
		}
		if stop := d.Stop(context.WithoutCancel(ctx)); stop != nil {
			err = errors.Join(err, stop)
		}
	}()
	ctx, giveUp := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { d.watchStart(ctx, deadline, giveUp) })
	defer watch.Wait()
	defer giveUp(nil)
	h := newHealth(s, l.Poll, func(status int) bool { return status == http.StatusOK })
	if err := d.startAll(ctx, h); err != nil {
		return nil, d.explainStart(err)
	}
	return d, d.awaitReady(ctx, h)
}
