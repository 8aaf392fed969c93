package studies

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perflab/internal/durable"
	"perflab/internal/gauge"
	"perflab/internal/outcome"
	"perflab/internal/redact"
	"perflab/internal/report/finding"
	"perflab/internal/rundir"
	"perflab/internal/source"
	"perflab/internal/web/guard/place"
)

// scene is what the directory of a study says at one instant. It is not written to.
type scene struct {
	n        uint64 // of the look
	standing outcome.Standing
	study    *outcome.Study // nil: nothing has ended yet
	fault    string         // what could not be read
	missing  bool           // there is no study in the directory yet

	log      []line
	logName  string
	readings []gauge.Reading // of the load under way, or of the last one
	load     string          // which one
	charts   []string        // names of the charts that readings give

	shape string         // changes where the page has to be drawn anew
	set   map[string]any // what changes from look to look, by its name in the page
}

// running reports whether a process is at work.
func (s *scene) running() bool { return s.standing.State == outcome.Running }

// finished reports whether the study has come to its end.
func (s *scene) finished() bool { return s.standing.State == outcome.Finished }

// reader reads the directory of one study again and again. What has not changed is not read.
type reader struct {
	dir  string
	key  string // of the files that standing and study are of
	last scene

	log       logTail
	telemetry tail
	load      string
	readings  []gauge.Reading
}

func newReader(dir string) *reader {
	r := &reader{dir: dir}
	r.log.secrets = redact.ValuesOf(nil, os.Environ()) // engines inherit them
	return r
}

// stamp tells whether a file is the one that was read.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", info.ModTime().UnixNano(), info.Size())
}

// look reads what is new.
func (r *reader) look() *scene {
	r.last.n++
	s := r.last
	s.fault = ""
	r.standing(&s)
	if s.running() || r.last.log == nil {
		r.follow(&s)
	}
	s.log, s.logName, s.readings, s.load = r.log.lines, r.log.name, r.readings, r.load
	s.charts = chartNames(s.readings)
	s.shape = shape(&s)
	s.set = liveTexts(&s)
	r.last = s
	return &s
}

// standing reads how far the study is: its documents where one of them is another than at the
// last look, else what it says of itself every second.
func (r *reader) standing(s *scene) {
	journal, going := filepath.Join(r.dir, rundir.JournalFile), filepath.Join(r.dir, rundir.UnderwayFile)
	held, progress := durable.Held(journal), stamp(going)
	key := fmt.Sprint(held, progress == "-", stamp(filepath.Join(r.dir, rundir.StudyFile)))
	if progress == "-" { // the journal alone tells
		key += stamp(journal)
	}
	if key == r.key && r.last.standing.Study != nil {
		var u outcome.Underway
		if err := rundir.ReadJSON(going, &u); err == nil { // else it is replaced just now
			s.standing.Study, s.standing.Ended = &u, u.Ended
		}
		return
	}
	if key == r.key {
		s.fault = r.last.fault
		return
	}
	st, err := source.Standing(r.dir)
	s.missing = err != nil && stamp(journal) == "-"
	if err != nil && !s.missing {
		s.fault = err.Error()
	}
	s.standing = st
	r.key = key
	s.study = nil
	if !rundir.IsStudy(r.dir) {
		return
	}
	f, err := rundir.OpenStudy(r.dir)
	if err != nil {
		s.fault = err.Error()
		return
	}
	worded := finding.Worded(f)
	s.study = &worded
}

// follow reads on in the log and the telemetry of the newest trial under way.
func (r *reader) follow(s *scene) {
	u := s.standing.Study
	if u == nil || len(u.Trials) == 0 {
		return
	}
	t := u.Trials[len(u.Trials)-1]
	dir := trialDir(r.dir, t.Trial)
	if name := engineLog(dir); name != "" {
		path := filepath.Join(dir, logsDir, name)
		if err := r.log.follow(relative(r.dir, path), path); err != nil && s.fault == "" {
			s.fault = "the engine's log cannot be read: " + err.Error()
		}
	}
	if run := newestRun(dir); run != "" {
		r.measured(t.Trial, dir, run)
		if err := r.read(); err != nil && s.fault == "" {
			s.fault = "the telemetry cannot be read: " + err.Error()
		}
	}
}

// measured has the telemetry of a run followed. When the run has ended, its directory has another name
// and the readings are those that were read.
func (r *reader) measured(trial int, dir, run string) {
	path := filepath.Join(dir, run, rundir.TelemetryFile)
	load := fmt.Sprintf("launch %d, %s", trial, strings.TrimSuffix(run, partial))
	if load != r.load {
		r.telemetry, r.readings, r.load = tail{path: path}, nil, load
	} else if len(r.readings) == 0 {
		r.telemetry.path = path
	}
}

// mostReadings bounds what is kept of a load: of eight GPUs, an engine and a host ten minutes.
const mostReadings = 6000

// read reads on in the telemetry.
func (r *reader) read() error {
	lines, _, err := r.telemetry.more()
	if err != nil || len(lines) == 0 {
		return err
	}
	all := r.readings[:len(r.readings):len(r.readings)]
	for x, err := range gauge.Read(strings.NewReader(joined(lines))) {
		if err != nil {
			return err
		}
		all = append(all, x)
	}
	r.readings = all[max(0, len(all)-mostReadings):]
	return nil
}

func joined(lines [][]byte) string {
	var b strings.Builder
	for _, l := range lines {
		b.Write(l)
		b.WriteByte('\n')
	}
	return b.String()
}

// Names in the directory of a study, as tune lays it out.
const (
	trialsDir = "trials"
	logsDir   = "logs"
	partial   = ".tmp" // ends the name of a run until it has ended
	mainLog   = "replica-0.log"
	sourceDoc = "study.yaml"
)

func trialDir(dir string, n int) string { return filepath.Join(dir, trialsDir, fmt.Sprintf("%03d", n)) }

// relative is a path below a directory, with slashes.
func relative(dir, path string) string {
	r, err := filepath.Rel(dir, path)
	if err != nil {
		return filepath.Base(path)
	}
	return filepath.ToSlash(r)
}

// engineLog is the log of a trial that is followed: that of the process which serves.
func engineLog(dir string) string {
	names := logNames(dir)
	switch {
	case len(names) == 0:
		return ""
	case slices.Contains(names, mainLog):
		return mainLog
	}
	return names[0]
}

// logNames are the logs of a trial, sorted.
func logNames(dir string) (names []string) {
	entries, _ := os.ReadDir(filepath.Join(dir, logsDir)) // none of what does not exist
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".log") && place.Check(e.Name()) == nil { // what place would refuse leads nowhere
			names = append(names, e.Name())
		}
	}
	return names
}

// newestRun is the newest run of a trial that has telemetry.
func newestRun(dir string) (name string) {
	entries, _ := os.ReadDir(dir) // none of what does not exist
	var newest time.Time
	for _, e := range entries {
		if !e.IsDir() || stamp(filepath.Join(dir, e.Name(), rundir.TelemetryFile)) == "-" {
			continue
		}
		if info, err := e.Info(); err == nil && (name == "" || info.ModTime().After(newest)) {
			name, newest = e.Name(), info.ModTime()
		}
	}
	return name
}

// shape is a digest of what the page draws once: the state, the trials, the phase of each.
func shape(s *scene) string {
	h := fnv.New64a()
	fmt.Fprint(h, s.standing.State, s.missing, s.fault, s.charts, s.study == nil)
	if s.study != nil {
		fmt.Fprint(h, len(s.study.Trials), s.study.Partial, s.study.Verdict)
	}
	if u := s.standing.Study; u != nil {
		fmt.Fprint(h, u.Ended, u.Stopped)
		for _, t := range u.Trials {
			fmt.Fprint(h, t.Trial, t.Label, t.Workload, t.Phase)
		}
	}
	return fmt.Sprintf("%x", h.Sum64())
}
