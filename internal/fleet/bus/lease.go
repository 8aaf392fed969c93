package bus

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"perflab/internal/field"
)

// Lease is something held for a time.
type Lease struct {
	Key      string
	Revision uint64 // the fencing token: that of a later holder is higher

	c     *Conn
	value []byte
	ttl   time.Duration
	claim string // of this holder

	mu   sync.Mutex
	last uint64    // the revision of the last renewal
	ends time.Time // at the latest
}

// claimHeader tells the claims of one key apart, so that a holder whose answer was lost knows its own.
const claimHeader = "Perflab-Claim"

var keyForm = regexp.MustCompile(`^[A-Za-z0-9_=-]+([./][A-Za-z0-9_=-]+)*$`)

func leaseSubject(key string) string { return "$KV." + bucket + ".lease." + key }

// Claim takes something that nobody holds, for a time of at least a second: else it is a *HeldError. For leaders.
func (c *Conn) Claim(ctx context.Context, key string, value []byte, ttl time.Duration) (*Lease, error) {
	if err := c.leaders("a lease"); err != nil {
		return nil, err
	}
	if !keyForm.MatchString(key) {
		return nil, field.Errorf("key", "%q cannot be held: use letters, digits, - and _, with dots between", key)
	}
	if ttl < time.Second {
		return nil, field.Errorf("ttl", "a lease lasts a second at least, and not %v", ttl)
	}
	nonce := make([]byte, 8)
	_, _ = rand.Read(nonce) // never fails
	l := &Lease{Key: key, c: c, value: value, ttl: ttl, claim: hex.EncodeToString(nonce)}
	was, err := l.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", key, err)
	}
	if was.held {
		return nil, &HeldError{key, was.value}
	}
	switch err := l.write(ctx, was.revision); {
	case errors.Is(err, ErrLost): // somebody was faster
		if was, err = l.look(ctx); err != nil {
			return nil, fmt.Errorf("claim %s: %w", key, err)
		}
		return nil, &HeldError{key, was.value}
	case err != nil:
		return nil, fmt.Errorf("claim %s: %w", key, err)
	}
	l.Revision = l.last
	return l, nil
}

// holding is what the hub knows of a key.
type holding struct {
	held     bool
	revision uint64 // 0: nobody ever held it
	claim    string
	value    []byte
}

// look asks who holds the key.
func (l *Lease) look(ctx context.Context) (holding, error) {
	s, err := l.c.js.Stream(ctx, "KV_"+bucket)
	if err != nil {
		return holding{}, l.c.stored(err)
	}
	m, err := s.GetLastMsgForSubject(ctx, leaseSubject(l.Key))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return holding{}, nil
	} else if err != nil {
		return holding{}, l.c.stored(err)
	}
	claim := m.Header.Get(claimHeader) // none: a mark that the lease ended
	return holding{claim != "", m.Sequence, claim, m.Data}, nil
}

// write makes the lease this holder's if its last revision is the given one, else it is ErrLost.
func (l *Lease) write(ctx context.Context, after uint64) error {
	m := &nats.Msg{Subject: leaseSubject(l.Key), Data: l.value, Header: nats.Header{claimHeader: {l.claim}}}
	ends := time.Now().Add(l.ttl)
	sequence, err := l.publish(ctx, m, after, jetstream.WithMsgTTL(l.ttl))
	if err == nil {
		l.last, l.ends = sequence, ends
	}
	return err
}

func (l *Lease) publish(ctx context.Context, m *nats.Msg, after uint64, o ...jetstream.PublishOpt) (uint64, error) {
	ack, err := l.c.js.PublishMsg(ctx, m, append(o, jetstream.WithExpectLastSequencePerSubject(after))...)
	if e, ok := errors.AsType[*jetstream.APIError](err); ok && e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return 0, ErrLost
	} else if err != nil {
		return 0, l.c.stored(err)
	}
	return ack.Sequence, nil
}

// Renew holds on for the time of the claim from now: ErrLost where that had ended, which does not come back.
func (l *Lease) Renew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again(ctx, func() error { return l.write(ctx, l.last) })
}

// Release lets go, so that the next need not wait.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again(ctx, func() error {
		m := &nats.Msg{Subject: leaseSubject(l.Key), Header: nats.Header{"KV-Operation": {"PURGE"}, jetstream.MsgRollup: {jetstream.MsgRollupSubject}}}
		_, err := l.publish(ctx, m, l.last, jetstream.WithMsgTTL(time.Hour))
		return err
	})
}

// again does something with the lease, once more if what stands there is this holder's own last word, whose
// answer was lost.
func (l *Lease) again(ctx context.Context, do func() error) error {
	err := do()
	if errors.Is(err, ErrLost) {
		was, looked := l.look(ctx)
		if looked == nil && was.claim == l.claim {
			l.last = was.revision
			err = do()
		}
	}
	if err != nil {
		return fmt.Errorf("the lease of %s: %w", l.Key, err)
	}
	return nil
}

// Ends is until when the lease is held for sure, on this machine's clock.
func (l *Lease) Ends() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends
}

// Next is a number higher than every one that this hub gave before, and kept by it. For leaders.
func (c *Conn) Next(ctx context.Context, name string) (uint64, error) {
	if err := c.leaders("a number"); err != nil {
		return 0, err
	}
	if !keyForm.MatchString(name) {
		return 0, field.Errorf("name", "%q cannot name a number: use letters, digits, - and _, with dots between", name)
	}
	ack, err := c.js.PublishMsg(ctx, &nats.Msg{Subject: "$KV." + bucket + ".next." + name})
	if err != nil {
		return 0, fmt.Errorf("the next number of %s: %w", name, c.stored(err))
	}
	return ack.Sequence, nil
}
