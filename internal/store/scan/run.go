package scan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"perflab/internal/result"
	"perflab/internal/rundir"
)

func (t *Tree) readRun(p Place, f *Facts, digest Digests) error {
	b, err := t.file(p, headerFile, f)
	if err != nil {
		return err
	}
	var h result.Header
	if err := json.Unmarshal(b, &h); err != nil {
		return fmt.Errorf("read %s: %w", headerFile, err)
	}
	f.ofHeader(&h)
	t.partOf(p, f)
	f.Bytes += t.size(p, rundir.CallsFile) + t.size(p, rundir.TelemetryFile) + t.size(p, clientFile)
	early := id("run under way", b)
	if strings.HasSuffix(p.Path, partialSuffix) {
		f.ID = early
		return t.readUnfinished(p, f)
	}
	f.Early, f.State = early, Finished
	sum, err := t.file(p, summaryFile, f)
	if err != nil {
		return err
	}
	if h.Imported != nil {
		f.ID = id("import of a run", b, sum)
	} else if f.ID, err = t.runID(p, f, b, digest); err != nil {
		return err
	}
	var s result.Summary
	if err := json.Unmarshal(sum, &s); err != nil {
		return err
	}
	return f.ofSummary(&s)
}

// runID takes the ID that is known for the calls, else reads them.
func (t *Tree) runID(p Place, f *Facts, header []byte, digest Digests) (string, error) {
	calls, err := t.root.Open(path.Join(p.Path, rundir.CallsFile))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", rundir.CallsFile, err)
	}
	defer calls.Close()
	if f.Calls, err = callsFile(calls); err != nil {
		return "", fmt.Errorf("read %s: %w", rundir.CallsFile, err)
	}
	if digest != nil {
		if known := digest(f.Early, f.Calls); known != "" {
			return known, nil
		}
	}
	found, err := runID(header, calls)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", rundir.CallsFile, err)
	}
	return found, nil
}

// readUnfinished takes what a run tells that has not come to its end: its figures once nobody
// is at work on it.
func (t *Tree) readUnfinished(p Place, f *Facts) error {
	if f.State = Stopped; t.held(p.Path, Run) {
		f.State = Running
		return nil
	}
	r, err := rundir.OpenRun(filepath.Join(t.Dir, filepath.FromSlash(p.Path)))
	if err != nil {
		return err
	}
	s, err := r.Resummarise()
	if err != nil {
		return err
	}
	f.Fault = short(r.Damage)
	err = f.ofSummary(&s)
	f.State = Stopped
	return err
}

// ofHeader takes what the header of a run says.
func (f *Facts) ofHeader(h *result.Header) {
	f.Started, f.Model, f.Workload = h.Started, short(h.Model), short(h.Workload)
	f.Simulated, f.Predicted = h.Simulated, h.Predicted
	f.Command, f.Invoked, f.Version = command(h.Command), command(h.Invoked), short(h.Version)
	f.Fingerprint, f.Requests = short(h.Fingerprint), max(0, h.Requests)
	if h.HasRate() {
		f.Rate = h.Rate
	}
	f.Limit = max(0, h.Limit)
	f.Host = short(cmp.Or(h.Fleet.String(), hostText(h.Host)))
	f.targets = strings.Join(h.Targets, " ")
	f.Load = short(loadText(h))
	var spec struct {
		GPUs     int               `json:"gpus"`
		Metadata map[string]string `json:"metadata"`
	}
	raw(h.Spec, &spec)
	f.GPUs, f.Build = max(0, spec.GPUs), short(build(spec.Metadata))
	if h.Imported == nil {
		return
	}
	f.Imported = short(h.Imported.Client)
	f.Engine, f.EngineVersion = short(h.Label(result.LabelEngine)), short(h.Label(result.LabelEngineVersion))
	f.Hardware, f.Label = short(h.Label(result.LabelHardware)), short(h.Label(result.LabelCase))
	f.Build = cmp.Or(f.Build, short(build(h.Imported.Labels)))
	if n, err := strconv.Atoi(h.Label(result.LabelGPUs)); err == nil && n > 0 {
		f.GPUs = n
	}
}

// buildLabels are the names under which labels tell of what was measured, best first.
var buildLabels = []string{"build", "commit", "git_commit", "git_sha", "sha", "revision"}

func build(labels map[string]string) string {
	for _, name := range buildLabels {
		if v := labels[name]; v != "" {
			return v
		}
	}
	return ""
}

func hostText(h result.Host) string {
	if h.OS == "" {
		return ""
	}
	return fmt.Sprintf("%s/%s, %d CPUs", h.OS, h.Arch, h.CPUs)
}

// loadText says in words what was sent.
func loadText(h *result.Header) string {
	var parts []string
	if h.Workload != "" {
		parts = append(parts, h.Workload)
	}
	if h.Requests > 0 {
		parts = append(parts, strconv.Itoa(h.Requests)+" requests")
	}
	if rate := h.RateText(); rate != "" && !h.Closed {
		parts = append(parts, rate)
	}
	if h.Limit > 0 {
		parts = append(parts, fmt.Sprintf("at most %d in flight", h.Limit))
	}
	return strings.Join(parts, ", ")
}

// mostFigures bounds those of one entry: the metric table with some percentiles has 200.
const mostFigures = 2000

// ofSummary takes verdict and figures of a run.
func (f *Facts) ofSummary(s *result.Summary) error {
	f.Simulated, f.Predicted = f.Simulated || s.Simulated, f.Predicted || s.Predicted
	if s.Partial {
		f.State = Partial
	}
	f.Verdict = short(string(s.Verdict.Status))
	for _, c := range s.Verdict.Checks {
		if c.Status == s.Verdict.Status && c.Status != result.Sound && len(f.Reasons) < mostReasons {
			f.Reasons = append(f.Reasons, clean(c.Name+": "+c.Text, mostReason))
		}
	}
	f.Duration = s.Figures["duration"]
	return f.addFigures(s)
}

// figureNames are those of the metric table, and families of which a summary may have any percentile.
// They are made once: result.Lookup looks for what was meant, which takes a thousand times as long.
var figureNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, m := range result.Metrics() {
		names[m.Name] = true
	}
	for _, f := range result.Families() {
		names["*_"+f+"_ms"] = true
	}
	return names
})

// isFigure reports whether the metric table has a figure of this name.
func isFigure(name string) bool {
	if figureNames()[name] {
		return true
	}
	percentile, rest, _ := strings.Cut(name, "_")
	digits, ok := strings.CutPrefix(percentile, "p")
	p, err := strconv.ParseFloat(digits, 64)
	return ok && figureNames()["*_"+rest] && err == nil && 0 <= p && p <= 100 && result.PercentileName(p) == percentile
}

// addFigures takes the figures that the metric table has.
func (f *Facts) addFigures(s *result.Summary) error {
	names := slices.Sorted(maps.Keys(s.Figures))
	for _, name := range names[:min(len(names), mostFigures)] {
		if !isFigure(name) {
			continue
		}
		x := Figure{Metric: name, Value: s.Figures[name]}
		if i, ok := s.Intervals[name]; ok {
			x.Low, x.High = new(i[0]), new(i[1])
		}
		f.Figures = append(f.Figures, x)
	}
	if n := len(names) - mostFigures; n > 0 {
		return fmt.Errorf("%s has %d figures more than the %d that are kept", summaryFile, n, mostFigures)
	}
	return nil
}

func (f *Facts) figure(name string, v float64) {
	f.Figures = append(f.Figures, Figure{Metric: name, Value: v})
}
