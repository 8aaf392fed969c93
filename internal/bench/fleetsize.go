package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// Need is what a load asks of those who send it, as far as that is known before it is sent.
type Need struct {
	InFlight int     // requests at once for certain; of an open loop more, where the server takes long
	Events   float64 // tokens/s that come back on average, if the server keeps up with the rate; 0: the server decides
	Parts    int     // agents that can have a part of it at most; 0: any number
}

// NeedOf is what a workload asks for.
func NeedOf(w *workload.Workload) Need {
	n := Need{InFlight: whole(w).atOnce(), Parts: w.MostShards()}
	if t := w.Totals(); w.Until() == 0 && t.Span > 0 {
		n.Events = float64(t.Output) / t.Span.Seconds()
	}
	return n
}

// Able is what one agent can send.
type Able struct {
	Name        string  `json:"name"`
	Connections int     `json:"connections,omitzero"`      // that it can hold at once; 0: not known
	Limit       string  `json:"limit,omitempty"`           // what sets that
	MaxEvents   float64 `json:"max_events_per_s,omitzero"` // by its self check; 0: there was none
}

// AbleOf is what an agent can send by its capacity (see load.Capacity) and its self check; nil: there was none.
func AbleOf(name string, connections int, limit string, check *result.SelfCheck) Able {
	a := Able{Name: name, Connections: connections, Limit: limit}
	if check != nil {
		a.MaxEvents = check.MaxEvents
	}
	return a
}

// comfortable is the share of the events/s which a client can take in at most that it is given: beyond it
// chance makes it late.
const comfortable = 0.7

// Sizing is how many agents a load needs.
type Sizing struct {
	Need   Need
	Agents int      // that it needs; the best of those that are there, where these are enough
	Like   []string // whom that is counted by
	There  int
	Tight  string   // what of an agent is used up first; "": nothing that is known
	Blind  []string // agents whose events/s were never measured, where these count
}

// Size says how many of the agents that are there, or how many like them, a load needs. All have
// the same part of it, so that the weakest of those that are chosen decides.
func Size(n Need, there []Able) Sizing {
	s := Sizing{Need: n, There: len(there)}
	ranked := slices.Clone(there)
	slices.SortStableFunc(ranked, func(a, b Able) int { return cmp.Compare(n.part(b), n.part(a)) })
	for _, a := range ranked {
		if n.Events > 0 && a.MaxEvents == 0 {
			s.Blind = append(s.Blind, a.Name)
		}
	}
	for k, a := range ranked {
		s.Like = append(s.Like, a.Name)
		if s.Agents = int(math.Ceil(1/n.part(a) - 1e-9)); s.Agents <= k+1 {
			s.Agents = k + 1
			break
		}
	}
	if len(ranked) > 0 {
		s.Tight = n.tight(ranked[len(s.Like)-1])
	}
	return s
}

// part is the share of the load that an agent can send at most; infinite where nothing is known to
// limit it.
func (n Need) part(a Able) float64 {
	part := math.Inf(1)
	if n.InFlight > 0 && a.Connections > 0 {
		part = float64(a.Connections) / float64(n.InFlight)
	}
	if n.Events > 0 && a.MaxEvents > 0 {
		part = min(part, comfortable*a.MaxEvents/n.Events)
	}
	return part
}

// tight says what limits the part of an agent.
func (n Need) tight(a Able) string {
	events := comfortable * a.MaxEvents
	switch {
	case math.IsInf(n.part(a), 1):
		return ""
	case n.Events > 0 && a.MaxEvents > 0 && n.part(a) == events/n.Events:
		return fmt.Sprintf("%.0f tokens/s come back, of which %s takes in %.0f", n.Events, a.Name, events)
	}
	return fmt.Sprintf("%d requests are in flight at once, of which %s holds %d (%s)", n.InFlight, a.Name, a.Connections, cmp.Or(a.Limit, "its limit"))
}

// Enough reports whether those that are there can send the load, as far as is known.
func (s Sizing) Enough() bool { return s.There > 0 && s.Agents <= s.There && !s.tooMany() }

// tooMany reports whether the load cannot be cut into as many parts as it needs.
func (s Sizing) tooMany() bool { return s.Need.Parts > 0 && s.Agents > s.Need.Parts }

// Text is the sizing in a sentence for the terminal.
func (s Sizing) Text() string {
	if s.There == 0 {
		return "no agent is there to send the load"
	}
	about := ""
	if s.Agents > s.There {
		about = "about "
	}
	text := fmt.Sprintf("this load needs %s%s like %s", about, agents(s.Agents), strings.Join(s.Like, ", "))
	if s.Tight != "" {
		text += " (" + s.Tight + ")"
	}
	verb := "are"
	if s.There == 1 {
		verb = "is"
	}
	text += fmt.Sprintf(": %d %s there", s.There, verb)
	if s.tooMany() {
		text += fmt.Sprintf("; it can be cut into %d parts at most", s.Need.Parts)
	}
	if len(s.Blind) > 0 {
		text += fmt.Sprintf("; how many tokens/s %s can take in is not known: run perflab selfcheck there", strings.Join(s.Blind, ", "))
	}
	return text
}

func agents(n int) string {
	if n == 1 {
		return "1 agent"
	}
	return fmt.Sprintf("%d agents", n)
}
