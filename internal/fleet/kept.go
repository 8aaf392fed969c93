package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"perflab/internal/bench"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
	"perflab/internal/fleet/ship"
	"perflab/internal/generator"
	"perflab/internal/result"
)

// Kept is a load whose leader was gone when it ended, with the agents that keep its calls.
type Kept struct {
	Epoch     uint64     `json:"epoch"`
	Who       string     `json:"who,omitempty"`   // led it, in words
	What      string     `json:"load,omitempty"`  // what it sent, in words
	Model     string     `json:"model,omitempty"` // of the server under test
	Simulated bool       `json:"simulated"`       // that server was a simulator
	Dir       string     `json:"dir,omitempty"`   // run directory on the leader's machine
	Parts     []KeptPart `json:"parts"`           // by shard
}

// KeptPart is what one agent keeps of a load.
type KeptPart struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	order.KeptLoad
}

// KeptBy are the loads that agents keep, the oldest first.
func KeptBy(agents []Agent) []Kept {
	by := map[uint64]*Kept{}
	for _, a := range agents {
		for _, k := range a.Facts.Kept {
			x := by[k.Epoch]
			if x == nil {
				x = &Kept{Epoch: k.Epoch}
				by[k.Epoch] = x
			}
			x.Who, x.What, x.Model, x.Dir = cmp.Or(x.Who, k.Who), cmp.Or(x.What, k.What), cmp.Or(x.Model, k.Model), cmp.Or(x.Dir, k.Dir)
			x.Simulated = x.Simulated || k.Simulated
			x.Parts = append(x.Parts, KeptPart{a.ID, a.Facts.Name, k})
		}
	}
	out := []Kept{}
	for _, epoch := range slices.Sorted(maps.Keys(by)) {
		slices.SortStableFunc(by[epoch].Parts, func(a, b KeptPart) int { return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Name, b.Name)) })
		out = append(out, *by[epoch])
	}
	return out
}

// NotKeptError says that no agent that is there keeps anything of a load.
type NotKeptError struct{ Epoch uint64 }

func (e *NotKeptError) Error() string {
	return fmt.Sprintf("no agent that is there keeps calls of load %d", e.Epoch)
}

// Hint says how to go on.
func (e *NotKeptError) Hint() string { return "perflab fleet calls shows what agents keep" }

// keptOf is one load among those that are kept now.
func (l *Leader) keptOf(ctx context.Context, epoch uint64) (Kept, error) {
	all := KeptBy(l.Gather(ctx, nil))
	if err := ctx.Err(); err != nil {
		return Kept{}, context.Cause(ctx)
	}
	i := slices.IndexFunc(all, func(k Kept) bool { return k.Epoch == epoch })
	if i < 0 {
		return Kept{}, &NotKeptError{epoch}
	}
	return all[i], nil
}

// Fetch says which load's calls are fetched, and where to.
type Fetch struct {
	Epoch uint64
	Dir   string                    // run directory; "": that of the leader where it was cut off on this machine, else load-EPOCH here
	With  string                    // run directory of the same load, whose calls are taken too; "": none
	Told  func(agent string, n int) // of so many calls that came; nil: nobody is
}

// Fetched is what came of it.
type Fetched struct {
	Epoch  uint64         `json:"epoch"`
	Dir    string         `json:"dir"`
	Had    int            `json:"calls_before"` // that the directory had
	Came   int            `json:"calls_fetched"`
	Agents []string       `json:"agents"`               // that kept them
	Still  []string       `json:"still_keep,omitempty"` // those of them that could not be told to remove them
	Out    *bench.Outcome `json:"-"`                    // the run as it is now
	Lacks  []string       `json:"what_lacks,omitempty"` // of which agents something is not here, and why
}

// answers is how long an agent may take.
const answers = 30 * time.Second

// ask gives an agent an order about what it keeps.
func ask[T any](ctx context.Context, l *Leader, id, word string, v any) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	return order.Ask[T](ctx, l.conn, bus.Do(id, word), v)
}

// Fetch brings the calls that agents keep of a load into a run directory. The agents keep them until that is whole and on
// the disk.
func (l *Leader) Fetch(ctx context.Context, f Fetch) (*Fetched, error) {
	kept, err := l.keptOf(ctx, f.Epoch)
	if err != nil {
		return nil, err
	}
	x := &fetching{l: l, f: f, out: &Fetched{Epoch: f.Epoch}}
	if err := x.ask(ctx, kept); err != nil {
		return nil, err
	}
	if f.Dir == "" {
		f.Dir = usualDir(kept)
	}
	x.out.Dir = f.Dir
	if x.late, err = bench.OpenLate(f.Dir, f.With, f.Epoch, x.header()); err != nil {
		return nil, err
	}
	defer x.late.Abandon()
	for _, p := range x.parts {
		if err := x.bring(ctx, p); err != nil {
			return nil, fmt.Errorf("fetch calls of load %d from agent %s: %w", f.Epoch, p.name, err)
		}
	}
	if x.out.Out, err = x.late.Finish(x.fleet()); err != nil {
		return nil, err
	}
	x.out.Had, x.out.Came = x.late.Had, x.late.Added
	for _, p := range x.parts {
		x.out.Agents = append(x.out.Agents, p.name)
		if _, err := ask[struct{}](ctx, l, p.id, order.Forget, order.Load{Epoch: f.Epoch}); err != nil {
			x.out.Still = append(x.out.Still, p.name)
		}
	}
	return x.out, nil
}

// usualDir is where the calls of a load go if nobody says where.
func usualDir(k Kept) string {
	if k.Dir != "" && bench.CutOff(k.Dir, k.Epoch) {
		return k.Dir
	}
	return fmt.Sprintf("load-%d", k.Epoch)
}

// fetching is a load whose calls are fetched.
type fetching struct {
	l     *Leader
	f     Fetch
	late  *bench.Late
	parts []*part
	out   *Fetched
}

// part is what one agent keeps.
type part struct {
	id, name string
	order.KeptPart
	damaged int // batches that its disk does not give back
}

// ask has the agents say all that they know of the load.
func (x *fetching) ask(ctx context.Context, k Kept) error {
	for _, p := range k.Parts {
		full, err := ask[order.KeptPart](ctx, x.l, p.ID, order.Kept, order.Load{Epoch: x.f.Epoch})
		if err != nil {
			return fmt.Errorf("ask agent %s what it keeps of load %d: %w", p.Name, x.f.Epoch, err)
		}
		x.parts = append(x.parts, &part{id: p.ID, name: p.Name, KeptPart: full})
	}
	return nil
}

// header is that which the agents got with the load.
func (x *fetching) header() *result.Header {
	for _, p := range x.parts {
		if p.Header != nil && p.Header.Fleet != nil {
			return p.Header
		}
	}
	return nil
}

// bring fetches the batches of an agent.
func (x *fetching) bring(ctx context.Context, p *part) error {
	number, err := x.number(p)
	if err != nil {
		return err
	}
	for _, seq := range p.Batches {
		calls, err := x.batch(ctx, p, seq)
		if _, no := errors.AsType[*order.RefusedError](err); no && ctx.Err() == nil {
			p.damaged++
			x.l.log.Warn("calls that an agent keeps are not whole", "agent", p.name, "batch", seq, "error", err)
			continue
		}
		if err != nil {
			return err
		}
		for _, c := range calls {
			c.Agent = number
			x.late.Add(c)
		}
		if x.f.Told != nil {
			x.f.Told(p.name, len(calls))
		}
	}
	return nil
}

// batch fetches one batch, again where its answer was lost on the way.
func (x *fetching) batch(ctx context.Context, p *part, seq uint64) ([]result.Call, error) {
	for try := 1; ; try++ {
		one, cancel := context.WithTimeout(ctx, answers)
		raw, err := x.l.conn.Request(one, bus.Do(p.id, order.KeptBatch), order.Encode(order.BatchOf{Load: order.Load{Epoch: x.f.Epoch}, Seq: seq}))
		cancel()
		if err == nil {
			var b []byte
			if b, err = order.ReadAnswerBatch(raw); err != nil {
				return nil, err
			}
			return ship.Calls(seq, b)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if try == tries {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// tries is how often a batch is asked for.
const tries = 5

// number is the agent's place in the run.
func (x *fetching) number(p *part) (int, error) {
	f := x.late.Header().Fleet
	if f == nil {
		return 0, errors.New("the run's header does not say who sent the load")
	}
	for i, a := range f.Agents {
		if a.ID == p.id {
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("the run's header does not have it among the %d that sent the load", len(f.Agents))
}

// fleet is who sent the load and what became of each part, as far as it is known now.
func (x *fetching) fleet() *result.Fleet {
	f := *x.late.Header().Fleet
	f.Agents = slices.Clone(f.Agents)
	for i := range f.Agents {
		a := &f.Agents[i]
		at := slices.IndexFunc(x.parts, func(p *part) bool { return p.id == a.ID })
		switch {
		case at >= 0:
			x.parts[at].conclude(a)
		case a.Lost == "" && a.Client == nil && (a.Requests == 0 || x.late.Calls(i+1) < a.Requests):
			a.Lost = "its calls were not fetched: it was not there, or kept none"
		}
		if a.Lost != "" {
			x.out.Lacks = append(x.out.Lacks, f.Name(i+1)+": "+a.Lost)
		}
	}
	return &f
}

// conclude writes into the agent's part of the header what came of it.
func (p *part) conclude(a *generator.Agent) {
	own := a.Clock != "" // the header is the leader's own, beside the calls that it had acknowledged
	if p.Agent != nil && !own {
		offset := a.Offset
		*a = *p.Agent
		a.Offset = offset
	}
	var lost []string
	switch d := p.Done; {
	case d == nil:
		lost = append(lost, "its process ended before its part of the load did")
	default:
		c := d.Client
		a.Client, a.Sent = &c, d.Sent
		if d.Wrong != "" && !c.Partial {
			lost = append(lost, d.Wrong)
		}
	}
	if n := numbers(p.Missing) + p.damaged; n > 0 {
		lost = append(lost, fmt.Sprintf("%d batches of its calls are on no disk, or damaged there", n))
	}
	if n := p.with(); n > 0 && !own {
		lost = append(lost, fmt.Sprintf("%d batches of its calls are with the leader, whose directory was not completed", n))
	}
	a.Lost, a.LostAt = strings.Join(lost, "; "), 0
}

// with is how many batches the leader has and the agent has no more.
func (p *part) with() int {
	here := 0
	for _, seq := range p.Batches {
		if seq <= p.Acked {
			here++
		}
	}
	return int(p.Acked) - here
}

func numbers(gaps []ship.Gap) int {
	n := 0
	for _, g := range gaps {
		n += int(g.To - g.From + 1)
	}
	return n
}

// Dropped is what became of an order to remove what is kept of a load.
type Dropped struct {
	Epoch  uint64   `json:"epoch"`
	Calls  int      `json:"calls"`
	Agents []string `json:"agents"`
}

// Drop has the agents that are there remove what they keep of a load.
func (l *Leader) Drop(ctx context.Context, epoch uint64) (Dropped, error) {
	out := Dropped{Epoch: epoch}
	kept, err := l.keptOf(ctx, epoch)
	if err != nil {
		return out, err
	}
	var errs []error
	for _, p := range kept.Parts {
		if _, err := ask[struct{}](ctx, l, p.ID, order.Forget, order.Load{Epoch: epoch}); err != nil {
			errs = append(errs, fmt.Errorf("drop what agent %s keeps of load %d: %w", p.Name, epoch, err))
			continue
		}
		out.Agents, out.Calls = append(out.Agents, p.Name), out.Calls+p.Calls
	}
	return out, errors.Join(errs...)
}
