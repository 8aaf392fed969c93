// Package reuse computes how many of a run's prompt tokens a server's prefix cache could have had: with
// room for everything, and with the room that the engine says it has.
//
//	var t reuse.Trie
//	like, alike := t.Add(pieces)              // of each prompt: a line of prompts.jsonl
//	hits := reuse.Measure(prompts, requests, rooms)
//
// What prompts share is kept as a tree: of each prompt which earlier one it begins alike with, and for how
// many tokens. That is all that a cache can tell of them, in a few bytes however long they are.
//
// The cache with room for everything has the blocks of each prompt from its sending on. The one with the engine's
// room works as vLLM's: blocks are found by the whole prefix that they end, and as soon as their request has
// been let in; the block with a prompt's last token is always computed; answers take room too; what a
// request held is given back at its end, the end of its text first, and what was given back longest ago makes
// room first. A request for whose prompt there is no room waits, and those behind it.
//
// It differs from vLLM where that cannot be seen from outside: which of two requests sent at the
// same time came first, in which step a chunk of a prompt was computed, and requests that gave their
// blocks up again for lack of room.
//
// Deliberately absent: where prompts come from (package workload), where the room is read (package
// telemetry), and the figures' names (package result).
package reuse

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Prompt is what is kept of a prompt that was sent: a line of prompts.jsonl.
type Prompt struct {
	Index  int  `json:"index"`           // of its call
	Fill   bool `json:"fill,omitzero"`   // it filled a cache before the run: Index counts for nothing
	Target int  `json:"target,omitzero"` // of such a one
	Tokens int  `json:"tokens"`          // by the workload's own count
	Like   int  `json:"like,omitzero"`   // the line, from 1, of an earlier prompt that begins as this one does; 0: none
	Alike  int  `json:"alike,omitzero"`  // for how many tokens; over that one's length: its answer too
}

// MaxTokens is the most that a prompt may have.
const MaxTokens = 1 << 24

// Check says what of a line with so many before it cannot be.
func (p Prompt) Check(before int) error {
	switch {
	case p.Like < 0 || p.Like > before:
		return fmt.Errorf("it begins like line %d, and %d are before it", p.Like, before)
	case min(p.Tokens, p.Alike, p.Target, p.Index) < 0 || p.Tokens > MaxTokens || p.Alike > p.Tokens:
		return fmt.Errorf("%d tokens, of which %d are another prompt's, cannot be", p.Tokens, p.Alike)
	}
	return nil
}

// Request is a call as a cache sees it. Times are offsets from the run's start.
type Request struct {
	Index, Target  int
	Sent           time.Duration
	First, Last    time.Duration // tokens of the answer
	Prompt, Output int           // tokens, by the server's count where it gives one
}

// Room is what a replica's cache holds.
type Room struct {
	Tokens int // 0: not known
	Block  int // tokens of a block; 0: not known
}

// Hits are prompt tokens, and those of them that a cache could have had.
type Hits struct {
	Prompt  int
	Any     int  // with room for everything, in one cache for all replicas
	Routed  int  // with room for everything, in a cache for each replica, as the requests went
	Fitting int  // the same with the room of each replica
	Fits    bool // the rooms are known, and Fitting is
	Several bool // requests went to several replicas
}

// usualBlock is the length of blocks where an engine does not tell it, and the least that is
// reckoned with: SGLang's cache knows single tokens, which would take sixteen times as long for a difference
// of less than a block a prompt.
const usualBlock = 16

// Measure computes the hits of requests by their prompts. rooms are those of the targets; where one is missing
// Fitting is not known.
func Measure(prompts []Prompt, requests []Request, rooms []Room) Hits {
	requests = slices.SortedStableFunc(slices.Values(requests), func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.Sent, b.Sent), cmp.Compare(a.Index, b.Index))
	})
	s := newScene(prompts, requests)
	if len(s.requests) == 0 {
		return Hits{}
	}
	h := Hits{Fits: len(rooms) > s.targets-1, Several: s.targets > 1}
	for _, r := range s.requests {
		h.Prompt += r.Prompt
	}
	block := usualBlock
	for _, r := range rooms {
		block = max(block, r.Block)
	}
	h.Any = s.endless(block, func(int) int { return 0 })
	if h.Routed = h.Any; h.Several {
		h.Routed = s.endless(block, func(target int) int { return target })
	}
	for t := range s.targets {
		if !h.Fits || rooms[t].Tokens <= 0 || rooms[t].Block <= 0 {
			h.Fits = false
			return h
		}
		h.Fitting += s.fitting(t, rooms[t])
	}
	return h
}

// scene is what was sent, in tokens as the server counts them.
type scene struct {
	requests []Request // that have a prompt, in the order of their sending
	line     []int     // of each request, from 0
	lines    []Prompt  // Tokens and Alike by the server's count
	targets  int
}

// alikeFronts is by how much the server's counts may differ in what they have more than the workload's for this to
// be the same in each: a template.
const alikeFronts = 16

// newScene brings the workload's counts and the server's together: what the server counts more, and the same in
// every prompt, stands at its beginning, as a template or the beginning-of-text token does; other differences
// are spread over the prompt.
func newScene(prompts []Prompt, requests []Request) *scene {
	at := make(map[int]int, len(prompts))
	for i, p := range prompts {
		if !p.Fill {
			at[p.Index] = i
		}
	}
	s := &scene{lines: slices.Clone(prompts), targets: 1}
	least, most, counted := math.MaxInt, math.MinInt, make([]int, len(prompts))
	for _, r := range requests {
		i, ok := at[r.Index]
		if !ok || r.Prompt <= 0 {
			continue
		}
		s.requests, s.line = append(s.requests, r), append(s.line, i)
		s.targets = max(s.targets, r.Target+1)
		more := r.Prompt - prompts[i].Tokens
		least, most, counted[i] = min(least, more), max(most, more), r.Prompt
	}
	front := 0
	if least > 0 && most-least <= alikeFronts {
		front = least
	}
	for i := range s.lines {
		p, own := &s.lines[i], prompts[i]
		p.Tokens = cmp.Or(counted[i], own.Tokens+front)
		p.Alike = front
		if own.Like == 0 && i > 0 && front > 0 {
			p.Like = 1
		}
		if own.Like > 0 {
			of := prompts[own.Like-1]
			p.Alike = front + spread(own.Alike, of.Tokens, s.lines[own.Like-1].Tokens-front)
		}
	}
	return s
}

// spread is a place in a text by another count of its tokens; what is behind the text keeps its length.
func spread(place, tokens, counted int) int {
	if place >= tokens || tokens == 0 {
		return counted + place - tokens
	}
	return int(math.Round(float64(place) * float64(counted) / float64(tokens)))
}

// keys appends what names the blocks of a line up to so many tokens, prompt and answer: two blocks have
// one name where all is the same up to their end.
func (s *scene) keys(keys []uint64, line, tokens, block int) []uint64 {
	n := tokens / block
	keys = slices.Grow(keys[:0], n)[:n]
	for i := n - 1; i >= 0; i-- {
		for s.lines[line].Like > 0 && (i+1)*block <= s.lines[line].Alike {
			line = s.lines[line].Like - 1
		}
		keys[i] = uint64(line+1)<<32 | uint64(i)
	}
	return keys
}

// event is a sending or the last token of a request.
type event struct {
	at   time.Duration
	sent bool
	k    int // of scene.requests
}

// events are those of requests in order; of one instant ends come first, since their client sends then.
func (s *scene) events(of func(Request) bool) []event {
	var all []event
	for k, r := range s.requests {
		if of(r) {
			all = append(all, event{r.Sent, true, k}, event{max(r.Last, r.Sent+1), false, k})
		}
	}
	slices.SortStableFunc(all, func(a, b event) int {
		switch {
		case a.at != b.at || a.sent == b.sent:
			return cmp.Compare(a.at, b.at)
		case a.sent:
			return 1
		}
		return -1
	})
	return all
}

// computed is of how many tokens a request's blocks have content at its end: the last token
// of an answer is never computed.
func (r Request) computed() int { return r.Prompt + max(0, r.Output-1) }

// endless is how many prompt tokens caches without an end have; group says which targets share one.
func (s *scene) endless(block int, group func(target int) int) (hits int) {
	type held struct {
		group int
		key   uint64
	}
	have := map[held]struct{}{}
	var keys []uint64
	known := func(g int, keys []uint64) int { // they begin with those that are there
		n, _ := slices.BinarySearchFunc(keys, true, func(key uint64, _ bool) int {
			if _, ok := have[held{g, key}]; ok {
				return -1
			}
			return 0
		})
		return n
	}
	add := func(g int, keys []uint64) (there int) {
		there = known(g, keys)
		for _, key := range keys[there:] {
			have[held{g, key}] = struct{}{}
		}
		return there
	}
	for i, p := range s.lines {
		if p.Fill {
			keys = s.keys(keys, i, p.Tokens, block)
			add(group(p.Target), keys)
		}
	}
	for _, e := range s.events(func(Request) bool { return true }) {
		r := s.requests[e.k]
		if !e.sent {
			keys = s.keys(keys, s.line[e.k], r.computed(), block)
			add(group(r.Target), keys)
			continue
		}
		keys = s.keys(keys, s.line[e.k], r.Prompt, block)
		hits += block * min(add(group(r.Target), keys), (r.Prompt-1)/block)
	}
	return hits
}
