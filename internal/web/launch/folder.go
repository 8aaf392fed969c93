package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"perflab/internal/durable"
	"perflab/internal/outcome"
	"perflab/internal/proc"
	"perflab/internal/source"
)

// folder is the directory with a directory for each launch.
type folder string

// path is a file of a launch.
func (d folder) path(id string, name ...string) string {
	return filepath.Join(append([]string{string(d), id}, name...)...)
}

// request is what a launch was asked for by.
func (d folder) request(l *Launch) (Request, error) {
	if l.Kind == Bench {
		return Request{Bench: &BenchRequest{Name: l.Name, Flags: l.Flags}}, nil
	}
	text, err := d.text(l.ID)
	return Request{Study: &StudyRequest{Text: text, Strategy: l.Strategy}}, err
}

// read reads a small file of a launch.
func (d folder) read(id, name string) ([]byte, error) {
	if !idPattern.MatchString(id) {
		return nil, &NotFoundError{ID: id}
	}
	root, err := os.OpenRoot(d.path(id))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(name)
}

// text is that of a launched study.
func (d folder) text(id string) (string, error) {
	b, err := d.read(id, studyFile)
	if err != nil {
		return "", fmt.Errorf("read the study of launch %s: %w", id, err)
	}
	return string(b), nil
}

// hold takes the lock that says that something is at work at a launch.
func (d folder) hold(id string) (*os.File, error) {
	f, err := os.OpenFile(d.path(id, aliveFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	held, err := durable.Hold(f)
	if err == nil && !held {
		err = errors.New("its supervisor is still there")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// begun reports whether there is a study to go on with.
func begun(l *Launch) bool {
	s, err := source.Standing(l.Dir)
	return err == nil && s.Kind == "study"
}

// passStops writes down how urgently a launch shall end, where that is not written yet.
func (d folder) passStops(l *Launch) error {
	a := l.Last()
	want := min(len(a.Stops), mostUrgent)
	if l.State != Running || want == 0 {
		return nil
	}
	path := d.path(l.ID, numbered(stopName, a.Number))
	var s stop
	if _, err := readIfThere(path, &s); err != nil || s.Level >= want {
		return err
	}
	return writeJSON(path, stop{Level: want})
}

// childLives reports whether a child without a supervisor is still there. Where the system does
// not tell of processes, its directory does.
func childLives(l *Launch) bool {
	id := l.Last().Child
	if p, ok := proc.Read(id.PID); ok {
		return p.ID == id && !p.Ended
	}
	if id.Start != 0 { // the system tells, and has none
		return false
	}
	s, err := source.Standing(l.Dir)
	return err == nil && s.State == outcome.Running
}
