package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
)

// hold is a leader's right to a node, for as long as its context lasts.
type hold struct {
	o       Leader
	name    string
	id      string
	lease   *bus.Lease
	process string // of the agent
	ended   []leftover

	ctx     context.Context
	lose    context.CancelCauseFunc
	renewed sync.WaitGroup
	numbers atomic.Int64
}

// number is a new one, for what is started.
func (h *hold) number() int { return int(h.numbers.Add(1)) }

// token is the fencing token.
func (h *hold) token() uint64 { return h.lease.Revision }

// How long a claim is waited for that somebody holds, and how often it is looked at: a leader that was killed holds
// its nodes for as long as its lease goes on.
const (
	claimShare = 2 // of the lease is how long the hub keeps a claim that is not renewed
	claimLook  = 250 * time.Millisecond
	takeWithin = 30 * time.Second // that an agent may take to end what an earlier holder left
)

// take claims the node and tells its agent so.
func (n *Node) take(ctx context.Context) (*hold, error) {
	a, err := n.agent(ctx)
	if err != nil {
		return nil, err
	}
	lease, err := n.claim(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	h := &hold{o: n.o, name: n.name, id: a.ID, lease: lease}
	h.ctx, h.lose = context.WithCancelCause(context.Background())
	ctx, cancel := context.WithTimeout(ctx, takeWithin)
	defer cancel()
	raw, process, err := h.send(ctx, wordHold, holdOrder{n.o.Lease, n.o.Who, n.o.Study, n.session})
	if err == nil {
		h.process = process
		var found held
		err = json.Unmarshal(raw, &found)
		h.ended = found.Ended
	}
	if err != nil {
		h.lose(err)
		h.release()
		return nil, err
	}
	h.renewed.Go(h.keep)
	return h, nil
}

// claim takes the lease, once nobody holds it.
func (n *Node) claim(ctx context.Context, id string) (*bus.Lease, error) {
	ttl := claimShare * n.o.Lease
	until := time.Now().Add(ttl + time.Second)
	for {
		lease, err := n.o.Conn.Claim(ctx, "node."+id, []byte(n.o.words()), ttl)
		other, taken := errors.AsType[*bus.HeldError](err)
		switch {
		case !taken:
			return lease, err
		case time.Now().After(until):
			return nil, fmt.Errorf("%w by %s", errOthers, other.Value)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(claimLook):
		}
	}
}

// release lets go of the node, and waits until nothing is said to it.
func (h *hold) release() {
	h.lose(errors.New("the node was given back"))
	h.renewed.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	_ = h.lease.Release(ctx) // it ends by itself
}

const answerWithin = 5 * time.Second // of an answer that waits for nothing

// keep renews the right until it is lost: to the hub, by which others see that it is held, and to the agent, which
// else ends what it runs.
func (h *hold) keep() {
	every := time.NewTicker(max(h.o.Lease/10, 50*time.Millisecond))
	defer every.Stop()
	heard := time.Now()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-every.C:
		}
		sent := time.Now()
		ctx, cancel := context.WithTimeout(h.ctx, h.o.Lease/2)
		_, err := once[struct{}](ctx, h, wordRenew, nil)
		if err == nil {
			heard = sent
			err = h.reclaim(ctx)
		}
		cancel()
		switch {
		case err == nil || h.ctx.Err() != nil:
		case errors.Is(err, bus.ErrLost):
			h.lost(err)
		case time.Since(heard) > h.o.Lease:
			h.lost(fmt.Errorf("node %s was not heard of for %v", h.name, time.Since(heard).Round(time.Second)))
		}
	}
}

func (h *hold) lost(why error) {
	h.o.Log.Warn("a node is lost", "node", h.name, "why", why)
	h.lose(why)
}

// reclaim renews the claim, well before it ends.
func (h *hold) reclaim(ctx context.Context) error {
	if time.Until(h.lease.Ends()) > h.o.Lease {
		return nil
	}
	return h.lease.Renew(ctx)
}

// send gives an order and takes its answer, if that is of this holder's node.
func (h *hold) send(ctx context.Context, word string, o any) (json.RawMessage, string, error) {
	e := envelope{Token: h.token()}
	if o != nil {
		e.Order = order.Encode(o)
	}
	raw, err := h.o.Conn.Request(ctx, bus.Do(h.id, word), order.Encode(e))
	if err != nil {
		return nil, "", err
	}
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, "", fmt.Errorf("read the answer of node %s: %w", h.name, err)
	}
	switch lost := context.Cause(h.ctx); {
	case lost != nil: // late: others may have the node, and what it says is of no use to anybody
		return nil, "", &FencedError{fmt.Sprintf("an answer of node %s came late: %v", h.name, lost)}
	case a.Token != e.Token:
		return nil, "", &FencedError{fmt.Sprintf("node %s answers with token %d, and is held by token %d", h.name, a.Token, e.Token)}
	case h.process != "" && a.Process != h.process:
		return nil, "", &FencedError{fmt.Sprintf("the agent of node %s was started anew", h.name)}
	}
	return a.Value, a.Process, a.Fault.err()
}

// once gives an order, and does not give it again.
func once[T any](ctx context.Context, h *hold, word string, o any) (T, error) {
	var out T
	ctx, cancel := context.WithTimeout(ctx, longPoll+writeWithin)
	defer cancel()
	stop := context.AfterFunc(h.ctx, cancel)
	defer stop()
	raw, _, err := h.send(ctx, word, o)
	if fenced, ok := errors.AsType[*FencedError](err); ok && h.ctx.Err() == nil {
		h.lost(fenced) // what was started there is not this leader's any more
	}
	if err != nil {
		if lost := context.Cause(h.ctx); lost != nil {
			err = lost
		}
		return out, err
	}
	if len(raw) == 0 || string(raw) == "null" {
		return out, nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("read the answer of node %s: %w", h.name, err)
	}
	return out, nil
}

// surely gives an order again where its answer was lost, as long as the node is held: for orders that are no harm twice.
func surely[T any](ctx context.Context, h *hold, word string, o any) (T, error) {
	for {
		out, err := once[T](ctx, h, word, o)
		passes := errors.Is(err, bus.ErrAway) || errors.Is(err, bus.ErrNobody) || errors.Is(err, context.DeadlineExceeded)
		switch {
		case ctx.Err() != nil:
			return out, context.Cause(ctx)
		case h.ctx.Err() != nil:
			return out, context.Cause(h.ctx)
		case !passes:
			return out, err
		}
		select {
		case <-ctx.Done():
		case <-h.ctx.Done():
		case <-time.After(claimLook):
		}
	}
}
