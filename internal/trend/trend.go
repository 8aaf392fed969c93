// Package trend gives the histories of what a store holds: which runs are of one configuration
// under one workload, how their figures went over time, where they changed, and whether the
// newest figure is old. The screen History and perflab history show the same of it.
//
//	lines, err := trend.List(ctx, store, trend.Options{Filter: "engine=vllm"})
//	line, err := trend.Find(ctx, store, lines[0].Key, trend.Options{By: lineage.Builds, Metrics: []string{"p99_ttft_ms"}})
//	for _, h := range line.Histories {
//		fmt.Println(h.Metric, h.Standing(), len(h.Changes))
//	}
//
// Invariants: what was measured, simulated, predicted, and measured by another client never
// share a line; a line's key follows from its runs alone, and stays when runs are added; no
// file of a run is opened.
//
// Deliberately absent: the rule of what a change is, which is package drift; pages and text.
package trend

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"perflab/internal/drift"
	"perflab/internal/field"
	"perflab/internal/lineage"
	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/store/scan"
)

// Index is what is asked for runs: a *store.Store.
type Index interface {
	List(ctx context.Context, q store.Query) (store.Page, error)
}

// Options say of what histories are made, and what is a change. The zero value is what to
// begin with.
type Options struct {
	Filter  string     // of runs, as in lists; "": all
	Metrics []string   // names of the metric table; empty: DefaultMetrics
	By      lineage.By // what a point is
	Least   float64    // the least relative change that is reported; 0: drift.DefaultLeast
	Level   float64    // chance of a change found in noise; 0: drift.DefaultLevel
	Persist int        // builds over which a change must last to be confirmed; 0: drift.DefaultPersist
	From    string     // a build or a day (2026-11-01) that histories begin with; "": the first
	To      string     // and end with; "": the newest
	Now     time.Time  // that ages are counted from; zero: now
}

// DefaultMetrics are followed where nobody names others.
func DefaultMetrics() []string {
	return []string{"output_throughput", "p99_ttft_ms", "mean_tpot_ms", "p99_e2el_ms"}
}

// check names what cannot be, and fills in what is not given.
func (o *Options) check() error {
	if len(o.Metrics) == 0 {
		o.Metrics = DefaultMetrics()
	}
	var names []string
	for _, name := range o.Metrics {
		m, err := result.Lookup(name)
		if err != nil {
			return field.Errorf("metric", "%s", err)
		}
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	o.Metrics = names
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	if err := o.drift().Validate(); err != nil {
		return field.Errorf("", "%s", err)
	}
	return nil
}

func (o Options) drift() drift.Options {
	return drift.Options{Least: o.Least, Level: o.Level, Persist: o.Persist}
}

// Line is a configuration under one workload, as one source measured it.
type Line struct {
	Key         string         `json:"key"` // names it
	Source      lineage.Source `json:"source"`
	Config      string         `json:"config"` // key of the configuration
	Fingerprint string         `json:"fingerprint,omitempty"`

	// What the newest run says of all of them.
	Model    string `json:"model,omitempty"`
	Engine   string `json:"engine,omitempty"`
	Version  string `json:"engine_version,omitempty"`
	Hardware string `json:"hardware,omitempty"`
	GPUs     int    `json:"gpus,omitzero"`
	Load     string `json:"load,omitempty"`
	Label    string `json:"label,omitempty"`
	Command  string `json:"command,omitempty"`

	Runs   int       `json:"runs"`
	Voided int       `json:"void"`   // of them
	Builds int       `json:"builds"` // that runs name
	First  time.Time `json:"first,omitzero"`
	Newest time.Time `json:"newest,omitzero"`

	Histories []History `json:"histories"`

	Entries []store.Entry `json:"-"` // in order of time
}

// Standing is the most urgent of its histories'.
func (l Line) Standing() Standing {
	s := TooFew
	for _, h := range l.Histories {
		if one := h.Standing(); one.urgency() > s.urgency() {
			s = one
		}
	}
	return s
}

// Stale reports whether the newest point of a history is unusually old.
func (l Line) Stale() bool {
	return slices.ContainsFunc(l.Histories, func(h History) bool { return h.Age.Stale })
}

// Entry is the run of an ID.
func (l Line) Entry(id string) (store.Entry, bool) {
	i := slices.IndexFunc(l.Entries, func(e store.Entry) bool { return e.ID == id })
	if i < 0 {
		return store.Entry{}, false
	}
	return l.Entries[i], true
}

// List gives the lines of the runs that the filter holds for, those that need somebody first.
// An error of the filter is a *filter.Error, of another option a *field.Error.
func List(ctx context.Context, s Index, o Options) ([]Line, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	entries, err := runs(ctx, s, o)
	if err != nil {
		return nil, err
	}
	lines := []Line{}
	for _, group := range grouped(entries) {
		l, err := line(group, o)
		if err != nil {
			return nil, err
		}
		lines = append(lines, l)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	slices.SortStableFunc(lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.Standing().urgency(), a.Standing().urgency()), b.Newest.Compare(a.Newest), cmp.Compare(a.Key, b.Key))
	})
	return lines, nil
}

// NotFoundError says that there is no line of a key.
type NotFoundError struct{ Key string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no history %q among the runs that the filter holds for: look at the list of histories", e.Key)
}

// Find gives the line of a key, or of the beginning of one, or that of a run with this ID.
func Find(ctx context.Context, s Index, key string, o Options) (Line, error) {
	if err := o.check(); err != nil {
		return Line{}, err
	}
	entries, err := runs(ctx, s, o)
	if err != nil {
		return Line{}, err
	}
	groups := grouped(entries)
	if group, ok := groups[key]; ok {
		return between(group, o)
	}
	var found []string
	for k, group := range groups {
		of := func(e store.Entry) bool { return strings.HasPrefix(e.ID, key) }
		if len(key) >= leastKey && (strings.HasPrefix(k, key) || slices.ContainsFunc(group, of)) {
			found = append(found, k)
		}
	}
	switch slices.Sort(found); len(found) {
	case 0:
		return Line{}, &NotFoundError{key}
	case 1:
		return between(groups[found[0]], o)
	}
	return Line{}, field.Errorf("key", "%q may be %s or %s: give more of it", key, found[0], found[1])
}

// between makes a line of the runs from one build or day to another.
func between(entries []store.Entry, o Options) (Line, error) {
	from, to := 0, len(entries)
	if o.From != "" {
		i, err := place(entries, "from", o.From)
		if err != nil {
			return Line{}, err
		}
		from = i[0]
	}
	if o.To != "" {
		i, err := place(entries, "to", o.To)
		if err != nil {
			return Line{}, err
		}
		to = i[1]
	}
	if from >= to {
		return Line{}, field.Errorf("from", "there is no run from %s to %s: give the earlier one first", cmp.Or(o.From, "the first"), cmp.Or(o.To, "the newest"))
	}
	return line(entries[from:to], o)
}

// place is where the runs of a build, or of a day, begin and end.
func place(entries []store.Entry, path, what string) (at [2]int, err error) {
	if day, err := time.Parse(time.DateOnly, what); err == nil {
		before := func(t time.Time) int {
			n := slices.IndexFunc(entries, func(e store.Entry) bool { return !e.Started.Before(t) })
			if n < 0 {
				return len(entries)
			}
			return n
		}
		return [2]int{before(day), before(day.AddDate(0, 0, 1))}, nil
	}
	is := func(e store.Entry) bool { return e.Build == what }
	if !slices.ContainsFunc(entries, is) && len(what) >= leastKey { // the beginning of a commit
		is = func(e store.Entry) bool { return strings.HasPrefix(e.Build, what) }
	}
	if at[0] = slices.IndexFunc(entries, is); at[0] < 0 {
		return at, field.Errorf(path, "no run names the build %q: give one of the builds of the history, or a day such as 2026-11-01", what)
	}
	for i, e := range entries {
		if is(e) {
			at[1] = i + 1
		}
	}
	return at, nil
}

// leastKey is how much of a key names a line.
const leastKey = 4

// runs are the runs that may have a history, with their figures.
func runs(ctx context.Context, s Index, o Options) (all []store.Entry, err error) {
	for {
		p, err := s.List(ctx, store.Query{Filter: strings.TrimSpace(o.Filter + " kind=run"), Order: "started,id", Limit: store.MostPage, Offset: len(all), Figures: o.Metrics, Now: o.Now})
		if err != nil {
			return nil, err
		}
		all = append(all, p.Entries...)
		if len(p.Entries) == 0 || len(all) >= p.Total {
			break
		}
	}
	// A run that goes on has no figures yet, and one without a configuration is like no other.
	return slices.DeleteFunc(all, func(e store.Entry) bool { return e.State == scan.Running || e.Config == "" }), nil
}

// sourceOf is who made the figures of a run.
func sourceOf(e store.Entry) lineage.Source {
	return lineage.Source{Simulated: e.Simulated, Predicted: e.Predicted, Client: e.Imported}
}

// KeyOf is the key of the line that a run belongs to; "" where it has none.
func KeyOf(e store.Entry) string {
	if e.Config == "" {
		return ""
	}
	load := e.Fingerprint
	if load == "" {
		load = "load " + e.Load
	}
	sum := sha256.New()
	s := sourceOf(e)
	fmt.Fprintf(sum, "%q %q %v %d %t %t %q", e.Config, load, e.Rate, e.Limit, s.Simulated, s.Predicted, s.Client)
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

func grouped(entries []store.Entry) map[string][]store.Entry {
	groups := map[string][]store.Entry{}
	for _, e := range entries {
		key := KeyOf(e)
		groups[key] = append(groups[key], e)
	}
	return groups
}

// line makes a line of its runs, the oldest first.
func line(entries []store.Entry, o Options) (Line, error) {
	last := entries[len(entries)-1]
	l := Line{
		Key: KeyOf(last), Source: sourceOf(last), Config: last.Config, Fingerprint: last.Fingerprint, Model: last.Model, Engine: last.Engine,
		Version: last.EngineVersion, Hardware: last.Hardware, GPUs: last.GPUs, Load: last.Load, Label: last.Label, Command: last.Command,
		Runs: len(entries), Newest: last.Started, Entries: entries,
	}
	builds := map[string]bool{}
	var all []lineage.Run
	for _, e := range entries {
		if l.First.IsZero() {
			l.First = e.Started
		}
		if e.Verdict == string(result.Voided) {
			l.Voided++
		}
		if e.Build != "" {
			builds[e.Build] = true
		}
		all = append(all, RunOf(e))
	}
	l.Builds = len(builds)
	histories, err := lineage.Of(all, o.Metrics, o.By)
	if err != nil {
		return l, err
	}
	for _, h := range histories {
		found, err := h.Find(o.drift())
		if err != nil {
			return l, err
		}
		l.Histories = append(l.Histories, historyOf(h, found, drift.Age(h.Values(), o.Now)))
	}
	return l, nil
}

// RunOf is what a history needs of an entry.
func RunOf(e store.Entry) lineage.Run {
	r := lineage.Run{
		ID: e.ID, Started: e.Started, Source: sourceOf(e), Status: result.Status(e.Verdict), Build: e.Build, Launch: launchOf(e),
		Figures: map[string]float64{}, Intervals: map[string][2]float64{},
	}
	for name, f := range e.Figures {
		r.Figures[name] = f.Value
		if f.Low != nil && f.High != nil {
			r.Intervals[name] = [2]float64{*f.Low, *f.High}
		}
	}
	return r
}

// launchOf names the start of the server: a study starts one for each trial, and the runs of a
// series go to one that is up. A run that lies alone is a launch of its own.
func launchOf(e store.Entry) string {
	switch {
	case e.Parent == "" || e.Imported != "":
		return ""
	case e.Trial > 0:
		return fmt.Sprintf("%s, trial %d", e.Parent, e.Trial)
	}
	return e.Parent
}
