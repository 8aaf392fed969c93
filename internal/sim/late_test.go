package sim

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestLateServerEndsByItsCause: also a server that is behind its schedule
// returns why it was stopped.
func TestLateServerEndsByItsCause(t *testing.T) {
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, at := range []time.Duration{-time.Hour, time.Hour} {
		s := &Server{epoch: time.Now()}
		if _, err := s.waitUntil(ctx, at, nil); !errors.Is(err, why) {
			t.Errorf("waiting until %v ends with %v, want %v", at, err, why)
		}
	}
}
