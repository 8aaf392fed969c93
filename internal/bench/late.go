package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"perflab/internal/gauge"
	"perflab/internal/redact"
	"perflab/internal/result"
	"perflab/internal/rundir"
)

// Late completes a run whose calls lie on the machines that sent them, since the one that made the run was
// gone when they ended. Each call is in it once.
//
//	l, err := OpenLate("run", "", epoch, &header) // run.tmp is completed, or run is made
//	defer l.Abandon()
//	l.Add(call)                                   // of those that were fetched
//	out, err := l.Finish(fleet)
type Late struct {
	Had, Added int // calls that were there before, and that came

	dir      string
	h        result.Header
	spec     Spec
	readings []gauge.Reading
	opt      result.Options
	acc      *result.Accumulator
	w        *rundir.Writer
	seen     map[int]bool // calls by their index
	agents   map[int]int  // calls by their agent's number
}

// WrongLoadError says that a directory is of another load than the one whose calls are to be added.
type WrongLoadError struct {
	Dir       string
	Is, Wants uint64 // Is is 0: no fleet sent it
}

func (e *WrongLoadError) Error() string {
	if e.Is == 0 {
		return fmt.Sprintf("%s is a run that no fleet sent, and not of load %d", e.Dir, e.Wants)
	}
	return fmt.Sprintf("%s is the run of load %d, and not of load %d", e.Dir, e.Is, e.Wants)
}

// StudyRunError says that a directory is one of a study, which measures a trial that was cut off again.
type StudyRunError struct{ Dir, Study string }

func (e *StudyRunError) Error() string {
	return fmt.Sprintf("%s is a run of the study in %s, which measures that trial again when it goes on: name another directory", e.Dir, e.Study)
}

// studyOf is the directory of the study that a run directory is in; "" for none.
func studyOf(dir string) string {
	const levels = 6 // of a study's directories, and more
	at, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for range levels {
		at = filepath.Dir(at)
		if _, err := os.Stat(filepath.Join(at, rundir.JournalFile)); err == nil {
			return at
		}
	}
	return ""
}

// OpenLate begins. Where DIR.tmp is there it is completed; else the directory is new, with the calls of a
// directory of the same load, where with names one, and else with the header, which the agents got with the load.
func OpenLate(dir, with string, epoch uint64, h *result.Header) (*Late, error) {
	if s := studyOf(dir); s != "" {
		return nil, &StudyRunError{dir, s}
	}
	l := &Late{dir: dir, seen: map[int]bool{}, agents: map[int]int{}}
	cut, err := openOf(dir, epoch)
	if err != nil {
		return nil, err
	}
	base := cut
	switch {
	case base != nil && with != "":
		return nil, fmt.Errorf("%s.tmp is there, and is completed with its own calls: name another directory for the run, or leave %s out", dir, with)
	case with != "":
		if base, err = openOf(with, epoch); err != nil {
			return nil, err
		}
		if base == nil {
			return nil, fmt.Errorf("%s is no run directory", with)
		}
	}
	switch {
	case base != nil:
		l.h, l.readings = base.Header, base.Readings
	case h == nil:
		return nil, fmt.Errorf("no agent has the header of load %d: name the directory that its leader began", epoch)
	default:
		l.h = *h
	}
	if err := l.begin(cut != nil); err != nil {
		return nil, err
	}
	if base != nil {
		for c := range base.All() {
			l.take(c)
		}
		l.Had = len(l.seen)
	}
	return l, nil
}

// CutOff reports whether DIR.tmp is the run of a load that was cut off, and can be completed.
func CutOff(dir string, epoch uint64) bool {
	if studyOf(dir) != "" {
		return false
	}
	h, err := rundir.ReadHeader(dir + ".tmp")
	return err == nil && h.Fleet != nil && h.Fleet.Epoch == epoch
}

// openOf opens a run of a load, nil where there is none.
func openOf(dir string, epoch uint64) (*rundir.Run, error) {
	if !rundir.IsRun(dir) {
		return nil, nil
	}
	r, err := rundir.OpenCalls(dir)
	if err != nil {
		return nil, err
	}
	is := uint64(0)
	if r.Header.Fleet != nil {
		is = r.Header.Fleet.Epoch
	}
	if is != epoch {
		return nil, &WrongLoadError{dir, is, epoch}
	}
	return r, nil
}

// begin begins the directory and the figures.
func (l *Late) begin(again bool) (err error) {
	if err := json.Unmarshal(l.h.Spec, &l.spec); err != nil {
		return fmt.Errorf("read the run's spec: %w", err)
	}
	if l.opt, err = l.spec.summaryOptions(); err != nil {
		return err
	}
	if l.acc, err = result.NewAccumulator(l.h, l.opt); err != nil {
		return err
	}
	if again {
		l.w, err = rundir.Reopen(l.dir)
	} else {
		l.w, err = rundir.Create(l.dir, l.h)
	}
	return err
}

// Header is that of the run, as far as it is known.
func (l *Late) Header() result.Header { return l.h }

// Calls is how many calls of an agent are there, by its number.
func (l *Late) Calls(agent int) int { return l.agents[agent] }

// Add adds a call that was fetched, unless it is there. What a server answered may have secrets that the one who made the run
// knew: those that look like one are taken out.
func (l *Late) Add(c result.Call) {
	if l.seen[c.Index] {
		return
	}
	if !l.spec.KeepText {
		c.Text = ""
	}
	c.Error, c.Text = redact.Text(c.Error), redact.Text(c.Text)
	l.take(c)
	l.Added++
}

func (l *Late) take(c result.Call) {
	if l.seen[c.Index] {
		return
	}
	l.seen[c.Index] = true
	l.agents[c.Agent]++
	l.acc.Add(&c)
	l.w.Add(&c)
}

// Finish ends the run with what became of the agents, in the figures and the verdict, and gives the directory its name.
func (l *Late) Finish(f *result.Fleet) (*Outcome, error) {
	l.h = sentBy(l.h, f)
	l.acc.SetHeader(l.h)
	client := f.Client()
	if !client.Partial && l.h.Requests > len(l.seen) {
		client.Partial, client.StopNote = true, fmt.Sprintf("%d of %d calls are here", len(l.seen), l.h.Requests)
	}
	out := &Outcome{Header: l.h, Client: &client, Readings: l.readings, Dir: l.dir}
	if err := l.w.Rewrite(l.h); err != nil {
		return nil, err
	}
	l.opt.Readings = l.readings
	if err := out.summarise(l.acc, l.opt); err != nil {
		return nil, err
	}
	l.w.Condensed(l.acc)
	if err := l.w.Finish(&client, &out.Summary, slices.Clone(l.readings)); err != nil {
		return nil, fmt.Errorf("the run directory is incomplete: %w", err)
	}
	return out, nil
}

// Abandon leaves what was there as it was, and of a new directory what came. After Finish it does nothing.
func (l *Late) Abandon() { l.w.Abandon() }
