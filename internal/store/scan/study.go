package scan

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	"perflab/internal/outcome"
	"perflab/internal/redact"
	"perflab/internal/rundir"
)

func (t *Tree) readStudy(p Place, f *Facts) error {
	head := t.firstLine(p, rundir.JournalFile)
	early := id("study under way", t.Dir, p.Path, head)
	f.ID, f.State = early, Stopped
	if t.held(p.Path, Study) {
		f.State = Running
	}
	var s outcome.Study
	var u outcome.Underway
	err := t.json(p, rundir.StudyFile, f, &s)
	known := err == nil
	if t.size(p, rundir.StudyFile) == 0 {
		err = nil // it has not measured anything yet
	}
	going := t.size(p, rundir.UnderwayFile) > 0 && t.json(p, rundir.UnderwayFile, f, &u) == nil
	f.Bytes += t.size(p, rundir.JournalFile)
	if going {
		f.Title, f.Simulated, f.Started = short(u.Name), u.Simulated, u.Started
		f.Headline = &Headline{Trials: max(0, u.Ended), Resume: command(u.Resume)}
		f.ofLeader(u.Leader)
	}
	if !known {
		return err
	}
	if !s.Started.IsZero() || len(head) == 0 {
		f.ID, f.Early = id("study", head, s.Name, stamp(s.Started), s.Title), early
	}
	if !going && !s.Partial {
		f.State = Finished
	}
	f.ofStudy(&s)
	if going {
		f.Headline.Resume = command(u.Resume)
		f.Headline.Trials = max(f.Headline.Trials, u.Ended)
		if f.State == Running {
			f.ofLeader(u.Leader)
		}
	}
	return err
}

// firstLine is the first line of a file: of a journal, the head that says which study it is.
func (t *Tree) firstLine(p Place, name string) []byte {
	file, err := t.root.Open(path.Join(p.Path, name))
	if err != nil {
		return nil
	}
	defer file.Close()
	b, _ := io.ReadAll(io.LimitReader(file, 64<<10)) // what can be read of it
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return line
}

// ofLeader takes what leads a study that goes on: it is no winner, and has no gain yet.
func (f *Facts) ofLeader(l *outcome.Leader) {
	if l == nil {
		return
	}
	f.Headline.Best = short(l.Label)
	f.Headline.Text = "leads so far: " + f.Headline.Best
}

// ofStudy takes what a study found.
func (f *Facts) ofStudy(s *outcome.Study) {
	f.Title, f.Started = short(cmp.Or(s.Title, s.Name)), s.Started
	f.Simulated, f.Predicted, f.Version = s.Simulated, s.Predicted, short(s.Version)
	f.Model, f.Hardware = short(s.Model), short(s.Hardware)
	if !s.Ended.IsZero() && s.Ended.After(s.Started) {
		f.Duration = s.Ended.Sub(s.Started).Seconds()
	}
	for i, e := range s.Engines {
		if i > 0 {
			f.Engine, f.EngineVersion = f.Engine+", ", ""
		}
		f.Engine += short(e.Name)
		if len(s.Engines) == 1 {
			f.EngineVersion = short(e.Version)
		}
	}
	for _, w := range s.Workloads {
		if w.Primary || len(s.Workloads) == 1 {
			f.Workload, f.Load = short(w.Name), short(w.Text)
		}
	}
	for _, tr := range s.Trials {
		f.GPUs = max(f.GPUs, tr.GPUs)
	}
	f.studyHeadline(s)
}

func (f *Facts) studyHeadline(s *outcome.Study) {
	h := &Headline{
		Objective: short(s.Objective.Goal), Metric: short(s.Objective.Metric), Higher: s.Objective.Better == "higher",
		Confirmed: s.Confirmed, Trials: len(s.Trials), Text: short(s.Verdict),
	}
	for _, o := range s.Objective.SLOs {
		h.SLOs = append(h.SLOs, short(o))
	}
	f.Headline = h
	f.figure(Trials, float64(len(s.Trials)))
	if s.Ledger.GPUSeconds > 0 {
		f.figure(GPUHours, s.Ledger.GPUSeconds/3600)
	}
	r := s.Recommended
	if r == nil || f.State == Running { // what a study says on its way is no conclusion
		return
	}
	h.Best, h.Command, h.Gain = short(r.Label), command(r.Command), r.Gain
	f.Command = h.Command
	if r.Gain != nil {
		g := Figure{Metric: Gain, Value: *r.Gain}
		if r.Interval != nil {
			g.Low, g.High = new(r.Interval.Low), new(r.Interval.High)
			h.Low, h.High = g.Low, g.High
		}
		f.Figures = append(f.Figures, g)
	}
	if f.Verdict = "unconfirmed"; s.Confirmed {
		f.Verdict = "confirmed"
	}
	if r.Summary == nil {
		return
	}
	if v, ok := r.Summary.Get(s.Objective.Metric); ok {
		h.Value = &v
	}
	_ = f.addFigures(r.Summary) // a study's own has no more than are kept
}

// part is what a study or a series says of one of its runs.
type part struct {
	trial, gpus                             int
	label, engine, version, image, hardware string
	load, command                           string
}

// parts are those of one study, as of one state of its files.
type parts struct {
	once  sync.Once
	stamp string
	by    map[string]part // by path below the root
}

// partOf adds what the parent of a run says of it.
func (t *Tree) partOf(p Place, f *Facts) {
	if p.Parent == "" {
		return
	}
	t.mu.Lock()
	all := t.parts[p.Parent]
	if all == nil || all.stamp != p.origin {
		all = &parts{stamp: p.origin}
		t.parts[p.Parent] = all
	}
	t.mu.Unlock()
	all.once.Do(func() { all.by = t.readParts(p.Parent) })
	c, ok := all.by[strings.TrimSuffix(p.Path, partialSuffix)]
	if !ok {
		return
	}
	f.Trial, f.Label, f.GPUs = c.trial, c.label, max(f.GPUs, c.gpus)
	f.Engine, f.EngineVersion = cmp.Or(f.Engine, c.engine), cmp.Or(f.EngineVersion, c.version)
	f.Image, f.Hardware = cmp.Or(f.Image, c.image), cmp.Or(f.Hardware, c.hardware)
	f.Load, f.Command = cmp.Or(c.load, f.Load), cmp.Or(f.Command, c.command)
}

// readParts reads what a study says of its runs.
func (t *Tree) readParts(dir string) map[string]part {
	var s struct {
		Hardware  string         `json:"hardware"`
		Workloads []outcome.Load `json:"workloads"`
		Trials    []struct {
			ID      int    `json:"id"`
			Label   string `json:"label"`
			Engine  string `json:"engine"`
			Version string `json:"version"`
			Image   string `json:"image"`
			Command string `json:"command"`
			GPUs    int    `json:"gpus"`
			Runs    []struct {
				Workload string `json:"workload"`
				Dir      string `json:"dir"`
			} `json:"runs"`
		} `json:"trials"`
	}
	if t.json(Place{Path: dir}, rundir.StudyFile, &Facts{}, &s) != nil {
		return nil // it says nothing, and tells so itself
	}
	loads := map[string]string{}
	for _, w := range s.Workloads {
		loads[w.Name] = short(w.Text)
	}
	out := map[string]part{}
	for _, tr := range s.Trials {
		for _, r := range tr.Runs {
			out[path.Join(dir, r.Dir)] = part{
				trial: tr.ID, gpus: max(0, tr.GPUs), label: short(tr.Label), engine: short(tr.Engine), version: short(tr.Version),
				image: short(tr.Image), hardware: short(s.Hardware), load: loads[r.Workload], command: command(redact.Text(tr.Command)),
			}
		}
	}
	return out
}

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
