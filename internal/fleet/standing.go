package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"perflab/internal/bench"
	"perflab/internal/fleet/bus"
)

// Standing is a fleet as it is now.
type Standing struct {
	Version string         `json:"version"` // of perflab here; agents of another one are not chosen for loads
	Agents  []Present      `json:"agents"`  // those that are there, by name
	Away    []Away         `json:"away"`    // members that are not
	Loads   []Underway     `json:"loads"`   // the oldest first
	Kept    []Kept         `json:"kept"`    // loads whose calls agents keep, since no leader took them
	Idle    bench.Together `json:"idle"`    // what those send together that are idle and of this version

	Outside bool `json:"outside,omitzero"` // the hub is a NATS server outside, which invites and removes nobody
}

// Present is an agent that is there.
type Present struct {
	Agent
	Other  bool   `json:"other_version,omitzero"` // it is not chosen for loads
	Member bool   `json:"member"`                 // the hub lets it in, and can remove it
	From   string `json:"from,omitempty"`         // the address of its connection
	Pace   *Pace  `json:"pace,omitempty"`         // of its part of a load; nil: none goes on, or it has not said
}

// Away is a member that is not heard.
type Away struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Version   string     `json:"version,omitempty"` // when it last connected, or joined
	Joined    *time.Time `json:"joined,omitempty"`  // nil: the hub does not know
	Heard     *time.Time `json:"heard,omitempty"`   // nil: not since this process listens
	Site      bool       `json:"site,omitzero"`     // the server of a site, which sends no load
	Connected bool       `json:"connected,omitzero"`
	Member    bool       `json:"member"`
}

// Underway is a load that agents are at.
type Underway struct {
	Epoch  uint64 `json:"epoch"`
	Who    string `json:"who,omitempty"`
	Load   string `json:"load,omitempty"`
	Model  string `json:"model,omitempty"`
	Shards int    `json:"shards"` // that it has; some of Parts may have ended, or be lost
	Parts  []Part `json:"parts"`
	Pace   *Pace  `json:"pace,omitempty"` // of all parts; nil: none has begun

	Simulated bool `json:"simulated"` // what answers is a simulator
}

// Part is what one agent sends of a load.
type Part struct {
	Agent string `json:"agent"` // its ID
	Name  string `json:"name"`
	Shard int    `json:"shard"` // from 0
	State string `json:"state"` // in words
	Pace  *Pace  `json:"pace,omitempty"`
}

// Standing is the fleet as it is now. Where the hub does not say who its members are, that is an error,
// and the rest is there all the same.
func (w *Watch) Standing(ctx context.Context) (Standing, error) {
	members, err := w.l.Members(ctx)
	known := err == nil
	outside := errors.Is(err, bus.ErrNobody) // a NATS server outside keeps no members
	switch {
	case outside:
		err = nil
	case err != nil:
		err = fmt.Errorf("ask the hub for the fleet's members: %w", err)
	}
	by := map[string]bus.Member{}
	for _, m := range members {
		by[m.ID] = m
	}
	st := Standing{Version: w.l.o.Version, Agents: []Present{}, Away: []Away{}, Outside: outside}
	for _, s := range w.now(func(id string) bool { m, ok := by[id]; return !known || ok && !m.Revoked }) {
		m, member := by[s.ID]
		if time.Since(s.Heard) > gone {
			heard := s.Heard
			if !member {
				st.Away = append(st.Away, Away{ID: s.ID, Name: s.Facts.Name, Version: s.Facts.Version, Heard: &heard})
				continue
			}
			st.Away = append(st.Away, away(m, &heard))
		} else {
			s.Member, s.From = member, m.From
			st.Agents = append(st.Agents, s)
		}
		delete(by, s.ID)
	}
	for _, m := range by {
		if !m.Revoked {
			st.Away = append(st.Away, away(m, nil))
		}
	}
	st.sort()
	return st, err
}

func away(m bus.Member, heard *time.Time) Away {
	return Away{ID: m.ID, Name: m.Name, Version: m.Version, Joined: &m.Joined, Heard: heard, Site: m.Site, Connected: m.Connected, Member: true}
}

// sort puts all in order, and makes loads and sums of the agents.
func (st *Standing) sort() {
	slices.SortFunc(st.Agents, func(a, b Present) int {
		return cmp.Or(cmp.Compare(a.Facts.Name, b.Facts.Name), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(st.Away, func(a, b Away) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	st.Loads = underway(st.Agents)
	var there []Agent
	for _, a := range st.Agents {
		there = append(there, a.Agent)
	}
	st.Kept = KeptBy(there)
	var idle []bench.Able
	for _, a := range st.Agents {
		if a.Free() && !a.Other {
			idle = append(idle, bench.AbleOf(a.Facts.Name, a.Facts.Streams, "", a.Facts.SelfCheck))
		}
	}
	st.Idle = bench.TogetherOf(idle)
}

// now are the agents that were heard and are wanted.
func (w *Watch) now(wanted func(id string) bool) []Present {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Present
	at := w.l.now()
	for _, id := range slices.Sorted(maps.Keys(w.seen)) {
		s := w.seen[id]
		if s.Heard.IsZero() || !wanted(id) {
			continue
		}
		out = append(out, Present{Agent: s.Agent, Other: w.l.o.Version != "" && s.Facts.Version != w.l.o.Version, Pace: s.pace(at)})
	}
	return out
}

// underway are the loads that agents are at, the oldest first.
func underway(all []Present) []Underway {
	by := map[uint64]*Underway{}
	for _, a := range all {
		if a.Idle() {
			continue
		}
		u := by[a.Facts.Epoch]
		if u == nil {
			u = &Underway{Epoch: a.Facts.Epoch}
			by[u.Epoch] = u
		}
		p := Part{Agent: a.ID, Name: a.Facts.Name, State: a.Facts.Doing, Pace: a.Pace}
		if work := a.Facts.Work; work != nil {
			u.Who, u.Load, u.Model, u.Shards = cmp.Or(u.Who, work.Who), cmp.Or(u.Load, work.Load), cmp.Or(u.Model, work.Model), max(u.Shards, work.Of)
			u.Simulated = u.Simulated || work.Simulated
			p.Shard, p.State = work.Shard, work.State
		}
		u.Parts = append(u.Parts, p)
	}
	out := []Underway{}
	for _, epoch := range slices.Sorted(maps.Keys(by)) {
		u := by[epoch]
		slices.SortStableFunc(u.Parts, func(a, b Part) int { return cmp.Compare(a.Shard, b.Shard) })
		u.Shards = max(u.Shards, len(u.Parts))
		u.Pace = paces(u.Parts)
		out = append(out, *u)
	}
	return out
}

// paces is the pace of parts together; nil where none has begun. Where that of one is not known, that of all is not.
func paces(all []Part) *Pace {
	var sum *Pace
	rate, known := 0.0, true
	for _, p := range all {
		if p.Pace == nil {
			continue
		}
		if sum == nil {
			sum = &Pace{}
		}
		sum.Sent, sum.InFlight, sum.Tokens = sum.Sent+p.Pace.Sent, sum.InFlight+p.Pace.InFlight, sum.Tokens+p.Pace.Tokens
		if p.Pace.TokensPerS == nil {
			known = false
			continue
		}
		rate += *p.Pace.TokensPerS
	}
	if sum != nil && known {
		sum.TokensPerS = &rate
	}
	return sum
}
