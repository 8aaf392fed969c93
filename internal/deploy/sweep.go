package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Sweep ends what deployments under dir left running when their perflab was
// killed, and says what that was. Processes are known by recorded id and start time,
// and by their marker in the environment, never by name; those of a perflab
// that still runs are left alone. Where the system has no /proc it finds nothing.
func (l Launcher) Sweep(ctx context.Context, dir string) (ended []string, err error) {
	var errs []error
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir() || e.Name() != recordName:
			return nil
		}
		names, err := l.sweepRecord(ctx, path)
		ended = append(ended, names...)
		if errors.Is(err, errInUse) {
			return nil
		}
		errs = append(errs, err)
		return nil
	})
	return ended, errors.Join(append(errs, err)...)
}

// errInUse is a record of a deployment whose perflab runs.
var errInUse = errors.New("a deployment runs there")

// sweepRecord ends the processes that one record leads to, and removes it. Those of a
// perflab that runs are left alone: errInUse.
func (l Launcher) sweepRecord(ctx context.Context, path string) (ended []string, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what a deployment left running: %w", err)
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("read what a deployment left running from %s: %w", path, err)
	}
	switch {
	case r.Owner.isRunning():
		return nil, fmt.Errorf("%w, of the perflab with process id %d", errInUse, r.Owner.PID)
	case r.Owner.onOtherMachine(currentOwner()) && len(r.Processes) > 0:
		return nil, l.sweepForeign(path, r)
	case r.Kind != l.Kind:
		return nil, fmt.Errorf("%s is of a deployment by the runtime %s, not %s: end what it lists with that one, and remove it", path, r.Kind, l.Kind)
	}
	for _, p := range r.Processes {
		what, err := l.End(ctx, p)
		ended = append(ended, what...)
		if err != nil {
			return ended, err
		}
	}
	return ended, os.Remove(path)
}

// sweepForeign deals with the record of a perflab of another machine, as in a directory that was
// copied from there. What that started on its machine is out of reach and none of ours; what
// it started elsewhere may be in use.
func (l Launcher) sweepForeign(path string, r record) error {
	if r.Kind == kindProcess {
		return os.Remove(path)
	}
	return &InfraError{
		Op:   "look for what a deployment left running",
		Err:  fmt.Errorf("%s is of a perflab on %s, and whether that still runs cannot be seen from here", path, r.Owner.Machine),
		Help: "end the deployment from there, or remove the file if nothing of it runs any more",
	}
}
