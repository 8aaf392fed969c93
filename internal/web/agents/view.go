package agents

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/bench"
	"perflab/internal/fleet"
	"perflab/internal/fleet/order"
	"perflab/internal/generator"
	"perflab/internal/web/page"
)

// view is what the page shows. What changes all the time is not in its JSON, by which a page knows
// that it is to be drawn anew.
type view struct {
	Fault string
	Count string // of the agents, by what they do
	Idle  string // what the idle ones send together
	Blind string // those of them without a self-check
	Loads []load
	Kept  []kept
	Rows  []row
	Away  []away

	Outside bool // nobody is invited from here
}

// load is a load that agents are at.
type load struct {
	Epoch     uint64
	Who       string
	What      string
	Model     string
	Simulated bool
	Left      string // how many of its parts are still sent, where those are not all
	Parts     []part
	Pace      pace `json:"-"`
}

// part is an agent's part of a load.
type part struct {
	ID, Name string
	Shard    string
	State    string
	Pace     pace `json:"-"`
}

// kept is a load whose calls agents keep.
type kept struct {
	Epoch     uint64
	Who       string
	What      string
	Simulated bool
	Parts     []keptPart
}

// keptPart is what one agent keeps.
type keptPart struct{ Name, Shard, Ended, Calls, Size, Until string }

// pace is how far a part or a load is, as texts.
type pace struct{ Sent, InFlight, Rate string }

// row is an agent that is there.
type row struct {
	ID, Name      string
	Version       string
	Other, Member bool
	Work          string // "": it sends nothing
	Held          string // by whom, for a study; "": by nobody
	Runs          []string
	Kept          string   // calls that nobody took; "": none
	Machine       []string // processors, memory, system
	GPUs          []string
	Engines       []string
	Links         []string
	Labels        []string
	Streams       string // that it can hold at once; "": not known
	Check         check
	From          string
	Heard         string `json:"-"`
}

// check is what a self check found, as texts; zero: there was none.
type check struct{ Events, Error, When string }

// away is a member that is not there.
type away struct {
	ID, Name, Version string
	Joined, Heard     string
	Site, Connected   bool
	Member            bool
}

// Bounds of what an agent may say of itself.
const (
	mostText  = 100 // characters of a text
	mostLabel = 40  // and of a label
	mostMany  = 16  // texts of a kind
)

// clip cuts a text of somebody else to a length.
func clip(s string) string { return clipTo(s, mostText) }

func clipTo(s string, most int) string {
	s = strings.TrimSpace(s)
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "..."
		}
	}
	return s
}

// several cuts a list of texts, and says how many more there are.
func several(all []string) []string {
	out := make([]string, 0, min(len(all), mostMany+1))
	for i, s := range all {
		if i == mostMany {
			return append(out, fmt.Sprintf("and %d more", len(all)-i))
		}
		out = append(out, clip(s))
	}
	return out
}

// newScene is what of a fleet is shown.
func newScene(st fleet.Standing, err error, now time.Time) *scene {
	s := &scene{view: &view{Outside: st.Outside}, cells: map[string]string{}}
	if err != nil {
		s.view.Fault = err.Error()
	}
	idle, held := 0, 0
	for _, a := range st.Agents {
		switch {
		case a.Free():
			idle++
		case a.Idle():
			held++
		}
		r := rowOf(a, now)
		s.view.Rows = append(s.view.Rows, r)
		s.cells["heard."+a.ID] = r.Heard
	}
	for _, l := range st.Loads {
		s.view.Loads = append(s.view.Loads, s.load(l))
	}
	for _, k := range st.Kept {
		s.view.Kept = append(s.view.Kept, keptOf(k))
	}
	for _, a := range st.Away {
		s.view.Away = append(s.view.Away, awayOf(a, now))
	}
	if n := len(st.Agents); n > 0 {
		s.view.Count = fmt.Sprintf("%s: %d idle, %d at work", page.Plural(n, "agent"), idle, n-idle-held)
		if held > 0 {
			s.view.Count += fmt.Sprintf(", %d held by studies", held)
		}
		s.view.Count += "."
	}
	s.view.Idle, s.view.Blind = together(st.Idle)
	b, err := json.Marshal(s.view)
	if err != nil {
		panic("agents: " + err.Error()) // all of it is text
	}
	sum := sha256.Sum256(b)
	s.shape = hex.EncodeToString(sum[:8])
	return s
}

// together says what idle agents send together, and whose self-checks are missing.
func together(t bench.Together) (text, unchecked string) {
	of := func(n int) string {
		if n == t.Agents {
			return ""
		}
		return fmt.Sprintf(" (%d of them)", n)
	}
	var parts []string
	if t.Connections > 0 {
		parts = append(parts, "hold "+grouped(float64(t.Connections))+" streams at once"+of(t.Holding))
	}
	if t.Events > 0 {
		parts = append(parts, "take in "+grouped(t.Events)+" tokens/s"+of(t.Taking))
	}
	if len(t.Unchecked) > 0 {
		unchecked = strings.Join(several(t.Unchecked), ", ")
	}
	if len(parts) == 0 {
		return "", unchecked
	}
	who := "The idle ones can together"
	if t.Agents == 1 {
		who = "The idle one can"
	}
	return who + " " + strings.Join(parts, " and ") + ".", unchecked
}

// load is a load as it is shown; its figures become cells.
func (s *scene) load(u fleet.Underway) load {
	key := strconv.FormatUint(u.Epoch, 10)
	l := load{Epoch: u.Epoch, Who: clip(u.Who), What: clipTo(u.Load, 2*mostText), Model: clip(u.Model), Simulated: u.Simulated, Pace: s.pace("all."+key, u.Pace)}
	if len(u.Parts) < u.Shards {
		l.Left = fmt.Sprintf("%d of its %d parts go on; the others have ended, or their agents are lost.", len(u.Parts), u.Shards)
	}
	for _, p := range u.Parts {
		l.Parts = append(l.Parts, part{
			ID: p.Agent, Name: cmp.Or(clip(p.Name), p.Agent), Shard: fmt.Sprintf("%d of %d", p.Shard+1, u.Shards), State: clip(p.State),
			Pace: s.pace("part."+p.Agent, p.Pace),
		})
	}
	return l
}

// keptOf is a load whose calls nobody took, as it is shown.
func keptOf(k fleet.Kept) kept {
	out := kept{Epoch: k.Epoch, Who: clip(k.Who), What: clipTo(k.What, 2*mostText), Simulated: k.Simulated}
	for _, p := range k.Parts {
		shard := page.None
		if p.Of > 0 {
			shard = fmt.Sprintf("%d of %d", p.Shard+1, p.Of)
		}
		out.Parts = append(out.Parts, keptPart{
			Name: cmp.Or(clip(p.Name), p.ID), Shard: shard, Ended: page.Date(p.Ended), Calls: grouped(float64(p.Calls)),
			Size: strconv.FormatFloat(float64(p.Bytes)/(1<<20), 'f', 1, 64), Until: page.Date(p.Until),
		})
	}
	return out
}

// keeps says what an agent keeps that nobody took.
func keeps(all []order.KeptLoad) string {
	calls := 0
	for _, k := range all {
		calls += k.Calls
	}
	switch len(all) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("keeps %s of load %d that nobody took", page.Plural(calls, "call"), all[0].Epoch)
	}
	return fmt.Sprintf("keeps %s of %d loads that nobody took", page.Plural(calls, "call"), len(all))
}

// pace writes figures, and keeps them under the names of their cells.
func (s *scene) pace(key string, p *fleet.Pace) pace {
	out := pace{page.None, page.None, page.None}
	if p != nil {
		out.Sent, out.InFlight = grouped(float64(p.Sent)), grouped(float64(p.InFlight))
		if p.TokensPerS != nil {
			out.Rate = grouped(*p.TokensPerS)
		}
	}
	s.cells[key+".sent"], s.cells[key+".inflight"], s.cells[key+".rate"] = out.Sent, out.InFlight, out.Rate
	return out
}

func rowOf(a fleet.Present, now time.Time) row {
	f := a.Facts
	r := row{
		ID: a.ID, Name: cmp.Or(clip(f.Name), a.ID), Version: clip(f.Version), Other: a.Other, Member: a.Member, Kept: keeps(f.Kept), From: a.From,
		Machine: machine(f), GPUs: gpus(f.GPUs), Engines: several(f.Engines), Links: links(f.Links), Labels: labels(f.Labels),
		Check: checked(f.SelfCheck, now), Heard: heard(now.Sub(a.Heard)),
	}
	if f.Streams > 0 {
		r.Streams = grouped(float64(f.Streams)) + " streams"
	}
	if h := f.Held; h != nil {
		r.Held = clipTo(a.HeldText(), 2*mostText) + ", since " + page.Date(h.Since)
		for _, e := range h.Runs {
			r.Runs = append(r.Runs, fmt.Sprintf("%s (%s): %s", clip(e.Name), clip(e.Kind), clip(e.Command)))
		}
	}
	if a.Idle() {
		return r
	}
	r.Work = fmt.Sprintf("load %d", f.Epoch)
	switch w := f.Work; {
	case w != nil:
		r.Work += fmt.Sprintf(", shard %d of %d: %s", w.Shard+1, w.Of, clip(w.State))
		if w.Who != "" {
			r.Work += ", for " + clip(w.Who)
		}
	case f.Doing != "":
		r.Work += ": " + clip(f.Doing)
	}
	return r
}

// heard says how long ago an agent that is there was heard.
func heard(ago time.Duration) string {
	if n := int(ago / time.Second); n >= 2 {
		return page.Plural(n, "second") + " ago"
	}
	return "now"
}

// machine is what a machine is.
func machine(f order.Facts) (all []string) {
	if f.Host.CPUs > 0 {
		all = append(all, page.Plural(f.Host.CPUs, "CPU"))
	}
	if f.Memory > 0 {
		all = append(all, gib(f.Memory))
	}
	if f.Host.OS != "" {
		all = append(all, clip(strings.TrimSuffix(f.Host.OS+"/"+f.Host.Arch, "/")))
	}
	return all
}

func gib(n int64) string { return strconv.FormatFloat(float64(n)/(1<<30), 'f', 0, 64) + " GiB" }

// gpus counts those that are alike.
func gpus(all []order.GPU) []string {
	var kinds []order.GPU
	n := map[order.GPU]int{}
	for _, g := range all {
		if n[g]++; n[g] == 1 {
			kinds = append(kinds, g)
		}
	}
	var out []string
	for _, g := range kinds {
		text := fmt.Sprintf("%d x %s", n[g], cmp.Or(clip(g.Name), "an accelerator without a name"))
		if g.Memory > 0 {
			text += ", " + gib(g.Memory)
		}
		out = append(out, text)
	}
	return several(out)
}

func links(all []order.Link) (out []string) {
	for _, l := range all {
		text := clip(l.Name)
		switch {
		case l.Mbps >= 1000:
			text += " " + strconv.FormatFloat(float64(l.Mbps)/1000, 'f', -1, 64) + " Gbit/s"
		case l.Mbps > 0:
			text += fmt.Sprintf(" %d Mbit/s", l.Mbps)
		}
		out = append(out, text)
	}
	return several(out)
}

func labels(all map[string]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, clipTo(name+"="+all[name], mostLabel))
	}
	return several(out)
}

func checked(c *generator.SelfCheck, now time.Time) check {
	if c == nil {
		return check{}
	}
	k := check{Error: "mean TTFT off by " + strconv.FormatFloat(c.TTFTError, 'f', 3, 64) + " ms"}
	if !c.Taken.IsZero() {
		k.When = ", checked " + page.Age(now, c.Taken)
	}
	if c.MaxEvents > 0 {
		k.Events = grouped(c.MaxEvents) + " events/s"
	}
	return k
}

func awayOf(a fleet.Away, now time.Time) away {
	out := away{ID: a.ID, Name: cmp.Or(clip(a.Name), a.ID), Version: clip(a.Version), Joined: page.None, Heard: page.None, Site: a.Site, Connected: a.Connected, Member: a.Member}
	if a.Joined != nil {
		out.Joined = page.Date(*a.Joined)
	}
	if a.Heard != nil {
		out.Heard = page.Age(now, *a.Heard)
	}
	return out
}

// grouped writes 12345 as 12,345.
func grouped(x float64) string {
	s := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
