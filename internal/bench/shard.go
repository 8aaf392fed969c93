package bench

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// ShardJob is the part of a run's load that one agent of a fleet sends.
type ShardJob struct {
	Spec   Spec              `json:"spec"`
	Index  int               `json:"shard"` // from 0
	Of     int               `json:"of"`
	APIKey string            `json:"api_key,omitempty"` // a secret: it goes to the server under test alone
	Files  map[string]string `json:"files,omitempty"`   // where the workload's files are here, by workload.File's Key; "": where the spec says
	Totals workload.Totals   `json:"totals,omitzero"`   // of the whole workload, as the one who made the job has it; zero: not compared

	Simulated bool `json:"simulated,omitzero"` // what answers is a simulator: who looks at the load is told
}

// Shard is a part of a load, ready to be sent.
type Shard struct {
	b        Runner
	share    share
	tok      workload.Tokenizer
	closeTok func()
	clients  []*openai.Client
	progress atomic.Pointer[load.Progress] // of Run
	enough   atomic.Bool
}

// OpenShard opens a shard's workload and clients, and checks that this machine can send it.
func OpenShard(ctx context.Context, j ShardJob) (*Shard, error) {
	if j.Of < 1 || j.Index < 0 || j.Index >= j.Of {
		return nil, fmt.Errorf("open the load's shard: there is no shard %d of %d", j.Index, j.Of)
	}
	s := &Shard{b: Runner{Spec: j.Spec, APIKey: j.APIKey}}
	s.b.Spec.Workload = j.Spec.Workload.At(j.Files)
	if err := s.b.Spec.Validate(); err != nil {
		return nil, err
	}
	tok, closeTok, err := s.b.tokenizer(ctx)
	if err != nil {
		return nil, err
	}
	s.tok, s.closeTok = tok, closeTok
	if err := s.open(j); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// open does what of OpenShard needs the tokenizer.
func (s *Shard) open(j ShardJob) error {
	w, err := workload.OpenWith(s.b.Spec.Workload, s.tok)
	if err != nil {
		return err
	}
	if here := w.Totals(); j.Totals != (workload.Totals{}) && here != j.Totals {
		return fmt.Errorf("the workload is another one here: %d requests of %d input and %d output tokens within %v, and not %d of %d and %d within %v; give both machines the same dataset and tokenizer",
			here.Requests, here.Input, here.Output, here.Span, j.Totals.Requests, j.Totals.Input, j.Totals.Output, j.Totals.Span)
	}
	if most := w.MostShards(); most > 0 && j.Of > most {
		return fmt.Errorf("the load has no part for shard %d of %d: %d can send it at most", j.Index, j.Of, most)
	}
	s.share = share{w, j.Index, j.Of}
	if err := load.CheckCapacity(s.share.atOnce(), len(s.b.Spec.Targets)); err != nil {
		return err
	}
	s.clients, err = s.b.clients(s.share, s.seen)
	return err
}

// seen tells the progress of the load that runs of tokens as they come.
func (s *Shard) seen(tokens int, since time.Duration, first bool) {
	if p := s.progress.Load(); p != nil && p.Running.Load() {
		p.Seen(tokens, since, first)
	}
}

// Facts are what the shard and this machine are, for the header of the run.
func (s *Shard) Facts() result.Agent {
	return result.Agent{
		Host: host(), Shard: s.share.i, Of: s.share.n, Limit: s.share.limit(), Clock: s.clients[0].Clock(),
		Requests: s.share.ShardLen(s.share.i, s.share.n),
	}
}

// Describe says in words what the whole load sends.
func (s *Shard) Describe() string { return s.share.Describe() }

// Open makes the connections that the first instant needs.
func (s *Shard) Open(ctx context.Context) error { return openConnections(ctx, s.share, s.clients) }

// Run sends the shard from a start instant on and gives each call to emit as it ends, one at a
// time, with Agent set: the output of calls is counted where no server is needed for it. It runs once.
func (s *Shard) Run(ctx context.Context, start time.Time, p *load.Progress, emit func(result.Call)) (load.Stats, error) {
	if p == nil {
		p = new(load.Progress)
	}
	s.progress.Store(p)
	defer debug.SetGCPercent(debug.SetGCPercent(HeapGrowth))
	o := s.b.options(s.share)
	o.Start, o.Progress, o.Enough = start, p, &s.enough
	send := func(c result.Call) {
		c.Agent = s.share.i + 1
		c.Target = s.target(c.Target)
		emit(c)
	}
	if s.b.Spec.Workload.Tokenizer != workload.ServerTokenizer { // which is asked after the load, by the one who has all calls
		count := &outputCounter{tok: s.tok, emit: func(c result.Call) {
			if !s.b.Spec.KeepText {
				c.Text = ""
			}
			send(c)
		}}
		stats, err := load.Run(ctx, s.share.requests(), s.senders(), o, count.add)
		return s.used(stats), err
	}
	stats, err := load.Run(ctx, s.share.requests(), s.senders(), o, send)
	return s.used(stats), err
}

// used adds what the clients know to what the load does.
func (s *Shard) used(stats load.Stats) load.Stats {
	stats.Client.Sockets, stats.Client.Opened = sockets(s.clients)
	return stats
}

// senders are the targets, from another one on for each shard: of those that are equally busy the
// first is taken, and not by all agents the same.
func (s *Shard) senders() []load.Sender {
	all := Senders(s.clients)
	k := s.share.i % len(all)
	return append(all[k:len(all):len(all)], all[:k]...)
}

// target is the number of a target by its place in senders.
func (s *Shard) target(place int) int { return (place + s.share.i) % len(s.clients) }

// Enough has the shard send nothing more; calls in flight end.
func (s *Shard) Enough() { s.enough.Store(true) }

// Close gives up what the shard holds.
func (s *Shard) Close() {
	closeAll(s.clients)
	s.closeTok()
}
