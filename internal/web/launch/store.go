package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"perflab/internal/durable"
)

// Names in the directory of a launch.
const (
	launchFile = "launch.json"
	studyFile  = "study.yaml"
	aliveFile  = "alive"
	resultDir  = "result"
	stdoutFile = "stdout.log"
	stderrFile = "stderr.log"
)

// numbered is the name of a file of one attempt.
func numbered(name string, attempt int) string { return fmt.Sprintf("%s-%d.json", name, attempt) }

// idPattern is what an id looks like; nothing else is made a path of.
var idPattern = regexp.MustCompile(`^\d{8}-\d{6}-[0-9a-f]{8}$`)

// stamp tells whether a file is the one that was read.
type stamp struct {
	at   time.Time
	size int64
}

// load reads the launches of the directory. Those that were read before, and have not been
// written since, are not read again.
func (q *Queue) load() error {
	entries, err := os.ReadDir(string(q.dir))
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, e := range entries {
		if !e.IsDir() || !idPattern.MatchString(e.Name()) {
			continue
		}
		there[e.Name()] = true
		q.loadOne(e.Name())
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for id := range q.launches {
		if !there[id] {
			delete(q.launches, id)
			delete(q.seen, id)
			q.bump()
		}
	}
	return nil
}

// loadOne reads one launch. What cannot be read is shown with its fault and never started.
func (q *Queue) loadOne(id string) {
	info, err := os.Stat(q.dir.path(id, launchFile))
	var l Launch
	if err == nil {
		now := stamp{info.ModTime(), info.Size()}
		if q.seen[id] == now {
			return
		}
		q.seen[id] = now
		err = readJSON(q.dir.path(id, launchFile), &l)
	}
	if err == nil {
		err = l.check(id)
	}
	if err != nil {
		l = Launch{Schema: launchSchema, ID: id, Name: id, State: Ended, Fault: "its " + launchFile + " cannot be read: " + err.Error()}
	}
	q.mu.Lock()
	old := q.launches[id]
	q.mu.Unlock()
	if old == nil || err == nil || old.Fault != l.Fault {
		q.put(&l)
	}
}

// check says what keeps a launch that was read from being used.
func (l *Launch) check(id string) error {
	switch {
	case l.Schema != launchSchema:
		return fmt.Errorf("it is of schema %q, and this version knows %s", l.Schema, launchSchema)
	case l.ID != id:
		return fmt.Errorf("it is of launch %q", l.ID)
	case !slices.Contains([]State{Queued, Running, Ended, Cancelled}, l.State):
		return fmt.Errorf("its state is %q", l.State)
	case l.State == Running && len(l.Attempts) == 0:
		return errors.New("it runs and was never started")
	}
	return nil
}

// save writes a launch down and then shows it.
func (q *Queue) save(l *Launch) error {
	if err := writeJSON(q.dir.path(l.ID, launchFile), l.kept()); err != nil {
		return fmt.Errorf("write down launch %s: %w", l.ID, err)
	}
	delete(q.unsaved, l.ID)
	q.put(l)
	return nil
}

// found shows what was seen of a launch, also where it cannot be written down: the next
// server would see the same.
func (q *Queue) found(l *Launch) {
	if err := q.save(l); err != nil {
		if _, known := q.unsaved[l.ID]; !known {
			q.o.Log.Warn("write down what a launch came to", "launch", l.ID, "error", err)
		}
		q.unsaved[l.ID] = struct{}{}
		q.put(l)
	}
}

// saveAgain tries to write down what could not be.
func (q *Queue) saveAgain() {
	for id := range q.unsaved {
		q.mu.Lock()
		l := q.launches[id].clone()
		q.mu.Unlock()
		if writeJSON(q.dir.path(id, launchFile), l.kept()) == nil {
			delete(q.unsaved, id)
		}
	}
}

// kept is the launch as its file has it.
func (l *Launch) kept() *Launch {
	c := l.clone()
	c.Position, c.Waits = 0, ""
	return c
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(path, append(b, '\n'), 0o600)
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return nil
}

// readIfThere is readJSON, and false where there is no such file.
func readIfThere(path string, v any) (bool, error) {
	err := readJSON(path, v)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
