package studies

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/outcome"
	"perflab/internal/redact"
	"perflab/internal/report/finding"
	"perflab/internal/report/progress"
	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/web/guard"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
)

// studyView is what the page of a study shows.
type studyView struct {
	Base, Key string // of addresses
	ID        string // of its entry; "": the index does not have it yet
	Name      string
	Title     string
	State     string // queued, starting, running, stopped, finished
	Dir       string
	Simulated bool
	Confirmed string // verdict as a tag; "": nothing is concluded
	Facts     []fact
	Fault     string
	Lead      string // the conclusion, or what leads so far
	Why       string // it stopped, or waits
	Said      string // by a launch that ended before its study did
	Tiles     []tile
	SLOs      []slo
	Open      []openTrial
	Events    string // the address of what lives; "": nothing does
	LastEvent string
	Log       string
	LogName   string
	Charts    []chart
	Race      *raceView
	Stages    []stage
	Plots     []plotView
	Trials    trialTable
	Contents  template.HTML // of the report
	Report    template.HTML
	Act       actions
	Tags      []string
	Note      string
	Began     time.Time
}

type fact struct{ Name, Value string }

// tile is one of the figures that a reader looks for first.
type tile struct {
	Name, Value, Small string
	Live               string // its name in events
	Class              string // gain, loss
	Progress           *float64
}

// slo is a constraint, and what became of it.
type slo struct {
	Text, State string // met, missed, open
	Sides       []string
}

// openTrial is a launch under way.
type openTrial struct {
	Number                     int
	Of, Machine, Label, Why    string
	Doing, Load                string
	Done                       *float64
	DoingKey, LoadKey, DoneKey string
}

// chart is a plot of the load under way, with what it says where there is no script.
type chart struct{ Name, Title, URL, Plain string }

// plotView is a plot as it stands in a page.
type plotView struct{ Wide, Phone template.HTML }

// view is what a study's page shows of a scene.
func (s *screen) view(r *http.Request, sub subject, now *scene) studyView {
	who := guard.From(r.Context())
	v := studyView{Base: who.Base, Key: sub.Key, Fault: now.fault, Name: "study"}
	if who.Base == "" { // a link tells nothing of the machine
		v.Dir = sub.Dir
	}
	v.heading(sub, now)
	v.facts(sub, now)
	v.lead(now)
	v.Tiles, v.SLOs = tiles(now), slos(now.study)
	v.Open = openTrials(now)
	v.State = stateOf(sub, now)
	if sub.Launch != nil && v.State == string(launch.Queued) {
		v.Why = sub.Launch.Waits
	}
	if sub.Launch != nil {
		s.launchSaid(&v, sub.Launch)
	}
	if v.State != string(outcome.Finished) {
		v.Events = fmt.Sprintf("%s/study/%s/events?at=%s", v.Base, v.Key, stateAnd(v.State, now.shape))
	}
	v.log(now)
	v.Charts = charts(v.Base+"/study/"+v.Key, now)
	if now.study != nil {
		v.Race, v.Stages = raceOf(now.study, now.finished()), stagesOf(now.study)
		if v.Race == nil && !now.finished() {
			v.Plots = studyPlots(*now.study)
		}
	}
	v.Trials = s.trials(r, sub, now)
	v.Act = actionsOf(who, s, sub, v.State, now)
	return v
}

// mostSaid is how much of what perflab said is shown, in bytes.
const mostSaid = 4 << 10

// launchSaid adds how the launch of a study ended before the study did, and what it said.
func (s *screen) launchSaid(v *studyView, l *launch.Launch) {
	if l.Fault != "" {
		v.Fault = joinSentences(v.Fault, l.Fault)
	}
	a := l.Last()
	if a == nil || a.Exit == nil || v.State != string(outcome.Stopped) {
		return
	}
	v.Why = joinSentences(v.Why, "its process "+a.Exit.Meaning)
	if c, err := s.Queue.Tail(l.ID, launch.Stderr, -mostSaid); err == nil {
		v.Said = redact.Text(redact.Printable(c.Text))
	}
}

// heading is what the study is called, and how it is marked.
func (v *studyView) heading(sub subject, now *scene) {
	if l := sub.Launch; l != nil {
		v.Name, v.Simulated, v.Began = l.Name, l.Simulated, l.Queued
	}
	if u := now.standing.Study; u != nil {
		v.Name, v.Simulated, v.Began = u.Name, v.Simulated || u.Simulated, u.Started
	}
	if f := now.study; f != nil {
		v.Name, v.Title, v.Simulated = cmp.Or(f.Name, v.Name), f.Title, v.Simulated || f.Simulated || f.Predicted
		if !f.Started.IsZero() {
			v.Began = f.Started
		}
	}
	if e := sub.Entry; e != nil {
		v.ID, v.Tags, v.Note, v.Simulated = e.ID, e.Marks.Tags, e.Marks.Note, v.Simulated || e.Simulated || e.Predicted
		v.Name = cmp.Or(e.Marks.Name, v.Name, e.Name)
	}
	v.Title = cmp.Or(v.Title, v.Name)
}

// facts are what was measured on what, and for whom.
func (v *studyView) facts(sub subject, now *scene) {
	add := func(name, value string) {
		if value != "" {
			v.Facts = append(v.Facts, fact{name, value})
		}
	}
	if f := now.study; f != nil {
		add("Model", f.Model)
		add("Hardware", f.Hardware)
		add("Engines", engines(f.Engines))
		add("Objective", cmp.Or(f.Objective.Goal, f.Objective.Metric))
		add("Strategy", f.Strategy)
	}
	if l := sub.Launch; l != nil {
		add("Launched by", l.Who)
		add("On", l.Place.Text())
	}
	if v.Began.IsZero() {
		return
	}
	add("Began", page.Date(v.Began)+" UTC, "+page.Age(time.Now(), v.Began))
}

func engines(all []outcome.Software) string {
	var out []string
	for _, e := range all {
		out = append(out, strings.TrimSpace(cmp.Or(e.Title, e.Name)+" "+e.Version))
	}
	return strings.Join(out, ", ")
}

// lead is what the study has come to.
func (v *studyView) lead(now *scene) {
	u, f := now.standing.Study, now.study
	switch {
	case now.finished() && f != nil:
		v.Lead = f.Verdict
		if f.Recommended != nil {
			v.Confirmed = map[bool]string{true: "confirmed", false: "unconfirmed"}[f.Confirmed]
		}
	case u != nil && u.Leader != nil:
		v.Lead = page.Capital(progress.Leader(u.Leader)) + "."
	case u != nil && u.Ranked > 0 && len(u.Trials) == 0:
		v.Lead = fmt.Sprintf("Configurations are being ranked by prediction (SIMULATED) before the first launch: %s so far.", page.Plural(u.Ranked, "prediction"))
	case f != nil && len(f.Trials) > 0 && f.Verdict != "":
		v.Lead = "So far, not confirmed: " + f.Verdict
	default:
		v.Lead = "Nothing has been measured yet."
	}
	if u != nil && !now.running() && u.Stopped != "" {
		v.Why = "It stopped on " + page.Date(u.At) + " UTC: " + u.Stopped
	}
}

func joinSentences(a, b string) string { return strings.Trim(a+"; "+b, "; ") }

// stateOf is the state of the study, and of its launch before there is a study.
func stateOf(sub subject, now *scene) string {
	l := sub.Launch
	switch {
	case l != nil && l.State == launch.Queued:
		return string(launch.Queued)
	case now.missing && l != nil && l.State == launch.Running:
		return "starting"
	case now.missing:
		return string(outcome.Stopped)
	}
	return string(now.standing.State)
}

// stateAnd is what the page was drawn of, for the stream to tell whether that is still so.
func stateAnd(state, shape string) string { return state + "." + shape }

// tiles are the figures that a reader looks for first.
func tiles(now *scene) []tile {
	u, f := now.standing.Study, now.study
	if now.finished() {
		if f == nil {
			return nil
		}
		return ended(f)
	}
	set := liveTexts(now)
	text := func(name string) string { s, _ := set[name].(string); return s }
	lead := tile{Name: "What leads, over the baseline", Value: cmp.Or(text("ratio"), page.None), Live: "ratio", Small: "95 % interval in brackets; not confirmed"}
	if u != nil && u.Leader != nil && u.Leader.Confirming {
		lead.Small = "95 % interval in brackets; by launches of the confirmation so far"
	}
	out := []tile{lead}
	trials := tile{Name: "Trials", Value: cmp.Or(text("trials"), page.None), Live: "trials"}
	if share, ok := set["share"].(float64); ok {
		trials.Progress = &share
	}
	out = append(out, trials)
	if u != nil && u.BudgetS > 0 {
		out = append(out, tile{Name: "Budget of time", Value: progress.Brief(seconds(u.SpentS)) + " of " + progress.Brief(seconds(u.BudgetS)), Small: "by trials that have ended"})
	}
	if f != nil && f.Ledger.GPUSeconds > 0 && !f.Predicted {
		out = append(out, gpuHours(f))
	}
	if now.running() {
		out = append(out, tile{Name: "Time left, at most", Value: cmp.Or(text("left"), page.None), Live: "left", Small: "by what trials took so far"})
	}
	return out
}

// ended are the tiles of a study that has come to its end: the report has its figures, these what it cost.
func ended(f *outcome.Study) []tile {
	out := []tile{{Name: "Trials", Value: strconv.Itoa(len(f.Trials))}}
	if l := f.Ledger; l.Launches > 0 && !f.Predicted {
		out = append(out, tile{Name: "Launches", Value: strconv.Itoa(l.Launches)})
	}
	if !f.Ended.IsZero() && f.Ended.After(f.Started) {
		out = append(out, tile{Name: "Took", Value: progress.Brief(f.Ended.Sub(f.Started))})
	}
	if f.Ledger.GPUSeconds > 0 && !f.Predicted { // of which nothing was launched
		out = append(out, gpuHours(f))
	}
	return out
}

// gpuHours are those that launches had allocated.
func gpuHours(f *outcome.Study) tile {
	return tile{Name: "GPU-hours", Value: strconv.FormatFloat(f.Ledger.GPUSeconds/3600, 'g', 3, 64), Small: "allocated to launches"}
}

// liveTexts are the texts of a page that change while a study runs, by their names in events. What is
// not known is absent.
func liveTexts(now *scene) map[string]any {
	out := map[string]any{}
	u := now.standing.Study
	if u == nil {
		return out
	}
	out["trials"] = strconv.Itoa(u.Ended)
	if u.Most > 0 {
		out["trials"] = fmt.Sprintf("%d of at most %d", u.Ended, max(u.Most, u.Ended))
		out["share"] = float64(u.Ended) / float64(max(u.Most, u.Ended))
	} else if u.BudgetS > 0 {
		out["share"] = min(1, u.SpentS/u.BudgetS)
	}
	if u.LeftS != nil {
		out["left"] = "~" + progress.Brief(seconds(*u.LeftS))
	}
	if l := u.Leader; l != nil {
		if l.Ratio != nil {
			out["ratio"] = finding.Ratio(*l.Ratio, l.Higher)
		}
	}
	for _, t := range openTrials(now) {
		out[t.DoingKey], out[t.LoadKey] = t.Doing, t.Load
		if t.Done != nil {
			out[t.DoneKey] = *t.Done
		}
	}
	for name, text := range latest(now.readings) {
		out["chart-"+name] = text
	}
	return out
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// openTrials are the launches under way; of a study that was stopped, those that it was at.
func openTrials(now *scene) []openTrial {
	u := now.standing.Study
	var all []outcome.UnderwayTrial
	most := 0
	if u != nil {
		all, most = u.Trials, u.Most
	} else {
		all = now.standing.Open
	}
	var out []openTrial
	for _, t := range all {
		o := openTrial{Number: t.Trial, Machine: t.Machine, Label: t.Label, Why: cmp.Or(t.Why, t.Stage)}
		if most > 0 {
			o.Of = fmt.Sprintf("of at most %d", max(most, t.Trial))
		}
		o.DoingKey, o.LoadKey, o.DoneKey = fmt.Sprintf("doing-%d", t.Trial), fmt.Sprintf("load-%d", t.Trial), fmt.Sprintf("done-%d", t.Trial)
		o.Doing = doing(u, t)
		if l := t.Load; l != nil {
			o.Load = loadText(*l)
			if l.Planned > 0 {
				o.Done = new(min(1, float64(l.Done)/float64(l.Planned)))
			}
		}
		out = append(out, o)
	}
	return out
}

// doing is what is being done with a trial.
func doing(u *outcome.Underway, t outcome.UnderwayTrial) string {
	parts := []string{t.Workload, t.Phase}
	if u != nil && !t.Since.IsZero() && t.Phase != "" {
		if d := u.At.Sub(t.Since); d >= time.Second {
			parts = append(parts, "for "+progress.Brief(d.Truncate(time.Second)))
		}
	}
	parts = append(parts, t.Detail)
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// loadText is how far a load is, and how fast.
func loadText(l outcome.UnderwayLoad) string {
	parts := []string{page.Plural(l.Done, "request") + " done"}
	if l.Planned > 0 {
		parts[0] = fmt.Sprintf("%d of %s", l.Done, page.Plural(l.Planned, "request"))
	}
	if l.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", l.Failed))
	}
	if l.Seconds > 0 {
		parts = append(parts, fmt.Sprintf("%.1f req/s", float64(l.Done)/l.Seconds), fmt.Sprintf("%.0f output tok/s", float64(l.Tokens)/l.Seconds))
	}
	if left := progress.Left(l.Done, l.Planned, seconds(l.Seconds)); left != "" {
		parts = append(parts, left)
	}
	return strings.Join(append(parts, fmt.Sprintf("%d in flight", l.InFlight)), ", ")
}

// slos are the constraints, with what the baseline and what leads make of them.
func slos(f *outcome.Study) []slo {
	if f == nil {
		return nil
	}
	var out []slo
	for _, text := range f.Objective.SLOs {
		x := slo{Text: text, State: "open"}
		for _, side := range []struct {
			name string
			pick *outcome.Pick
		}{{"baseline", f.Baseline}, {leads(f), f.Recommended}} {
			if side.pick == nil {
				continue
			}
			for _, j := range side.pick.SLOs {
				if j.SLO != text {
					continue
				}
				x.State = map[bool]string{true: "met", false: "missed"}[j.Met] // the last: what leads
				x.Sides = append(x.Sides, side.name+": "+cmp.Or(strings.TrimPrefix(j.Why, text+": "), x.State))
			}
		}
		out = append(out, x)
	}
	return out
}

// log is the end of the engine's log as it stands in the page.
func (v *studyView) log(now *scene) {
	var b strings.Builder
	for _, l := range now.log {
		b.WriteString(l.text + "\n")
	}
	v.Log, v.LogName = b.String(), now.logName
	v.LastEvent = position(now)
}

// position says what a page has of the log: where it ends, and which.
func position(now *scene) string {
	if len(now.log) == 0 {
		return ""
	}
	return strconv.FormatInt(now.log[len(now.log)-1].end, 10) + ":" + now.logName
}

// metrics are those of the trials' table: the objective, the bounds, and what a reader looks for beside
// them.
func metrics(f *outcome.Study) []result.Metric {
	names := []string{f.Objective.Metric}
	for _, text := range f.Objective.SLOs {
		if end := strings.IndexAny(text, " <>="); end > 0 {
			names = append(names, text[:end])
		}
	}
	names = append(names, "output_throughput", "p99_ttft_ms", "mean_tpot_ms")
	var out []result.Metric
	for _, n := range names {
		m, err := result.Lookup(n)
		if err == nil && !slices.ContainsFunc(out, func(k result.Metric) bool { return k.Name == m.Name }) {
			out = append(out, m)
		}
	}
	return out[:min(len(out), 6)]
}

// parts are the IDs of the runs that the index has of a study, by their directories below it.
func (s *screen) parts(r *http.Request, sub subject) map[string]store.Entry {
	out := map[string]store.Entry{}
	if sub.Entry == nil {
		return out
	}
	all, err := s.Store.Parts(r.Context(), sub.Entry.ID)
	if err != nil {
		return out // then no run has a link
	}
	for _, e := range all {
		for _, p := range e.Places {
			if dir := p.Dir(); dir != "" {
				out[relative(sub.Dir, dir)] = e
			}
		}
	}
	return out
}
