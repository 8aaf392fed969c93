package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// leastNATS is the first version whose messages can each have a time to live.
const leastNATS = "2.11"

const (
	bucket       = "fleet"       // of leases and numbers
	stream       = "FLEET_FILES" // of files
	fileSubjects = "fleet.files."
)

// depot is what of a connection has to do with the store of files: a leader speaks to it, an agent to whoever does so for it.
type depot struct{ *Conn }

// keepFree is what files must leave of the hub's room for leases and numbers, without which nothing goes on.
const keepFree = 64 << 20

// roomForFiles is how much of the room that NATS takes of a disk files may have. Who brings one makes room for it:
// NATS's own limit is a reservation, and a hub whose disk has less than that after a while would not start.
func roomForFiles(all int64) int64 { return max(all/2, all-keepFree) }

// roomKey has that number, in what the stream of files says of itself.
const roomKey = "perflab_room_bytes"

// makeStores makes what the hub keeps, or finds it there. Files may take so many bytes; 0: as many as the server lets them.
func (c depot) makeStores(ctx context.Context, room int64) error {
	_, err := c.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, Description: "perflab: leases and numbers of the fleet", LimitMarkerTTL: time.Hour, Storage: jetstream.FileStorage,
	})
	if err == nil {
		_, err = c.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: stream, Description: "perflab: files of the fleet, by SHA-256", Subjects: []string{fileSubjects + ">"},
			Metadata:          map[string]string{roomKey: strconv.FormatInt(room, 10)},
			MaxMsgsPerSubject: 1, AllowDirect: true, MaxAge: keepFiles, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		})
	}
	if err != nil {
		return fmt.Errorf("make the fleet's store: %w", c.stored(err))
	}
	return nil
}

// stored says what an error of JetStream means here. A server whose disk is full says so, or nothing at all.
func (c *Conn) stored(err error) error {
	e, ok := errors.AsType[*jetstream.APIError](err)
	switch {
	case errors.Is(err, jetstream.ErrLimitMarkerTTLNotSupported):
		return fmt.Errorf("the hub is NATS server %s, and leases need one of %s or later, which ends each by its own time: use a newer one", c.nats.ConnectedServerVersion(), leastNATS)
	case ok && e.Code == 503, errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("the hub cannot store anything: make room on its disk and start it again (a server that is not perflab's needs JetStream): %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the hub's store does not answer: if its disk is full, make room there and start it again: %w", err)
	}
	return c.failure("the hub's store", err)
}

// leaders refuses an agent what needs the hub's store.
func (c *Conn) leaders(what string) error {
	if c.id.Role != Leader {
		return fmt.Errorf("%s is for leaders, and this is agent %s", what, c.id.ID)
	}
	return nil
}
