// Package outline is what a workload sends as the simulator's jobs: how long prompts are and which of
// their tokens they share, without their texts, and which requests wait for which.
//
//	p := outline.New(w, tokenizer)
//	jobs, options := p.Jobs(), p.Options(sim.ReplayOptions{}, replicas)
//	outcomes, err := sim.Replay(config, replicas, jobs, options)
//
// Invariant: two prompts begin with the same tokens exactly as far as the requests of package workload do. Of
// sessions of agents the recording's blocks say it, so that no word is made; of conversations the texts. What a
// server answers is made up, and part of the prompts of a conversation that go on from it.
//
// Deliberately absent: images and documents, which the simulated engine does not read.
package outline

import (
	"fmt"
	"iter"

	"perflab/internal/sim"
	"perflab/internal/token"
	"perflab/internal/workload"
)

// Pass is one way through a workload, for one replay.
type Pass struct {
	w      *workload.Workload
	tok    workload.Tokenizer
	trees  trees
	talks  talks
	unread error
}

// New begins a way through a workload, whose lengths are measured by a tokenizer; nil: by package token's
// approximation.
func New(w *workload.Workload, tok workload.Tokenizer) *Pass {
	p := &Pass{w: w, tok: tok}
	p.trees = trees{w: w, open: map[int]*tree{}}
	p.talks = talks{p: p, open: map[int]*talk{}}
	return p
}

// Needs reports whether a workload needs a way of its own: some requests wait for others, or time decides how many there are.
func Needs(w *workload.Workload) bool { return w.Conversations() || w.Len() == 0 }

// Err is why a prompt could not be read, which ended the jobs.
func (p *Pass) Err() error { return p.unread }

// Jobs are the requests that stand alone, and the first one of each session, in the order of their times. There is no
// end to them where time decides.
func (p *Pass) Jobs() iter.Seq[sim.Job] {
	if p.w.Trees() {
		return p.trees.firsts()
	}
	return func(yield func(sim.Job) bool) {
		for r := range p.w.All() {
			tokens, err := Tokens(r, p.tok)
			if err != nil {
				p.unread = err
				return
			}
			if !yield(p.talks.begin(r, tokens)) {
				return
			}
		}
	}
}

// Options are those of a replay with what the workload needs of it, on so many replicas.
func (p *Pass) Options(o sim.ReplayOptions, replicas int) sim.ReplayOptions {
	s := p.w.Spec()
	o.MaxConcurrency, o.Closed, o.Until, o.Affinity = s.MaxConcurrency, p.w.Closed(), p.w.Until(), !s.NoSessionAffinity
	switch {
	case p.w.Trees():
		o.Sessions = &p.trees
		if s.StartRatio != "" {
			o.Home = func(first sim.Job) int { return p.home(first.Session, replicas) }
			o.Fill = func(replica int) (iter.Seq[sim.Job], sim.Sessions) { return p.fills(replica, replicas) }
		}
	case p.w.Conversations():
		o.Sessions = &p.talks
	}
	return o
}

// Tokens are the tokens of all that a request sends, by the workload's own tokenizer where it has one.
func Tokens(r workload.Request, tok workload.Tokenizer) ([]uint32, error) {
	var out []uint32
	for _, id := range r.IDs {
		out = append(out, uint32(id))
	}
	if out != nil {
		return out, nil
	}
	texts := []string{r.System}
	for _, m := range r.History {
		texts = append(texts, m.Content)
	}
	var err error
	for _, text := range append(texts, r.Prompt) {
		if out, err = appendTokens(out, text, tok); err != nil {
			return nil, fmt.Errorf("count the tokens of request %d: %w", r.Index, err)
		}
	}
	return out, nil
}

// appendTokens appends those of a text.
func appendTokens(out []uint32, text string, tok workload.Tokenizer) ([]uint32, error) {
	if tok == nil {
		return token.Append(out, text), nil
	}
	ids, err := tok.Encode(text, false)
	for _, id := range ids {
		out = append(out, uint32(id))
	}
	return out, err
}
