package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// recordName is the file in a deployment's directory that leads to what runs.
// It is there from before the first process until Stop has ended the last.
const recordName = "processes.json"

// markerKey names the environment variable that marks every process of a
// deployment, wherever it goes.
const markerKey = "PERFLAB_DEPLOYMENT"

// record leads to the processes of a deployment.
type record struct {
	Marker    string     `json:"marker"` // KEY=value in the environment
	Owner     identity   `json:"owner"`  // the perflab that started them
	Processes []recorded `json:"processes"`
}

type recorded struct {
	identity
	Replica int      `json:"replica"`
	Argv    []string `json:"argv"` // secrets replaced
}

// identity is a process told apart from later ones of the same id.
type identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot; 0 where the system does not tell
}

// running is a process that was found to run.
type running struct {
	identity
	name  string
	group int
}

func describe(r running) string { return fmt.Sprintf("process %d (%s)", r.PID, r.name) }

// write replaces the record at path in one step.
func (r record) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// SweepLeftovers ends what deployments under dir left running when their
// perflab was killed, and says what that was. Processes are known by recorded
// id and start time, and by the deployment's marker in their environment, never
// by name; those of a perflab that still runs are left alone. Where the system
// has no /proc it finds nothing.
func SweepLeftovers(dir string) (ended []string, err error) {
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
		names, err := sweepRecord(path)
		ended = append(ended, names...)
		errs = append(errs, err)
		return nil
	})
	return ended, errors.Join(append(errs, err)...)
}

// leftoverGrace is short: nobody waits for what a leftover still writes.
const leftoverGrace = time.Second

// sweepRecord ends the processes that one record leads to, and removes it.
func sweepRecord(path string) ([]string, error) {
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
	if owner, ok := identify(r.Owner.PID); ok && owner == r.Owner {
		return nil, nil
	}
	found := r.left()
	signal := func(sig syscall.Signal) {
		for _, p := range r.left() {
			_ = signalExactly(p.identity, sig) // what stays is found again
		}
	}
	if left := endAll(r.left, signal, leftoverGrace, nil); len(left) > 0 {
		return nil, fmt.Errorf("%s of an earlier deployment does not end after SIGKILL", describe(left[0]))
	}
	names := make([]string, len(found))
	for i, p := range found {
		names[i] = describe(p)
	}
	return names, os.Remove(path)
}

// left lists what runs of a recorded deployment.
func (r record) left() []running {
	var out []running
	if r.Marker != "" {
		out = survivors(r.Marker)
	}
	for _, p := range r.Processes {
		id, ok := identify(p.PID)
		known := func(q running) bool { return q.PID == p.PID }
		if ok && id == p.identity && !slices.ContainsFunc(out, known) {
			out = append(out, running{identity: id, name: strings.Join(p.Argv, " ")})
		}
	}
	return out
}
