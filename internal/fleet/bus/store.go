package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	bucket = "fleet"       // of leases and numbers
	stream = "FLEET_FILES" // of files
	files  = "fleet.files."
)

// depot is what of a connection has to do with the store of files: a leader speaks to it, an agent to whoever does so for it.
type depot struct{ *Conn }

// makeStores makes what the hub keeps, or finds it there.
func (c depot) makeStores(ctx context.Context) error {
	_, err := c.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, Description: "perflab: leases and numbers of the fleet", LimitMarkerTTL: time.Hour, Storage: jetstream.FileStorage,
	})
	if err == nil {
		_, err = c.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: stream, Description: "perflab: files of the fleet, by SHA-256", Subjects: []string{files + ">"},
			MaxMsgsPerSubject: 1, AllowDirect: true, MaxAge: keepFiles, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		})
	}
	if err != nil {
		return fmt.Errorf("make the fleet's store: %w", c.stored(err))
	}
	return nil
}

// stored says what an error of JetStream means here.
func (c *Conn) stored(err error) error {
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return fmt.Errorf("the hub cannot store anything: look whether its disk is full, and start it again (an outside server needs JetStream): %w", err)
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
